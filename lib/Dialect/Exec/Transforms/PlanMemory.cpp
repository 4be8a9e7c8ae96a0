//===- PlanMemory.cpp - from tensors to views of memory -------------------===//
//
// What has no command becomes a kernel (KeepOnFirst.h), states are copied for whom they are no longer (KeepStates.h), every value gets its place (BufferAssignment.h), and then each op becomes
// its command (Commands.h).
//
// Of a pipeline each rank's function is planned by itself, with buffers of its own. What they share are kernels, of which the first
// function that launches one says where it works in place, and the table of what differs between ranks inside of a stage.
//
//===----------------------------------------------------------------------===//
#include "../Memory/Commands.h"
#include "../Memory/KeepOnFirst.h"
#include "../Memory/KeepStates.h"
#include "../Memory/Transfers.h"
#include "cleave/Dialect/Exec/Transforms/RecomputePass.h"
#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "llvm/ADT/Statistic.h"
#include "llvm/Support/DebugLog.h"

namespace cleave::exec {
#define GEN_PASS_DEF_PLANMEMORY
#include "cleave/Dialect/Exec/IR/ExecPasses.h.inc"
} // namespace cleave::exec

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

#define DEBUG_TYPE "exec-plan-memory"

ALWAYS_ENABLED_STATISTIC(numBuffers, "buffers of the arena");
ALWAYS_ENABLED_STATISTIC(numBytes, "bytes of the arena");
ALWAYS_ENABLED_STATISTIC(numOffloaded, "values that wait in the host's memory");
ALWAYS_ENABLED_STATISTIC(numBytesBound, "bytes that are needed at once: no plan takes less");

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

/// Places are numbers of 62 bits (Support/MemoryPlan.h). No machine has so much; a file can say it.
static LogicalResult checkSizes(func::FuncOp func) {
  constexpr double most = 0x1p61;
  double bytes = 0;
  auto add = [&](Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    double each = type ? double(spmd::getElementBytes(type.getElementType())) : 0;
    for (int64_t extent : type ? type.getShape() : ArrayRef<int64_t>())
      each *= double(extent);
    bytes += each + double(kAlignment);
  };
  llvm::for_each(func.getArguments(), add);
  func.walk([&](Operation *op) { llvm::for_each(op->getResults(), add); });
  if (bytes < most)
    return success();
  return func.emitOpError("has values of more than 2^61 bytes");
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
  /// Where copies to the host's memory and back begin; what comes of it is told on the function.
  FailureOr<TransferEnds> place(func::FuncOp func) {
    if (func.getOps<OffloadOp>().empty())
      return TransferEnds();
    FailureOr<cost::OpTimes> times = cost::OpTimes::get(getOperation());
    if (failed(times))
      return failure();
    SymbolTable symbols(getOperation());
    cost::OpCosts costs(&*times, &symbols);
    TransferPlan plan = placeTransfers(func.getBody().front(), costs, times->getCluster().device.hostBytesPerNs);
    Builder builder(&getContext());
    func->setAttr(kTransfersAttr, builder.getDictionaryAttr(
                                      {builder.getNamedAttr("values", builder.getI64IntegerAttr(plan.values)),
                                       builder.getNamedAttr("bytes", builder.getI64IntegerAttr(plan.bytes)),
                                       builder.getNamedAttr("stayed", builder.getI64IntegerAttr(plan.stayed)),
                                       builder.getNamedAttr("exposed_ns", builder.getF64FloatAttr(plan.exposedNs))}));
    numOffloaded += plan.values;
    return std::move(plan.ends);
  }

  LogicalResult plan(func::FuncOp func, RankTable &table) {
    if (!func.getBody().hasOneBlock())
      return func.emitOpError("has control flow");
    if (failed(checkSizes(func)))
      return failure();
    Block &block = func.getBody().front();
    FailureOr<SmallVector<spmd::StatePlace>> states = spmd::getStates(func);
    if (failed(states))
      return failure();
    keepOnFirstByKernels(block);
    copyOldStates(func, *states);
    FailureOr<TransferEnds> ends = place(func);
    if (failed(ends))
      return failure();
    BufferAssignment assignment(block, table, *states, codegen::KernelRules::get(forDevices), std::move(*ends));
    assignment.run();
    const MemoryPlan &arena = assignment.getArena();
    numBuffers += arena.offsets.size();
    numBytes += arena.bytes;
    numBytesBound += arena.bound;
    LDBG() << "@" << func.getName() << ": " << arena.offsets.size() << " buffers in " << arena.bytes << " bytes, "
           << arena.bound << " needed at once";
    return CommandBuilder(func, assignment, table).run();
  }
};
} // namespace
