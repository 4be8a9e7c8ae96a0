//===- Files.cpp - files read and written whole ---------------------------===//
//
// Launchers kill what is left of a failed run, and do not wait for a file. So a file has no name while it is being written:
// whoever looks into the folder sees a whole one or none. Where it must have one, or takes the place of an older file, a table
// knows it, which a signal handler can go through. SIGKILL leaves no time for that: a lock says whether the writer of such a
// file lives, and the next one that needs a name there removes those without a lock.
//
//===----------------------------------------------------------------------===//
#include "cleave/Runtime/Files.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <iterator>
#include <sys/file.h>
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
    return fail("it is not a regular file");
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

/// Names of files that are not whole yet. A signal may come at any time, so nothing is taken or freed: a slot is free, then its
/// taker's, then says a name.
namespace {
struct Unfinished {
  enum State { Free, Taken, Named };
  std::atomic<State> state{Free};
  char name[PATH_MAX];
};
} // namespace
static Unfinished unfinished[16];

/// -1 where there is no room: then a signal may leave the file.
static int remember(const std::string &name) {
  for (int slot = 0; slot < int(std::size(unfinished)) && name.size() < PATH_MAX; ++slot) {
    Unfinished::State state = Unfinished::Free;
    if (!unfinished[slot].state.compare_exchange_strong(state, Unfinished::Taken))
      continue;
    std::memcpy(unfinished[slot].name, name.c_str(), name.size() + 1);
    unfinished[slot].state.store(Unfinished::Named);
    return slot;
  }
  return -1;
}

static void forget(int &slot) {
  if (slot >= 0)
    unfinished[slot].state.store(Unfinished::Free);
  slot = -1;
}

void cleave::runtime::discardUnfinished() {
  for (const Unfinished &file : unfinished)
    if (file.state.load() == Unfinished::Named)
      unlink(file.name);
}

/// The path without its last name: empty where that is all.
static std::string dropName(const std::string &path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

static std::string findFolder(const std::string &path) {
  std::string folder = dropName(path);
  return folder.empty() ? "." : folder;
}

static constexpr std::string_view kOtherPrefix = ".cleave-", kOtherSuffix = ".tmp";

/// Beside the file, so that a rename is all that is left to do.
static std::string makeOtherName(const std::string &path) {
  static std::atomic<unsigned> counter{0};
  return program::concat(dropName(path), kOtherPrefix, getpid(), "-", counter++, kOtherSuffix);
}

/// Removes what processes that were killed left in the folder of `path`: files of other names that are not locked. Process ids
/// would not do, since the folder may be shared by several hosts.
static void removeLeftovers(const std::string &path) {
  DIR *folder = opendir(findFolder(path).c_str());
  if (!folder)
    return;
  while (const dirent *entry = readdir(folder)) {
    std::string_view name = entry->d_name;
    size_t rest = name.size() - std::min(name.size(), kOtherSuffix.size());
    if (name.substr(0, kOtherPrefix.size()) != kOtherPrefix || name.substr(rest) != kOtherSuffix)
      continue;
    int file = openat(dirfd(folder), entry->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0)
      continue;
    if (flock(file, LOCK_EX | LOCK_NB) == 0)
      unlinkat(dirfd(folder), entry->d_name, 0);
    close(file);
  }
  closedir(folder);
}

/// Says that the process which has `file` open lives. Where a file system has no locks, no one can take it for a leftover.
static void lockFile(int file) {
  while (flock(file, LOCK_EX) != 0 && errno == EINTR)
    ;
}

NewFile::~NewFile() {
  if (descriptor >= 0)
    close(descriptor);
  if (!other.empty())
    unlink(other.c_str());
  forget(slot);
}

/// Known before it is there: the process may end in between.
int NewFile::openNamed() {
  int file = -1, code = 0;
  removeLeftovers(path);
  do {
    forget(slot);
    other = makeOtherName(path);
    slot = remember(other);
    file = ::open(other.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    code = file < 0 ? errno : 0;
    if (code)
      continue;
    // Until it is locked it can be taken for a leftover, and lose its name.
    lockFile(file);
    if (struct stat status; fstat(file, &status) == 0 && status.st_nlink == 0) {
      close(file);
      code = EEXIST;
    }
  } while (code == EEXIST);
  if (code) {
    forget(slot);
    other.clear();
  }
  descriptor = file;
  return code;
}

int NewFile::open(const std::string &given, bool hasName) {
  struct stat status;
  exists = stat(given.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode))
    return EISDIR;
  isInPlace = exists && !S_ISREG(status.st_mode);
  if (isInPlace) {
    descriptor = ::open(given.c_str(), O_WRONLY | O_CLOEXEC);
    return descriptor < 0 ? errno : 0;
  }
  if (exists && access(given.c_str(), W_OK) != 0)
    return errno;
  // A link keeps pointing where it does; the file behind it is replaced.
  char *resolved = exists ? realpath(given.c_str(), nullptr) : nullptr;
  path = resolved ? resolved : given;
  std::free(resolved);
  mode = exists ? status.st_mode & 07777 : 0666;
  descriptor = hasName ? -1 : ::open(findFolder(path).c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, mode);
  return descriptor < 0 ? openNamed() : 0;
}

/// The same bytes in a file that has a name, where one that has none cannot get any (without /proc).
int NewFile::copyNamed() {
  int from = descriptor;
  int code = openNamed();
  char buffer[1 << 14];
  off_t at = 0;
  for (ssize_t got; !code && (got = pread(from, buffer, sizeof(buffer), at)) != 0; at += got)
    if (got < 0 || ::write(descriptor, buffer, size_t(got)) != got)
      code = errno;
  close(from);
  return code ? code : fsync(descriptor) != 0 ? errno : 0;
}

/// A file without a name can be given one, but not that of another file: then it has a third one for a moment.
int NewFile::publish() {
  if (isInPlace)
    return 0;
  if ((exists && fchmod(descriptor, mode) != 0) || fsync(descriptor) != 0)
    return errno;
  if (other.empty()) {
    std::string source = program::concat("/proc/self/fd/", descriptor);
    auto giveName = [&](const std::string &name) {
      return linkat(AT_FDCWD, source.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
    };
    if (giveName(path))
      return 0;
    bool isThere = errno == EEXIST;
    removeLeftovers(path);
    lockFile(descriptor);
    other = makeOtherName(path);
    slot = remember(other);
    if (!isThere || !giveName(other))
      if (int code = copyNamed())
        return code;
  }
  if (std::rename(other.c_str(), path.c_str()) != 0)
    return errno;
  other.clear();
  forget(slot);
  return 0;
}

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

program::Status cleave::runtime::writeFile(const std::string &path,
                                           const std::function<program::Status(const Sink &)> &write) {
  NewFile file;
  int code = file.open(path);
  program::Status failed = code ? program::kGood : fill(file.getDescriptor(), path, write);
  if (!code && !failed)
    code = file.publish();
  return code ? program::Status(makeError("cannot write ", printable(path), ": ", std::strerror(code))) : failed;
}

program::Status cleave::runtime::writeFile(const std::string &path, std::string_view text) {
  return writeFile(path, [&](const Sink &sink) -> program::Status {
    sink(text.data(), text.size());
    return program::kGood;
  });
}
