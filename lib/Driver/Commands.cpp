//===- Commands.cpp - import and shard ------------------------------------===//
//
// Both load, take the module as far as was asked for, and write it. Nothing is written before all has gone well, so
// that a file that is there is right.
//
//===----------------------------------------------------------------------===//
#include "cleave/Driver/ReportFile.h"
#include "cleave/Driver/Session.h"
#include "cleave/Export/Placements.h"
#include "cleave/Support/File.h"
#include "cleave/Support/Status.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::driver;

ExitCode cleave::driver::importCommand(Session &session) {
  if (session.load())
    session.write(session.getOptions().output);
  return session.getExitCode();
}

/// What was decided, in the words of other frameworks.
static bool writeElsewhere(Session &session, EmitForm form) {
  func::FuncOp func = session.getEntry();
  if (!func)
    return false;
  auto write = [&](llvm::raw_ostream &os) {
    if (form == EmitForm::Shardy)
      writeShardy(os, func);
    else
      os << llvm::formatv("{0:2}\n", llvm::json::Value(describePlacements(func)));
    return llvm::Error::success();
  };
  const Options &options = session.getOptions();
  llvm::Error error = options.writesToOutput() ? write(llvm::outs()) : writeFileAtomically(options.output, write);
  return error ? session.fail(std::move(error)) == kDone : true;
}

static bool writeDecided(Session &session, EmitForm form) {
  return form == EmitForm::Onnx ? session.writeOnnx(session.getOptions().output) : writeElsewhere(session, form);
}

ExitCode cleave::driver::shardCommand(Session &session) {
  const Options &options = session.getOptions();
  if (!session.load())
    return session.getExitCode();
  if (options.getEmit() >= Phase::Annotated && !session.hasMesh())
    return session.fail(makeError("no mesh is given: use --mesh data=2,model=4, or a plan with one"), Blame::Options);
  Phase last = options.emit.phase.value_or(session.getLastPhase());
  bool isPartitioned = last >= Phase::Partitioned;
  std::optional<Report> report;
  // What is reported must be there before anything is written.
  bool isDone = !isPartitioned || session.getEntry();
  if (!isDone || !(options.emit.form != EmitForm::Module
                       ? session.advance(last) && writeDecided(session, options.emit.form)
                       : session.advanceAndWrite(last, options.output, isPartitioned ? &report : nullptr)))
    return session.getExitCode();
  // The module itself goes to standard output where no file is named; the rest would spoil it.
  bool hasModule = options.writesToOutput();
  if (report)
    return writeReport(session, *report, /*printsTable=*/!hasModule && !options.quiet);
  printSeconds(session);
  return kDone;
}
