//===- File.h - mapped, atomically written and confined files ---*- C++ -*-===//
//
// Models are larger than memory and come from strangers: files are mapped, never read whole, output files appear whole
// or not at all, and a path named inside a model cannot leave the model's folder.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SUPPORT_FILE_H
#define CLEAVE_SUPPORT_FILE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/ErrorOr.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <memory>
#include <string>

namespace cleave {

/// A read-only file, mapped into memory: only the pages that are touched become resident. Whoever keeps a reference
/// into the bytes keeps the shared pointer. Where the file shrinks while it is mapped, and what is gone is looked at, the process ends with
/// an error that names it, and exit code 1.
class MappedFile {
public:
  /// Maps a regular file. Errors: missing, no permission, a folder or a device.
  static llvm::Expected<std::shared_ptr<const MappedFile>> open(llvm::StringRef path);
  /// Bytes in memory under a file's interface, for standard input. `isOnDisk` is false.
  static std::shared_ptr<const MappedFile> fromMemory(llvm::StringRef name, std::string bytes);

  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;
  ~MappedFile();

  /// The path as given to `open`, or the name given to `fromMemory`.
  llvm::StringRef getPath() const { return path; }
  llvm::StringRef getBytes() const { return {data, size}; }
  bool isOnDisk() const { return onDisk; }
  /// Offset of `bytes`, a part of this file's bytes.
  uint64_t getOffset(llvm::ArrayRef<char> bytes) const { return bytes.data() - data; }
  /// Copies the bytes at `offset` into `buffer` without making pages of the file resident. Precondition: they are there.
  void copy(uint64_t offset, llvm::MutableArrayRef<char> buffer) const;
  /// Whether the file system knows that there is nothing but zeros, which were never written.
  bool isHole(uint64_t offset, uint64_t count) const;

private:
  friend llvm::Expected<std::shared_ptr<const MappedFile>> openBeneath(llvm::StringRef, llvm::StringRef);
  MappedFile() = default;
  static llvm::Expected<std::shared_ptr<const MappedFile>> map(int descriptor, std::string path);

  std::string path;
  std::string memory;
  const char *data = nullptr;
  size_t size = 0;
  bool onDisk = false;
  /// Open in the first few files only: a process has few descriptors, and a model may have a file for each weight.
  int descriptor = -1;
};

/// Maps the regular file at `relative` in `folder` (empty: the working directory). The path is untrusted: an error,
/// each with its own text, if it is empty, absolute, holds a NUL or a `..`, passes through or is a symbolic link, or is
/// a folder, a device or missing. Confinement is checked by the kernel while it opens, so nothing can change between
/// check and use.
llvm::Expected<std::shared_ptr<const MappedFile>> openBeneath(llvm::StringRef folder, llvm::StringRef relative);

/// Writes a file through `write`, which may return an error. It takes the name `path` only after everything is on disk
/// (runtime::NewFile); after any error, and however the process ends, the old file, or none, is there. `check` is asked in between,
/// and may return an error too.
llvm::Error writeFileAtomically(llvm::StringRef path, llvm::function_ref<llvm::Error(llvm::raw_ostream &)> write,
                                llvm::function_ref<llvm::Error()> check = {});

/// The same of a text that there is already.
llvm::Error writeTextAtomically(llvm::StringRef path, llvm::StringRef text);

/// All of a file that people edit, which is read and not mapped: it may become shorter meanwhile.
llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> readBuffer(llvm::StringRef path);

namespace detail {
/// Opens `relative` component by component without following links: what `openBeneath` does where the kernel has no
/// openat2. A descriptor, or -1 and `errno` (ELOOP for a link). Precondition: the path has been checked for `..`.
int openBeneathByWalking(int folder, llvm::StringRef relative);
} // namespace detail

} // namespace cleave

#endif // CLEAVE_SUPPORT_FILE_H
