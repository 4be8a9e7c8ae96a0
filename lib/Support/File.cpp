//===- File.cpp - mapped, atomically written and confined files -----------===//
//
// Opening beneath a folder asks the kernel for all of it at once (openat2). Where that call is missing, or a sandbox
// forbids it, the path is walked one component at a time, each opened relative to the one before without following a
// link; both ways hold a descriptor at every step, so a rename in between cannot lead outside.
//
// Atomic writing is the runtime's (Runtime/Files.h), through a stream of LLVM's.
//
// A file may be cut off while it is mapped. Looking at a page behind its end is SIGBUS then, wherever in the process that happens: the
// handler says which file it was, in the words of an error, and ends the process as an error of the input does. Numbers that were
// read are worth nothing by then, and no file that is being written takes its name.
//
//===----------------------------------------------------------------------===//
#include "cleave/Support/File.h"
#include "cleave/Runtime/Files.h"
#include "cleave/Support/Status.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Signals.h"
#include <atomic>
#include <cassert>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#if __has_include(<linux/openat2.h>)
#include <linux/openat2.h>
#endif

using namespace llvm;

namespace cleave {

/// The text of an errno, in our case of letters: "no such file or directory".
static std::string describe(int code) {
  std::string text = std::strerror(code);
  if (text.size() > 1 && islower(text[1]))
    text[0] = tolower(text[0]);
  return text;
}

//===----------------------------------------------------------------------===//
// Mapping
//===----------------------------------------------------------------------===//

/// Descriptors that mapped files hold.
static std::atomic<int> heldDescriptors{0};
static constexpr int kMaxHeldDescriptors = 32;

MappedFile::~MappedFile() {
  if (onDisk && size)
    munmap(const_cast<char *>(data), size);
  if (descriptor < 0)
    return;
  ::close(descriptor);
  --heldDescriptors;
}

void MappedFile::copy(uint64_t offset, MutableArrayRef<char> buffer) const {
  assert(offset <= size && buffer.size() <= size - offset && "the bytes are not in the file");
  // What cannot be read, the mapping will say.
  if (descriptor < 0 || pread(descriptor, buffer.data(), buffer.size(), offset) != ssize_t(buffer.size()))
    std::memcpy(buffer.data(), data + offset, buffer.size());
}

bool MappedFile::isHole(uint64_t offset, uint64_t count) const {
  off_t next = descriptor < 0 ? off_t(offset) : lseek(descriptor, off_t(offset), SEEK_DATA);
  return next < 0 ? errno == ENXIO : uint64_t(next) >= offset + count;
}

/// What SIGBUS meant before.
static struct sigaction olderHandler;

/// The path of the mapping that holds `address`, of which `/proc/self/maps` has a line; empty if it is of no file. In a signal handler,
/// so without memory of its own.
static StringRef findMapped(uintptr_t address, MutableArrayRef<char> buffer) {
  int maps = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  size_t held = 0;
  StringRef found;
  while (maps >= 0 && found.empty()) {
    ssize_t got = read(maps, buffer.data() + held, buffer.size() - held);
    held += got > 0 ? got : 0;
    StringRef text(buffer.data(), held);
    size_t end = text.find('\n');
    if (end == StringRef::npos)
      break;
    for (; end != StringRef::npos; end = text.find('\n')) {
      // 7f00-7f10 r--p 00000000 08:01 1234   /path
      StringRef line = text.take_front(end);
      uintptr_t first = 0, last = 0;
      (void)line.consumeInteger(16, first);
      (void)(line.consume_front("-") && !line.consumeInteger(16, last));
      size_t path = line.find('/');
      if (address >= first && address < last) {
        found = path == StringRef::npos ? StringRef("a file") : line.drop_front(path);
        break;
      }
      text = text.drop_front(end + 1);
    }
    if (found.empty()) {
      std::memmove(buffer.data(), text.data(), text.size());
      held = text.size();
    }
  }
  if (maps >= 0)
    ::close(maps);
  return found;
}

/// Only a page that its file does not reach any more is meant. All else is for whom the signal was before.
static void handleBusError(int signal, siginfo_t *info, void *) {
  if (info->si_code != BUS_ADRERR) {
    sigaction(signal, &olderHandler, nullptr);
    raise(signal); // comes when this one is over
    return;
  }
  static char buffer[2 * PATH_MAX];
  StringRef path = findMapped(reinterpret_cast<uintptr_t>(info->si_addr), buffer);
  constexpr StringLiteral text = ": error: the file has become shorter while it was read\n";
  (void)!::write(STDERR_FILENO, path.data(), path.size());
  (void)!::write(STDERR_FILENO, text.data(), text.size());
  sys::RunInterruptHandlers(); // temporary files go
  ::_exit(1);
}

static void watchMappedFiles() {
  // Once. (`std::call_once` would want room in the static block of threads' variables, of which a library that is loaded late, as Python's
  // extension is, may find none.)
  [[maybe_unused]] static const int watched = [] {
    struct sigaction action = {};
    action.sa_sigaction = handleBusError;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    return sigaction(SIGBUS, &action, &olderHandler);
  }();
}

/// Takes the descriptor.
Expected<std::shared_ptr<const MappedFile>> MappedFile::map(int descriptor, std::string path) {
  scope_exit close([&] { ::close(descriptor); });
  struct stat status;
  if (fstat(descriptor, &status) != 0)
    return makeError("cannot read {0}: {1}", quote(path), describe(errno));
  if (S_ISDIR(status.st_mode))
    return makeError("cannot read {0}: it is a folder", quote(path));
  if (!S_ISREG(status.st_mode))
    return makeError("cannot read {0}: it is not a regular file", quote(path));

  std::shared_ptr<MappedFile> file(new MappedFile);
  file->path = std::move(path);
  file->onDisk = true;
  if (status.st_size == 0)
    return file;
  void *address = mmap(nullptr, status.st_size, PROT_READ, MAP_PRIVATE | MAP_NORESERVE, descriptor, 0);
  if (address == MAP_FAILED)
    return makeError("cannot map {0} ({1} bytes): {2}", quote(file->path), status.st_size, describe(errno));
  watchMappedFiles();
  file->data = static_cast<const char *>(address);
  file->size = status.st_size;
  if (heldDescriptors++ < kMaxHeldDescriptors) {
    close.release();
    file->descriptor = descriptor;
    // What is copied are samples here and there: reading on behind each would read the whole file. The mapping still does.
    posix_fadvise(descriptor, 0, 0, POSIX_FADV_RANDOM);
  } else {
    --heldDescriptors;
  }
  return file;
}

ErrorOr<std::unique_ptr<MemoryBuffer>> readBuffer(StringRef path) {
  return MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/true, /*IsVolatile=*/true);
}

