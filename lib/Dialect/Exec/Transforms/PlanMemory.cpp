//===- PlanMemory.cpp - from tensors to views of memory -------------------===//
//
// What has no command becomes a kernel (KeepOnFirst.h), states are copied for whom they are no longer (KeepStates.h), every value gets its place (Placement.h), and then each op becomes
// its command (Commands.h).
//
//===----------------------------------------------------------------------===//
#include "Commands.h"
#include "KeepOnFirst.h"
#include "KeepStates.h"
#include "cleave/Dialect/Exec/Transforms/Passes.h"

namespace cleave::exec {
#define GEN_PASS_DEF_PLANMEMORY
#include "cleave/Dialect/Exec/IR/ExecPasses.h.inc"
} // namespace cleave::exec

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

/// The function that is the program; declarations are none. Null after an error.
static func::FuncOp findProgram(ModuleOp module) {
  func::FuncOp found;
  for (auto func : module.getOps<func::FuncOp>()) {
    if (func.isExternal())
      continue;
    if (found) {
      InFlightDiagnostic error = func.emitOpError("is a second function, and a program is one");
      error.attachNote(found.getLoc()) << "the first one is here";
      return {};
    }
    found = func;
  }
  if (!found)
    module.emitError("has no function");
  return found;
}

namespace {
struct PlanMemory : cleave::exec::impl::PlanMemoryBase<PlanMemory> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(enterPhase(getOperation(), Phase::Planned)))
      return signalPassFailure();
    func::FuncOp func = findProgram(getOperation());
    if (!func)
      return signalPassFailure();
    if (!func.getBody().hasOneBlock()) {
      func.emitOpError("has control flow");
      return signalPassFailure();
    }
    Block &block = func.getBody().front();
    FailureOr<SmallVector<spmd::StatePlace>> states = spmd::getStates(func);
    if (failed(states))
      return signalPassFailure();
    keepOnFirstByKernels(block);
    copyOldStates(func, *states);
    RankTable table(getOperation());
    Placement placement(block, table, *states, forDevices);
    placement.run();
    if (failed(CommandBuilder(func, placement, table).run()))
      signalPassFailure();
  }
};
} // namespace
