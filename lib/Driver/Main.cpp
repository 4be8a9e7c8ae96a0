//===- Main.cpp - `cleave` as a function ----------------------------------===//
//
// Parses the command line, runs one command, and turns what is left to do into an exit code.
//
//===----------------------------------------------------------------------===//
#include "cleave/Driver/Main.h"

#include "cleave/Driver/Crash.h"
#include "cleave/Driver/Session.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/BuryPointer.h"

using namespace cleave::driver;

/// What nobody got is not done: the exit code says so.
static int finishOutput(int exitCode) {
  llvm::outs().flush();
  if (!llvm::outs().has_error())
    return exitCode;
  llvm::errs() << "cleave: error: cannot write to standard output: " << llvm::outs().error().message() << '\n';
  llvm::outs().clear_error();
  return kBadInput;
}

int cleave::driver::main(int argc, const char *const *argv) {
  int exitCode = kDone;
  std::optional<Options> options = parseCommandLine(argc, argv, exitCode);
  if (!options)
    return finishOutput(exitCode);
  installCrashHandler(argc, argv);
  auto session = std::make_unique<Session>(*options);
  exitCode = llvm::StringSwitch<ExitCode (*)(Session &)>(options->command)
                 .Case("inspect", inspectCommand)
                 .Case("import", importCommand)
                 .Case("lsp", lspCommand)
                 .Case("page", pageCommand)
                 .Case("plan", planCommand)
                 .Case("shard", shardCommand)
                 .Case("bench", benchCommand)
                 .Case("compile", compileCommand)
                 .Case("explain", explainCommand)
                 .Case("export", exportCommand)
                 .Case("run", runCommand)
                 .Case("schedule", scheduleCommand)
                 .Case("train", trainCommand)(*session);
  if (exitCode == kInternalError)
    reportBug();
  // The process ends soon and takes all memory with it.
  llvm::BuryPointer(std::move(session));
  return finishOutput(exitCode);
}