Expected<std::shared_ptr<const MappedFile>> MappedFile::open(StringRef path) {
  if (path.contains('\0'))
    return makeError("cannot open {0}: the path holds a NUL character", quote(path));
  // O_NONBLOCK: opening a pipe must not wait for its writer.
  int descriptor = ::open(path.str().c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0)
    return makeError("cannot open {0}: {1}", quote(path), describe(errno));
  return map(descriptor, path.str());
}

std::shared_ptr<const MappedFile> MappedFile::fromMemory(StringRef name, std::string bytes) {
  std::shared_ptr<MappedFile> file(new MappedFile);
  file->path = name.str();
  file->memory = std::move(bytes);
  file->data = file->memory.data();
  file->size = file->memory.size();
  return file;
}

//===----------------------------------------------------------------------===//
// Confined opening
//===----------------------------------------------------------------------===//

static constexpr int kOpenFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;

/// Why an untrusted relative path is refused before any file is touched; null if it is not.
static const char *findPathProblem(StringRef relative) {
  if (relative.empty())
    return "the path is empty";
  if (relative.contains('\0'))
    return "the path holds a NUL character";
  if (relative.front() == '/')
    return "the path is absolute";
  SmallVector<StringRef> components;
  relative.split(components, '/');
  return is_contained(components, "..") ? "the path holds '..'" : nullptr;
}

