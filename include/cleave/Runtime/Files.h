//===- Files.h - files read and written whole -------------------*- C++ -*-===//
#ifndef CLEAVE_RUNTIME_FILES_H
#define CLEAVE_RUNTIME_FILES_H

#include "cleave/Program/Error.h"
#include <functional>

namespace cleave::runtime {

/// The bytes of a file.
class FileBytes {
public:
  FileBytes() = default;
  FileBytes(const FileBytes &) = delete;
  FileBytes &operator=(const FileBytes &) = delete;
  ~FileBytes();

  /// In memory of their own: a file that shrinks meanwhile is an error, and no signal.
  /// `cannot read a.npz: No such file or directory`
  program::Status read(const std::string &path);
  /// In the pages of the file, which take no memory of the process. Where it shrinks, looking at them is a signal: what is
  /// large, or is looked at late, goes through `getDescriptor` and `readAt`.
  program::Status map(const std::string &path);
  std::string_view get() const { return {static_cast<const char *>(data), size}; }
  /// Of what is mapped; else -1.
  int getDescriptor() const { return descriptor; }

private:
  program::Status open(const std::string &path, bool isMapped);

  void *data = nullptr;
  size_t size = 0;
  int descriptor = -1;
};

/// Reads all of `bytes` at `offset` of an open file, or says why not.
program::Status readAt(int descriptor, uint64_t offset, char *to, size_t bytes);

/// Takes the next bytes of a file. Returns whether it could.
using Sink = std::function<bool(const char *bytes, size_t count)>;

/// Writes a file through `write`, which may return an error of its own, and may be called twice. It takes the name `path` only
/// after everything is on disk; after any error, or the end of the process, the old file, or none, is there. What is no
/// regular file (/dev/null, a pipe) is written in place.
program::Status writeFile(const std::string &path, const std::function<program::Status(const Sink &)> &write);
program::Status writeFile(const std::string &path, std::string_view text);

} // namespace cleave::runtime

#endif // CLEAVE_RUNTIME_FILES_H
