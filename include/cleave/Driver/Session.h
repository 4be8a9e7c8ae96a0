//===- Session.h - what all commands of `cleave` share ----------*- C++ -*-===//
#ifndef CLEAVE_DRIVER_SESSION_H
#define CLEAVE_DRIVER_SESSION_H

#include "cleave/Compiler/Compilation.h"
#include "cleave/Driver/Options.h"
#include "cleave/Runner/Progress.h"
#include "cleave/Runtime/CommandFiles.h"
#include "llvm/ADT/StringSet.h"

namespace cleave::driver {

/// A compilation that prints its diagnostics the way docs/style.md asks for, and ends with an exit code.
class Session : public Compilation {
public:
  explicit Session(const Options &options);

  const Options &getOptions() const { return options; }

  /// What the worst error so far asks for.
  ExitCode getExitCode() const;
  /// Makes an error, and says how to end.
  ExitCode fail(llvm::Error error, Blame blame = Blame::Input);

  /// Loads the model, as `Compilation::load` does, sees that nothing that is read would be lost, and warns of options that
  /// have no effect on such a model.
  bool load();
  /// False after an error: of the files some would be lost.
  bool checkFiles(const runtime::CommandFiles &files);

private:
  void print(const Diagnostic &diagnostic);
  void warnOfIdle();

  Options options;
  bool useColor = false;
  /// Remarks and warnings printed so far.
  llvm::StringSet<> said;
  runner::Progress progress;
};

/// The commands.
ExitCode inspectCommand(Session &session);
/// `inspect` of a program file; nothing where the file is none, but for a model.
std::optional<ExitCode> inspectProgram(Session &session);
ExitCode importCommand(Session &session);
ExitCode lspCommand(Session &session);
ExitCode planCommand(Session &session);
ExitCode pageCommand(Session &session);
/// The page of `--html`, where one is asked for; the model is taken anew.
ExitCode writePage(Session &session);
/// The page of a compilation of the session's model, loaded or not.
ExitCode writePage(Session &session, Compilation &compilation, const std::string &path);
ExitCode shardCommand(Session &session);
ExitCode explainCommand(Session &session);
ExitCode runCommand(Session &session);
ExitCode compileCommand(Session &session);
ExitCode exportCommand(Session &session);
ExitCode benchCommand(Session &session);
/// `bench --calibrate`.
ExitCode calibrateCommand(Session &session);
ExitCode scheduleCommand(Session &session);
ExitCode trainCommand(Session &session);

} // namespace cleave::driver

#endif // CLEAVE_DRIVER_SESSION_H
