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

/// A file that appears whole or not at all: the one way in which Cleave writes files. Until it has its name it has none, so that
/// the end of the process, however it comes, leaves nothing. On file systems where no file is nameless, and for the moment in
/// which it takes the place of an older file, it has another name, which `discardUnfinished` removes; where the process was killed
/// before that, the next such file in the folder does. What is no regular file (/dev/null, a pipe) is written in place.
class NewFile {
public:
  NewFile() = default;
  NewFile(const NewFile &) = delete;
  NewFile &operator=(const NewFile &) = delete;
  /// Without `publish` nothing is left.
  ~NewFile();

  /// Begins a file that shall be called `path`; a link keeps pointing where it does. 0, or why not, as errno says it.
  /// `hasName` is for tests: as where no file is nameless.
  int open(const std::string &path, bool hasName = false);
  /// To be written to.
  int getDescriptor() const { return descriptor; }
  /// What it is called until it is published; empty where it is nameless.
  const std::string &getName() const { return other; }
  /// All bytes are there and go to the disk; then it has its name, in place of an older file. 0, or why not: then the older
  /// one, or none, is there.
  int publish();

private:
  int openNamed();
  int copyNamed();

  /// What it is to be called; and what it is called until then, if anything.
  std::string path, other;
  unsigned mode = 0666;
  int descriptor = -1, slot = -1;
  bool exists = false, isInPlace = false;
};

/// Removes what is not whole yet of all files that have a name. For who ends the process at once: may be called in a signal
/// handler.
void discardUnfinished();

/// Takes the next bytes of a file. Returns whether it could.
using Sink = std::function<bool(const char *bytes, size_t count)>;

/// Writes a NewFile through `write`, which may return an error of its own.
program::Status writeFile(const std::string &path, const std::function<program::Status(const Sink &)> &write);
program::Status writeFile(const std::string &path, std::string_view text);

} // namespace cleave::runtime

#endif // CLEAVE_RUNTIME_FILES_H
