//===- Crash.cpp - a bug of ours leaves a reproducer ----------------------===//
//
// The command line is formatted when the handler is installed: in a signal handler little may be done, and only
// open, write and the stack printer are. Memory that runs out is no bug of ours: one line, and no reproducer.
//
//===----------------------------------------------------------------------===//
#include "cleave/Driver/Crash.h"

#include "cleave/Driver/Options.h"
#include "cleave/Program/Exhaustion.h"
#include "cleave/Runtime/Files.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"

#include <csignal>
#include <fcntl.h>
#include <iterator>
#include <string>
#include <unistd.h>

static std::string reproducer, path, message;

/// `text` for a POSIX shell.
static std::string quoteForShell(llvm::StringRef text) {
  std::string quoted = "'";
  for (char c : text)
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

static void writeReproducer(bool withStack) {
  int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
  if (file >= 0) {
    (void)!::write(file, reproducer.data(), reproducer.size());
    llvm::raw_fd_ostream os(file, /*shouldClose=*/false);
    if (withStack)
      llvm::sys::PrintStackTrace(os);
    os.flush();
    ::close(file);
  }
  (void)!::write(2, message.data(), message.size());
}

static void handleCrash(void *) {
  writeReproducer(/*withStack=*/true);
  ::_exit(cleave::driver::kInternalError);
}

/// LLVM ends a process whose system has no thread for it; of all else that it cannot bear, the signal tells.
static void handleFatalError(void *, const char *reason, bool) {
  if (llvm::StringRef(reason).contains("pthread_create"))
    cleave::program::endWithoutThreads();
  llvm::errs() << "LLVM ERROR: " << reason << '\n';
}

/// Nothing is left half-written, of files that have a name or have none; and 128 and the signal, as of cleave-run.
static void handleEnd(int signal) {
  cleave::runtime::discardUnfinished();
  ::_exit(128 + signal);
}

void cleave::driver::reportBug() { writeReproducer(/*withStack=*/false); }

void cleave::driver::installCrashHandler(int argc, const char *const *argv) {
  path = "cleave-crash-" + std::to_string(llvm::sys::Process::getProcessId()) + ".sh";
  reproducer = "#!/bin/sh\n# cleave " CLEAVE_VERSION " (LLVM " CLEAVE_LLVM_VERSION ") crashed on this command:\n";
  for (int i = 0; i < argc; ++i)
    reproducer += (i ? " " : "") + quoteForShell(argv[i]);
  reproducer += "\nexit $?\n# Stack:\n";
  message = "cleave: internal error: this is a bug of Cleave; " + path + " repeats it, please report it\n";
  // Those that end a process politely are not LLVM's, which would let them. Who was started with nohup, or in the background of a
  // script, goes on.
  constexpr int kEnds[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction ends[std::size(kEnds)] = {};
  for (size_t i = 0; i < std::size(kEnds); ++i) {
    sigaction(kEnds[i], nullptr, &ends[i]);
    if (ends[i].sa_handler != SIG_IGN)
      ends[i].sa_handler = handleEnd;
  }
  llvm::sys::AddSignalHandler(handleCrash, nullptr);
  for (size_t i = 0; i < std::size(kEnds); ++i)
    sigaction(kEnds[i], &ends[i], nullptr);
  program::endWhenExhausted("cleave", kRunFault);
  llvm::install_bad_alloc_error_handler([](void *, const char *, bool) { program::endWithoutMemory(); });
  llvm::install_fatal_error_handler(handleFatalError);
}
