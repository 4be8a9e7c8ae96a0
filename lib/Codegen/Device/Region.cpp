//===- Region.cpp - regions that are kernels of a device ------------------===//
//
// Before a schedule is made, reductions become such that rows can be swept: reshapes behind results go (they change no byte), dims are
// merged as on the host, and a reduction of several neighboring dims is one of a single dim of what is reshaped:
//
//   reduce %x dims [1, 2] : [8, 3, 5, 16]    ->    reduce (reshape %x : [8, 15, 16]) dims [1]
//
//===----------------------------------------------------------------------===//
#include "../Compose.h"
#include "../Expand.h"
#include "Templates.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "cleave/Dialect/Nn/IR/Ops/Reduction.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;

static void dropReshapes(func::FuncOp region) {
  Operation *end = region.front().getTerminator();
  for (OpOperand &operand : end->getOpOperands())
    while (auto reshape = operand.get().getDefiningOp<nn::ReshapeOp>())
      operand.set(reshape.getInput());
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(region.front())))
    if (&op != end && op.use_empty())
      op.erase();
}

/// One dim of all that are reduced, if they are neighbors but for dims of 1; nothing else changes.
static void mergeReducedDims(nn::ReduceOp op) {
  ArrayRef<int64_t> shape = getShape(op.getInput());
  SmallVector<int64_t> dims;
  llvm::copy_if(op.getDims(), std::back_inserter(dims), [&](int64_t dim) { return shape[dim] != 1; });
  llvm::sort(dims);
  if (op.getDims().size() < 2 || dims.empty() || !op.getKeepDims())
    return;
  for (int64_t dim = dims.front(); dim < dims.back(); ++dim)
    if (shape[dim] != 1 && !llvm::is_contained(dims, dim))
      return;
  int64_t reduced = countElements(shape.slice(dims.front(), dims.back() - dims.front() + 1));
  SmallVector<int64_t> merged(shape.take_front(dims.front()));
  merged.push_back(reduced);
  llvm::append_range(merged, shape.drop_front(dims.back() + 1));
  OpBuilder b(op);
  Composer c(b, op);
  Value result = c.reduce(op.getKind(), c.reshape(op.getInput(), merged), {dims.front()}, /*keepDims=*/true);
  op.replaceAllUsesWith(c.reshape(result, getShape(op)));
  op.erase();
}

OwningOpRef<func::FuncOp> cleave::codegen::prepareForDevice(Block &block) {
  OwningOpRef<func::FuncOp> region = expandRegion(block);
  dropReshapes(*region);
  mergeDims(*region);
  for (auto op : llvm::make_early_inc_range(region->front().getOps<nn::ReduceOp>()))
    mergeReducedDims(op);
  dropReshapes(*region);
  return region;
}

//===----------------------------------------------------------------------===//
// What there is a kernel for
//===----------------------------------------------------------------------===//

/// Ops that fill have a kernel alone, which is their last op.
static bool fillsAlone(const Schedule &schedule, Operation *op) {
  return op->getNumResults() == schedule.results.size() &&
         llvm::all_of(op->getResults(), [&](Value value) { return llvm::count(schedule.results, value) == 1; });
}

bool cleave::codegen::canEmitDevice(Block &block, std::string &reason) {
  if (!haveLowerings(block, Processor::Device, reason))
    return false;
  OwningOpRef<func::FuncOp> region = prepareForDevice(block);
  Schedule schedule(*region, Processor::Device);
  for (Operation *op : schedule.filled) {
    const Lowering *lowering = getLowerings().find(op);
    if (schedule.filled.size() == 1 && !schedule.anchor && lowering->isFilled(Processor::Device) &&
        fillsAlone(schedule, op))
      continue;
    reason = (op->getName().getStringRef() +
              " has to lie in memory before what is computed of it: it is a kernel of its own")
                 .str();
    return false;
  }
  for (Operation &op : region->front().without_terminator())
    if (const Lowering *lowering = getLowerings().find(&op);
        lowering->tile && !lowering->pull && !lowering->fill && !lowering->deviceTile) {
      reason = (op.getName().getStringRef() + " has no lowering for devices").str();
      return false;
    }
  return true;
}

DeviceSplits cleave::codegen::findDeviceSplits(Block &block) {
  // Dims are merged in each part by itself: types stay those of the block.
  OwningOpRef<func::FuncOp> region = expandRegion(block);
  Schedule schedule(*region, Processor::Device);
  return {std::move(region), schedule.filled};
}
