//===- Expand.cpp - regions in simple ops ---------------------------------===//
//
// Composite ops are replaced until none is left; what they are replaced by is their family's business. Merging of dims
// then makes long rows of short ones:
//
//   [8, 32, 384] + [384]    ->    [256, 384] + [1, 384]
//
//===----------------------------------------------------------------------===//
#include "Expand.h"
#include "Lowerings.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;

static OwningOpRef<func::FuncOp> copyRegion(Block &region) {
  Operation *end = region.getTerminator();
  OpBuilder b(end->getContext());
  auto type = b.getFunctionType(region.getArgumentTypes(), end->getOperandTypes());
  OwningOpRef<func::FuncOp> func = func::FuncOp::create(end->getLoc(), "region", type);
  Block *body = func->addEntryBlock();
  IRMapping map;
  map.map(region.getArguments(), body->getArguments());
  b.setInsertionPointToEnd(body);
  for (Operation &op : region.without_terminator())
    b.clone(op, map);
  SmallVector<Value> results;
  for (Value result : end->getOperands())
    results.push_back(map.lookupOrDefault(result));
  func::ReturnOp::create(b, end->getLoc(), results);
  return func;
}

/// Until nothing is left to expand, since a softmax becomes reductions, which become others in turn.
OwningOpRef<func::FuncOp> cleave::codegen::expandRegion(Block &region) {
  OwningOpRef<func::FuncOp> func = copyRegion(region);
  bool again = true;
  while (again) {
    again = false;
    for (Operation &op : llvm::make_early_inc_range(func->front())) {
      const Lowering *lowering = getLowerings().find(&op);
      if (!lowering || !lowering->expand)
        continue;
      OpBuilder b(&op);
      Value with = lowering->expand(b, &op);
      if (!with)
        continue;
      op.getResult(0).replaceAllUsesWith(with);
      op.erase();
      again = true;
    }
  }
  return func;
}

//===----------------------------------------------------------------------===//
// Merging of dims
//===----------------------------------------------------------------------===//

namespace {
/// Shapes of all values, aligned at the minor dim to one rank.
struct Shapes {
  SmallVector<Value> values;
  SmallVector<SmallVector<int64_t>> extents;
  SmallVector<int64_t> largest;
};
} // namespace

/// Of every dim the largest extent: others are 1 there, or no merging is possible.
static Shapes collectShapes(func::FuncOp region) {
  Shapes shapes;
  llvm::append_range(shapes.values, region.getArguments());
  for (Operation &op : region.front())
    llvm::append_range(shapes.values, op.getResults());
  size_t rank = 0;
  for (Value value : shapes.values)
    rank = std::max(rank, getShape(value).size());
  shapes.largest.assign(rank, 1);
  for (Value value : shapes.values) {
    SmallVector<int64_t> extents(rank - getShape(value).size(), 1);
    llvm::append_range(extents, getShape(value));
    for (size_t dim = 0; dim < rank; ++dim)
      if (extents[dim] != 1)
        shapes.largest[dim] = extents[dim];
    shapes.extents.push_back(extents);
  }
  return shapes;
}

/// The dims of a reduction, where two neighbors have become one; nothing if it reduces one of the two only.
static std::optional<SmallVector<int64_t>> mergeReduced(ArrayRef<int64_t> dims, int64_t first) {
  if (llvm::is_contained(dims, first) != llvm::is_contained(dims, first + 1))
    return std::nullopt;
  SmallVector<int64_t> merged;
  for (int64_t dim : dims)
    if (dim != first + 1)
      merged.push_back(dim > first ? dim - 1 : dim);
  return merged;
}

/// True for a reshape that puts dims of one element in front, or takes them away: behind a reduction that does not keep its dims.
static bool movesNothing(Operation *op) {
  if (!isa<nn::ReshapeOp>(op))
    return false;
  auto isOne = [](int64_t extent) { return extent == 1; };
  ArrayRef<int64_t> from = getShape(op->getOperand(0)), to = getShape(op->getResult(0));
  return from.drop_while(isOne) == to.drop_while(isOne);
}

/// Reductions that keep their dims, of operands with all dims; nothing if there are others, or ops that move elements.
static std::optional<SmallVector<Operation *>> findReductions(func::FuncOp region, size_t rank) {
  SmallVector<Operation *> reductions;
  for (Operation &op : region.front().without_terminator()) {
    const Lowering *lowering = getLowerings().find(&op);
    if (lowering->element || op.hasTrait<OpTrait::ConstantLike>() || movesNothing(&op))
      continue;
    if (!lowering->fold || getShape(op.getOperand(0)).size() != rank || getShape(op.getResult(0)).size() != rank)
      return std::nullopt;
    reductions.push_back(&op);
  }
  return reductions;
}

/// From the minor end, so that a merged pair may merge with the dim before it. Types are changed in place: ops keep their
/// attributes, and none that stays here has one that speaks of dims but the reductions.
void cleave::codegen::mergeDims(func::FuncOp region) {
  Shapes shapes = collectShapes(region);
  std::optional<SmallVector<Operation *>> reductions = findReductions(region, shapes.largest.size());
  if (!reductions)
    return;
  for (int64_t dim = int64_t(shapes.largest.size()) - 2; dim >= 0; --dim) {
    auto isFullOrNot = [&](ArrayRef<int64_t> extents) {
      bool first = extents[dim] == shapes.largest[dim], second = extents[dim + 1] == shapes.largest[dim + 1];
      bool noFirst = extents[dim] == 1, noSecond = extents[dim + 1] == 1;
      return (first && second) || (noFirst && noSecond);
    };
    auto canMerge = [&](Operation *op) {
      return mergeReduced(getLowerings().find(op)->fold->getDims(op), dim).has_value();
    };
    if (!llvm::all_of(shapes.extents, isFullOrNot) || !llvm::all_of(*reductions, canMerge))
      continue;
    for (Operation *op : *reductions) {
      const FoldLowering &fold = *getLowerings().find(op)->fold;
      fold.setDims(op, *mergeReduced(fold.getDims(op), dim));
    }
    for (SmallVector<int64_t> &extents : shapes.extents) {
      extents[dim] *= extents[dim + 1];
      extents.erase(extents.begin() + dim + 1);
    }
    shapes.largest[dim] *= shapes.largest[dim + 1];
    shapes.largest.erase(shapes.largest.begin() + dim + 1);
  }
  for (auto [value, extents] : llvm::zip_equal(shapes.values, shapes.extents))
    value.setType(RankedTensorType::get(extents, getElementType(value)));
}