int detail::openBeneathByWalking(int folder, StringRef relative) {
  assert(!findPathProblem(relative) && "the path has not been checked");
  SmallVector<StringRef> components;
  relative.split(components, '/', -1, /*KeepEmpty=*/false);
  int current = fcntl(folder, F_DUPFD_CLOEXEC, 0);
  for (auto [index, component] : enumerate(components)) {
    if (current < 0)
      return -1;
    bool isLast = index + 1 == components.size();
    std::string name = component.str();
    int next = openat(current, name.c_str(), kOpenFlags | O_NOFOLLOW | (isLast ? 0 : O_DIRECTORY));
    int code = errno;
    // O_DIRECTORY reports a link as ENOTDIR.
    struct stat status;
    if (next < 0 && fstatat(current, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(status.st_mode))
      code = ELOOP;
    ::close(current);
    current = next;
    errno = code;
  }
  return current;
}

/// A descriptor, or -1 and errno.
static int openBeneathFolder(int folder, StringRef relative) {
#if defined(SYS_openat2) && defined(RESOLVE_BENEATH)
  open_how how = {};
  how.flags = kOpenFlags;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  int descriptor = syscall(SYS_openat2, folder, relative.str().c_str(), &how, sizeof(how));
  if (descriptor >= 0 || (errno != ENOSYS && errno != EPERM))
    return descriptor;
#endif
  return detail::openBeneathByWalking(folder, relative);
}

Expected<std::shared_ptr<const MappedFile>> openBeneath(StringRef folder, StringRef relative) {
  if (const char *problem = findPathProblem(relative))
    return makeError("cannot open {0}: {1}", quote(relative), problem);
  std::string base = folder.empty() ? "." : folder.str();
  int directory = ::open(base.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0)
    return makeError("cannot open folder {0}: {1}", quote(base), describe(errno));
  int descriptor = openBeneathFolder(directory, relative);
  int code = errno;
  ::close(directory);
  if (descriptor >= 0)
    return MappedFile::map(descriptor, folder.empty() ? relative.str() : (folder + "/" + relative).str());
  if (code == ELOOP)
    return makeError("cannot open {0}: a symbolic link is not followed", quote(relative));
  return makeError("cannot open {0} in folder {1}: {2}", quote(relative), quote(base), describe(code));
}

//===----------------------------------------------------------------------===//
// Atomic writing
//===----------------------------------------------------------------------===//

/// Lets `write` fill an open file.
static Error writeTo(int descriptor, StringRef path, function_ref<Error(raw_ostream &)> write) {
  raw_fd_ostream stream(descriptor, /*shouldClose=*/false);
  stream.SetBufferSize(1 << 20); // large models are printed in small pieces
  Error error = write(stream);
  stream.flush();
  std::error_code code = stream.error();
  stream.clear_error(); // or its destructor aborts
  if (error)
    return error;
  if (code)
    return makeError("cannot write {0}: {1}", quote(path), describe(code.value()));
  return Error::success();
}

Error writeFileAtomically(StringRef path, function_ref<Error(raw_ostream &)> write, function_ref<Error()> check) {
  if (path.empty() || path.contains('\0'))
    return makeError("cannot write {0}: not a path", quote(path));
  auto fail = [&](int code) {
    return code == EISDIR ? makeError("cannot write {0}: it is a folder", quote(path))
                          : makeError("cannot write {0}: {1}", quote(path), describe(code));
  };
  runtime::NewFile file;
  if (int code = file.open(path.str()))
    return fail(code);
  Error error = writeTo(file.getDescriptor(), path, write);
  if (check)
    error = joinErrors(std::move(error), check());
  if (error)
    return error;
  int code = file.publish();
  return code ? fail(code) : Error::success();
}

Error writeTextAtomically(StringRef path, StringRef text) {
  return writeFileAtomically(path, [&](raw_ostream &os) {
    os << text;
    return Error::success();
  });
}

} // namespace cleave
