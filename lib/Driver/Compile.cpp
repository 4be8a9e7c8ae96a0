//===- Compile.cpp - from a model to a program file -----------------------===//
//
// The library makes and writes the program (Compiler/Compile.h); what is in it is printed.
//
//===----------------------------------------------------------------------===//
#include "cleave/Compiler/Compile.h"

#include "cleave/Driver/ReportFile.h"
#include "cleave/Driver/Session.h"

using namespace cleave;
using namespace cleave::driver;

ExitCode cleave::driver::compileCommand(Session &session) {
  const Options &options = session.getOptions();
  if (!session.load())
    return session.getExitCode();
  std::optional<Report> report = compileModel(session, options.output);
  return report ? writeReport(session, *report, !options.quiet) : session.getExitCode();
}
