//===- Commands.cpp - import and shard ------------------------------------===//
#include "cleave/Driver/Session.h"

#include "cleave/Driver/ReportFile.h"
#include "cleave/Support/Status.h"
#include "llvm/Support/BuryPointer.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::driver;

int cleave::driver::importCommand(Session &session) {
  OwningOpRef<ModuleOp> module = session.load();
  if (!module)
    return kBadInput;
  if (llvm::Error error = writeModule(*module, session.getOptions().output))
    return session.fail(std::move(error));
  return kDone;
}

int cleave::driver::shardCommand(Session &session) {
  const Options &options = session.getOptions();
  OwningOpRef<ModuleOp> module = session.load();
  if (!module)
    return kBadInput;
  if (options.emit >= Phase::Annotated && !session.hasMesh(*module))
    return session.fail(makeError("no mesh is given: use --mesh data=2,model=4, or a plan with one"));
  bool isPartitioned = options.emit >= Phase::Partitioned;
  // What is reported must be there before anything is written.
  if (isPartitioned)
    if (llvm::Expected<func::FuncOp> func = getEntry(*module); !func)
      return session.fail(func.takeError());
  if (int code = session.advance(*module, options.emit))
    return code;
  if (llvm::Error error = writeModule(*module, options.output))
    return session.fail(std::move(error));
  // The module itself goes to standard output where no file is named; the table would spoil it.
  bool printsTable = !options.quiet && !options.output.empty() && options.output != "-";
  int code = kDone;
  if (isPartitioned)
    code = writeReport(session, *module, printsTable);
  else
    printSeconds(session);
  // Nothing comes after; to free a large module op by op would take as long as a phase.
  llvm::BuryPointer(module.release().getOperation());
  return code;
}
