//===- PlanMemory.cpp - from tensors to views of memory -------------------===//
//
// What has no command becomes a kernel (KeepOnFirst.h), states are copied for whom they are no longer (KeepStates.h), every value gets its place (Placement.h), and then each op becomes
// its command (Commands.h).
//
// Of a pipeline each rank's function is planned by itself, with buffers of its own. What they share are kernels, of which the first
// function that launches one says where it works in place, and the table of what differs between ranks inside of a stage.
//
//===----------------------------------------------------------------------===//
#include "../Memory/Commands.h"
#include "../Memory/KeepOnFirst.h"
#include "../Memory/KeepStates.h"
#include "cleave/Dialect/Exec/Transforms/Passes.h"
#include "cleave/Dialect/Pipe/IR/Pipe.h"

namespace cleave::exec {
#define GEN_PASS_DEF_PLANMEMORY
#include "cleave/Dialect/Exec/IR/ExecPasses.h.inc"
} // namespace cleave::exec

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

/// The function that is the program, or those of the ranks of a pipeline; declarations are none. Nothing after an error.
static SmallVector<func::FuncOp> findProgram(ModuleOp module) {
  SmallVector<func::FuncOp> found;
  for (auto func : module.getOps<func::FuncOp>()) {
    if (func.isExternal())
      continue;
    if (!found.empty() && !(pipe::getRank(func) && pipe::getRank(found.front()))) {
      InFlightDiagnostic error = func.emitOpError("is a second function, and a program is one");
      error.attachNote(found.front().getLoc()) << "the first one is here";
      return {};
    }
    found.push_back(func);
  }
  if (found.empty())
    module.emitError("has no function");
  return found;
}

namespace {
struct PlanMemory : cleave::exec::impl::PlanMemoryBase<PlanMemory> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(enterPhase(getOperation(), Phase::Planned)))
      return signalPassFailure();
    SmallVector<func::FuncOp> program = findProgram(getOperation());
    RankTable table(getOperation());
    if (program.empty() || !llvm::all_of(program, [&](func::FuncOp func) { return succeeded(plan(func, table)); }))
      signalPassFailure();
  }

private:
  LogicalResult plan(func::FuncOp func, RankTable &table) {
    if (!func.getBody().hasOneBlock())
      return func.emitOpError("has control flow");
    Block &block = func.getBody().front();
    FailureOr<SmallVector<spmd::StatePlace>> states = spmd::getStates(func);
    if (failed(states))
      return failure();
    keepOnFirstByKernels(block);
    copyOldStates(func, *states);
    Placement placement(block, table, *states, codegen::KernelRules::get(forDevices));
    placement.run();
    return CommandBuilder(func, placement, table).run();
  }
};
} // namespace
