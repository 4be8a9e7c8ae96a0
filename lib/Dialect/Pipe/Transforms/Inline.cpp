//===- Inline.cpp - one block for each rank of the pipeline ---------------===//
//
//   before   %p = pipe.part %x[1] split 0 of 2   %h = call @main.stage0(%p)    pipe.send %h to 1 ..
//   after    %p = nn.slice %x starts [8, 0] ..   %h = nn.exp %p                pipe.send %h to 1 ..
//
// What kernels are formed of: functions of ranks alone, bodies instead of calls, parts of a batch as slices. A parameter that
// every microbatch reads is loaded once.
//
//===----------------------------------------------------------------------===//
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

static Value slice(OpBuilder &builder, Location loc, Value value, int64_t dim, int64_t start, int64_t size) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> starts(type.getRank(), 0), sizes(type.getShape()), steps(type.getRank(), 1);
  starts[dim] = start;
  sizes[dim] = size;
  return nn::SliceOp::create(builder, loc, type.clone(sizes), value, starts, sizes, steps);
}

static Value concat(OpBuilder &builder, Location loc, ArrayRef<Value> values, int64_t dim) {
  return values.size() == 1 ? values.front()
                            : nn::ConcatOp::create(builder, loc, values, static_cast<uint64_t>(dim)).getResult();
}

/// Piece `index` of each block, one behind the other.
static Value makePart(OpBuilder &builder, PartOp op) {
  int64_t dim = static_cast<int64_t>(op.getDim()), blocks = static_cast<int64_t>(op.getBlocks());
  int64_t block = op.getInput().getType().getDimSize(dim) / blocks, index = static_cast<int64_t>(*op.getIndex());
  Deal deal = op.getDeal();
  SmallVector<Value> pieces;
  for (int64_t number = 0; number < blocks; ++number)
    pieces.push_back(slice(builder, op.getLoc(), op.getInput(), dim,
                           number * block + block / deal.samples * deal.getStart(index), deal.getExtent(block, index)));
  return concat(builder, op.getLoc(), pieces, dim);
}

/// Block by block, a piece of each part.
static Value makeJoin(OpBuilder &builder, JoinOp op) {
  int64_t dim = static_cast<int64_t>(op.getDim()), blocks = static_cast<int64_t>(op.getBlocks());
  SmallVector<Value> pieces;
  for (int64_t block = 0; block < blocks; ++block)
    for (Value part : op.getParts()) {
      int64_t extent = cast<RankedTensorType>(part.getType()).getDimSize(dim) / blocks;
      pieces.push_back(blocks == 1 ? part : slice(builder, op.getLoc(), part, dim, block * extent, extent));
    }
  return concat(builder, op.getLoc(), pieces, dim);
}

void Inline::runOnOperation() {
  ModuleOp module = getOperation();
  // What only the loop needs is of no use any more.
  for (auto func : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
    if (!func.getOps<MicrobatchesOp>().empty())
      func.erase();
  for (auto table : llvm::make_early_inc_range(module.getOps<ScheduleOp>()))
    table.erase();
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
  for (auto func : module.getOps<func::FuncOp>())
    mergeEqual(func);
}
