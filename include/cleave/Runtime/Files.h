//===- Files.h - files read and written whole -------------------*- C++ -*-===//
#ifndef CLEAVE_RUNTIME_FILES_H
#define CLEAVE_RUNTIME_FILES_H

#include "cleave/Program/Error.h"
#include <functional>

namespace cleave::runtime {

/// The bytes of a file, in memory of their own: one that shrinks meanwhile is an error, and no signal.
class FileBytes {
public:
  FileBytes() = default;
  FileBytes(const FileBytes &) = delete;
  FileBytes &operator=(const FileBytes &) = delete;
  ~FileBytes();

  /// `cannot read a.npz: No such file or directory`
  program::Status read(const std::string &path);
  std::string_view get() const { return {static_cast<const char *>(data), size}; }

private:
  void *data = nullptr;
  size_t size = 0;
};

/// Takes the next bytes of a file. Returns whether it could.
using Sink = std::function<bool(const char *bytes, size_t count)>;

/// Writes a file through `write`, which may return an error of its own, and may be called twice. It takes the name `path` only
/// after everything is on disk; after any error, or the end of the process, the old file, or none, is there. What is no
/// regular file (/dev/null, a pipe) is written in place.
program::Status writeFile(const std::string &path, const std::function<program::Status(const Sink &)> &write);
program::Status writeFile(const std::string &path, std::string_view text);

} // namespace cleave::runtime

#endif // CLEAVE_RUNTIME_FILES_H
