//===- Inline.cpp - one block for each rank of the pipeline ---------------===//
//
//   before   %p = pipe.part %x[1] split 0 of 2   %h = call @main.stage0(%p)    pipe.send %h to 1 ..
//   after    %p = nn.slice %x starts [8, 0] ..   %h = nn.exp %p                pipe.send %h to 1 ..
//
// What kernels are formed of: functions of ranks alone, bodies instead of calls, parts of a batch as slices. A parameter that
// every microbatch reads is loaded once.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Exec/IR/Bucket.h"
#include "cleave/Dialect/Nn/IR/Composer.h"
#include "cleave/Dialect/Nn/Transforms/InlineCalls.h"
#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "cleave/Dialect/Pipe/Transforms/Passes.h"
#include "cleave/Transforms/MergeEqual.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace cleave::pipe {
#define GEN_PASS_DEF_INLINE
#include "cleave/Dialect/Pipe/IR/PipePasses.h.inc"
} // namespace cleave::pipe

using namespace mlir;
using namespace cleave;
using namespace cleave::pipe;

namespace {
struct Inline : pipe::impl::InlineBase<Inline> {
  using InlineBase::InlineBase;

  void runOnOperation() override;
};
} // namespace

/// Piece `index` of each block, one behind the other.
static Value makePart(OpBuilder &builder, PartOp op) {
  nn::Composer f(builder, op.getLoc());
  int64_t dim = static_cast<int64_t>(op.getDim()), blocks = static_cast<int64_t>(op.getBlocks());
  int64_t block = op.getInput().getType().getDimSize(dim) / blocks, index = static_cast<int64_t>(*op.getIndex());
  Deal deal = op.getDeal();
  SmallVector<Value> pieces;
  for (int64_t number = 0; number < blocks; ++number)
    pieces.push_back(f.sliceDim(op.getInput(), dim, number * block + block / deal.samples * deal.getStart(index),
                                deal.getExtent(block, index)));
  return f.concat(pieces, dim);
}

/// Block by block, a piece of each part.
static Value makeJoin(OpBuilder &builder, JoinOp op) {
  nn::Composer f(builder, op.getLoc());
  int64_t dim = static_cast<int64_t>(op.getDim()), blocks = static_cast<int64_t>(op.getBlocks());
  SmallVector<Value> pieces;
  for (int64_t block = 0; block < blocks; ++block)
    for (Value part : op.getParts()) {
      int64_t extent = cast<RankedTensorType>(part.getType()).getDimSize(dim) / blocks;
      pieces.push_back(f.sliceDim(part, dim, block * extent, extent));
    }
  return f.concat(pieces, dim);
}

/// How many collectives of the functions that are called have each number of a bucket.
static DenseMap<int64_t, int64_t> countBuckets(ModuleOp module) {
  DenseMap<int64_t, int64_t> members;
  module.walk([&](Operation *op) {
    if (IntegerAttr bucket = exec::getBucket(op))
      ++members[bucket.getInt()];
  });
  return members;
}

/// A body that is called for each microbatch has its reductions as often, and those of two calls are no bucket: the first ones may be read
/// before the last ones are there. Copies stand one behind the other, so members of one come in a row.
static void renumberBuckets(func::FuncOp func, const DenseMap<int64_t, int64_t> &members) {
  int64_t count = 0;
  for (auto [number, size] : members)
    count = std::max(count, number + 1);
  DenseMap<int64_t, int64_t> seen;
  Builder builder(func.getContext());
  for (Operation &op : func.getBody().front())
    if (IntegerAttr bucket = exec::getBucket(&op)) {
      int64_t number = bucket.getInt(), copy = seen[number]++ / members.at(number);
      op.setAttr(exec::kBucketAttr, builder.getI64IntegerAttr(number + copy * count));
    }
}

void Inline::runOnOperation() {
  ModuleOp module = getOperation();
  // What only the loop needs is of no use any more.
  for (auto func : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
    if (!func.getOps<MicrobatchesOp>().empty())
      func.erase();
  for (auto table : llvm::make_early_inc_range(module.getOps<ScheduleOp>()))
    table.erase();
  DenseMap<int64_t, int64_t> members = countBuckets(module);
  if (failed(nn::inlineCalls(module)))
    return signalPassFailure();
  module.walk([](Operation *op) {
    OpBuilder builder(op);
    Value made;
    if (auto part = dyn_cast<PartOp>(op); part && part.getIndex())
      made = makePart(builder, part);
    else if (auto join = dyn_cast<JoinOp>(op))
      made = makeJoin(builder, join);
    if (!made)
      return;
    op->getResult(0).replaceAllUsesWith(made);
    op->erase();
  });
  for (auto func : module.getOps<func::FuncOp>()) {
    renumberBuckets(func, members);
    mergeEqual(func);
  }
}
