//===- Bytecode.cpp - MLIR bytecode that may be damaged -------------------===//
//
//   magic, 4 bytes | version, 1 byte | producer, ends with a zero        | what MLIR reads
//                                      Cleave xxh3:0123456789abcdef
//
// The digest is that of all bytes with zeros in its own place. Whether it is there is seen by either half of the words around it, so
// that no single bit makes a sealed file one without a seal.
//
//===----------------------------------------------------------------------===//
#include "cleave/Support/Bytecode.h"

#include "cleave/Program/Digest.h"
#include "cleave/Support/Status.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace llvm;

namespace cleave {

static constexpr size_t kStart = 5, kDigits = 16, kWords = kBytecodeProducer.size() - kDigits, kHalf = kWords / 2;

static std::string digest(std::string bytes) {
  bytes.replace(kStart + kWords, kDigits, kDigits, '0');
  return program::formatDigest(program::hashBytes(bytes));
}

void sealBytecode(std::string &bytes) {
  assert(StringRef(bytes).substr(kStart, kBytecodeProducer.size()) == kBytecodeProducer && "another producer's");
  bytes.replace(kStart + kWords, kDigits, digest(bytes));
}

static bool isSealed(StringRef bytes) {
  StringRef words = bytes.substr(kStart, kWords), wanted = kBytecodeProducer.take_front(kWords);
  return bytes.size() >= kStart + kBytecodeProducer.size() &&
         (words.take_front(kHalf) == wanted.take_front(kHalf) || words.drop_front(kHalf) == wanted.drop_front(kHalf));
}

/// The signal that ends `job` in a process of its own; 0 where none does, or there is no such process.
static int tryApart(function_ref<void()> job) {
  pid_t child = ::fork();
  if (child < 0)
    return 0;
  if (child == 0) {
    for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP})
      ::signal(number, SIG_DFL);
    rlimit none = {0, 0};
    ::setrlimit(RLIMIT_CORE, &none);
    // What it has to say, the parent will.
    if (FILE *nowhere = std::freopen("/dev/null", "w", stderr))
      (void)nowhere;
    job();
    ::_exit(0);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR)
    continue;
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

Error checkBytecode(StringRef bytes, function_ref<void()> parse) {
  if (!bytes.starts_with(kBytecodeMagic))
    return Error::success();
  if (isSealed(bytes)) {
    if (bytes.substr(kStart + kWords, kDigits) == digest(bytes.str()))
      return Error::success();
    return makeError("the bytecode is damaged: it is not what was written, by its digest");
  }
  if (int signal = tryApart(parse))
    return makeError("the bytecode is damaged, or of another MLIR: reading it ends with a signal ({0})",
                     strsignal(signal));
  return Error::success();
}

} // namespace cleave
