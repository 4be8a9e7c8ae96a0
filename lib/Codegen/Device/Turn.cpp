//===- Turn.cpp - transposes on devices -----------------------------------===//
//
// Squares of 32 x 32 elements go through shared memory: read along the operand's last dim, written along the result's. A row of the
// square has one element more than it needs, so that columns lie in different banks. 32 x 8 threads, four elements each.
//
//===----------------------------------------------------------------------===//
#include "Templates.h"

#include "cleave/Dialect/Nn/IR/Ops/Convolution.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;

static constexpr int64_t kSide = 32, kHigh = 8;

/// True if `value` is pooled with channels last, so that threads along the result's last dim read neighbors.
static bool isPooledAlongChannels(Value value) {
  auto pool = value.getDefiningOp<nn::PoolOp>();
  return pool && pool.getInput().getDefiningOp<nn::TransposeOp>();
}

/// Short dims leave most of a square empty.
std::optional<Anchor> cleave::codegen::findTurned(func::FuncOp region, ArrayRef<Result> group) {
  SmallVector<Value> values;
  for (const Result &result : group)
    values.push_back(result.value);
  for (auto op : region.getOps<nn::TransposeOp>()) {
    ArrayRef<int64_t> permutation = op.getPermutation(), shape = getShape(op);
    int64_t rank = permutation.size(), other = llvm::find(permutation, rank - 1) - permutation.begin();
    if (rank < 2 || other == rank - 1 || shape[other] < kHigh || shape[rank - 1] < kHigh ||
        isPooledAlongChannels(op.getInput()))
      continue;
    Anchor anchor;
    if (anchor.follow(op, values) && llvm::all_of(values, [&](Value value) { return anchor.has(value); }))
      return anchor;
  }
  return std::nullopt;
}

void cleave::codegen::runTurned(DeviceEmitter &e, nn::TransposeOp op, TileSink sink) {
  PlaceBuilder &p = e.places;
  ArrayRef<int64_t> shape = getShape(op), permutation = op.getPermutation();
  int64_t rank = shape.size(), last = rank - 1, other = llvm::find(permutation, last) - permutation.begin();
  SmallVector<int64_t> squares(shape);
  for (int64_t dim : {last, other})
    squares[dim] = llvm::divideCeil(shape[dim], kSide);
  e.launch(countElements(squares), kSide * kHigh);
  Value x = p.rem(e.getThread(), kSide), y = p.div(e.getThread(), kSide);
  Value square = e.share(ElementBuilder::getStoredType(getElementType(op)), kSide * (kSide + 1));
  SmallVector<Value> origin = p.delinearize(e.getBlock(), squares);
  // Four rows of the square each, with threads side by side along dim `fast` of the result.
  auto overSquare = [&](int64_t fast, int64_t slow, function_ref<void(const Point &, Value)> body) {
    for (int64_t row = 0; row < kSide; row += kHigh) {
      Value inSquare = p.add(y, row);
      Point point;
      for (Value place : origin)
        point.push_back({place});
      point[fast] = {p.add(p.mul(origin[fast], kSide), x)};
      point[slow] = {p.add(p.mul(origin[slow], kSide), inSquare)};
      Value isThere;
      for (int64_t dim : {fast, slow})
        if (shape[dim] % kSide) {
          Value isIn = p.isLess(point[dim].base, shape[dim]);
          isThere = isThere ? e.elements.both(isThere, isIn) : isIn;
        }
      auto call = [&] { body(point, inSquare); };
      isThere ? e.when(isThere, call) : call();
    }
  };
  overSquare(other, last, [&](const Point &point, Value row) {
    e.store(square, e.eval(op.getResult(), point), {p.add(p.mul(row, kSide + 1), x)});
  });
  e.barrier();
  overSquare(last, other, [&](const Point &point, Value row) {
    sink(point, e.load(square, getElementType(op), {p.add(p.mul(x, kSide + 1), row)}));
  });
}
