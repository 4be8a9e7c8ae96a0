//===- Files.cpp - files read and written whole ---------------------------===//
//
// Launchers kill what is left of a failed run, and do not wait for a file. So a file has no name while it is being written:
// whoever looks into the folder sees a whole one or none.
//
//===----------------------------------------------------------------------===//
#include "cleave/Runtime/Files.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace cleave::runtime;
namespace program = cleave::program;
using program::makeError;
using program::printable;

FileBytes::~FileBytes() {
  if (data)
    munmap(data, size);
  if (descriptor >= 0)
    close(descriptor);
}

program::Status cleave::runtime::readAt(int descriptor, uint64_t offset, char *to, size_t bytes) {
  while (bytes) {
    ssize_t got = pread(descriptor, to, bytes, off_t(offset));
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return makeError(got < 0 ? std::strerror(errno) : "the file has become shorter", ", ", bytes,
                       " bytes are missing at ", offset);
    to += got;
    offset += uint64_t(got);
    bytes -= size_t(got);
  }
  return program::kGood;
}

/// As many bytes as there are when the file is opened.
program::Status FileBytes::open(const std::string &path, bool isMapped) {
  auto fail = [&](const auto &...why) { return makeError("cannot read ", printable(path), ": ", why...); };
  // O_NONBLOCK: opening a pipe must not wait for its writer.
  descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0)
    return fail(std::strerror(errno));
  struct stat status;
  if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode))
    return fail("it is no regular file");
  if (status.st_size == 0)
    return program::kGood;
  void *memory = isMapped ? mmap(nullptr, size_t(status.st_size), PROT_READ, MAP_PRIVATE, descriptor, 0)
                          : mmap(nullptr, size_t(status.st_size), PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    return fail(std::strerror(errno));
  data = memory;
  size = size_t(status.st_size);
  if (!isMapped)
    if (program::Status error = readAt(descriptor, 0, static_cast<char *>(data), size))
      return fail(error->message);
  return program::kGood;
}

program::Status FileBytes::map(const std::string &path) { return open(path, /*isMapped=*/true); }

program::Status FileBytes::read(const std::string &path) {
  program::Status failed = open(path, /*isMapped=*/false);
  if (descriptor >= 0)
    close(descriptor);
  descriptor = -1;
  return failed;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

/// Fills an open file. The first error, or none.
static program::Status fill(int file, const std::string &path,
                            const std::function<program::Status(const Sink &)> &write) {
  int code = 0;
  program::Status failed = write([&](const char *bytes, size_t count) {
    while (count && !code) {
      ssize_t written = ::write(file, bytes, count);
      if (written < 0)
        code = errno == EINTR ? 0 : errno;
      bytes += written > 0 ? written : 0;
      count -= written > 0 ? size_t(written) : 0;
    }
    return code == 0;
  });
  if (code)
    return makeError("cannot write ", printable(path), ": ", std::strerror(code));
  return failed;
}

static program::Status failToWrite(const std::string &path) {
  return makeError("cannot write ", printable(path), ": ", std::strerror(errno));
}

/// Gives the nameless `file` its name, in place of an older one.
static bool publish(int file, const std::string &path) {
  std::string source = program::concat("/proc/self/fd/", file), other = program::concat(path, ".", getpid());
  if (linkat(AT_FDCWD, source.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0)
    return true;
  return errno == EEXIST && linkat(AT_FDCWD, source.c_str(), AT_FDCWD, other.c_str(), AT_SYMLINK_FOLLOW) == 0 &&
         std::rename(other.c_str(), path.c_str()) == 0;
}

using Write = std::function<program::Status(const Sink &)>;

/// For file systems where no file is nameless: under another name first. `given` is what the caller calls it.
static program::Status writeNamed(const std::string &path, const std::string &given, mode_t mode, const Write &write) {
  std::string other = program::concat(path, ".", getpid());
  int file = open(other.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
  if (file < 0)
    return failToWrite(given);
  program::Status failed = fill(file, given, write);
  if (!failed && fsync(file) != 0)
    failed = failToWrite(given);
  close(file);
  if (!failed && std::rename(other.c_str(), path.c_str()) != 0)
    failed = failToWrite(given);
  if (failed)
    unlink(other.c_str());
  return failed;
}

/// A pipe or a device is what it is; a rename would replace it.
static program::Status writeInPlace(const std::string &path, const Write &write) {
  int file = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0)
    return failToWrite(path);
  program::Status failed = fill(file, path, write);
  close(file);
  return failed;
}

program::Status cleave::runtime::writeFile(const std::string &given, const Write &write) {
  struct stat status;
  bool exists = stat(given.c_str(), &status) == 0;
  if (exists && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))
    return writeInPlace(given, write);
  if (exists && access(given.c_str(), W_OK) != 0)
    return failToWrite(given);
  // A link keeps pointing where it does; the file behind it is replaced.
  char *resolved = exists ? realpath(given.c_str(), nullptr) : nullptr;
  std::string path = resolved ? resolved : given;
  std::free(resolved);
  size_t slash = path.rfind('/');
  std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  mode_t mode = exists ? status.st_mode & 07777 : 0666;
  int file = open(folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, mode);
  if (file < 0)
    return writeNamed(path, given, mode, write);
  program::Status failed = fill(file, given, write);
  if (!failed && fsync(file) != 0)
    failed = failToWrite(given);
  bool isPublished = !failed && publish(file, path);
  close(file);
  return failed || isPublished ? failed : writeNamed(path, given, mode, write);
}

program::Status cleave::runtime::writeFile(const std::string &path, std::string_view text) {
  return writeFile(path, [&](const Sink &sink) -> program::Status {
    sink(text.data(), text.size());
    return program::kGood;
  });
}
