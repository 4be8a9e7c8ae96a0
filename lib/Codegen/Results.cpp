//===- Results.cpp - what kernels store ------------------------------------===//
//
// Behind an anchor values are stored where they were moved to: an element at a point of the anchor is remembered there, and at
// each point that a transpose or reshape makes of it; what is computed of it is then pulled as anything else is.
//
//===----------------------------------------------------------------------===//
#include "Results.h"
#include "Emitter.h"
#include "View.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;

/// Where an element at `point` of a value goes in what is transposed or reshaped from it; nothing if lanes fall apart.
static std::optional<Point> move(Emitter &e, Operation *op, const Point &point) {
  if (auto transpose = dyn_cast<nn::TransposeOp>(op))
    return llvm::map_to_vector<4>(transpose.getPermutation(), [&](int64_t dim) { return point[dim]; });
  return reshapePoint(e, point, getShape(op->getOperand(0)), getShape(op->getResult(0)));
}

/// Elements of the anchor, and what is computed of them: values that were moved are remembered where they went.
void ResultStore::storeAnchored(const Anchor &anchor, ArrayRef<Result> group, const Point &point, Value value) {
  SmallVector<Point> points{point};
  for (const Anchor::Space &space : ArrayRef(anchor.spaces).drop_front()) {
    std::optional<Point> at = move(e, space.move, points[space.from]);
    if (!at)
      return storeOneByOne(anchor, group, point, value);
    points.push_back(*at);
  }
  e.remember(anchor.op->getResult(0), point, value);
  for (Operation *op : anchor.moves)
    e.remember(op->getResult(0), points[anchor.spaceOf.lookup(op->getResult(0))],
               e.eval(op->getOperand(0), points[anchor.spaceOf.lookup(op->getOperand(0))]));
  storeAll(group, [&](const Result &result) { return points[anchor.spaceOf.lookup(result.value)]; });
}

/// Each lane as a point of its own.
void ResultStore::storeOneByOne(const Anchor &anchor, ArrayRef<Result> group, const Point &point, Value value) {
  for (int64_t lane = 0, active = e.getActive(); lane < active; ++lane) {
    Value part = e.takeLanes(value, lane, 1);
    Point single;
    for (const Index &index : point)
      single.push_back({e.places.add(index.base, lane * index.lane)});
    e.asScalar([&] {
      storeAnchored(anchor, group, single, part);
      return 0;
    });
  }
}

void ResultStore::runAnchor(const Anchor &anchor, ArrayRef<Result> group, function_ref<void(TileSink)> run) {
  run([&](const Point &point, Value value) {
    // A vector along a dim of one element is that element.
    Point at = e.broadcast(point, getShape(anchor.op->getResult(0)));
    bool isSpread = isUniform(at) && !isUniform(point);
    isSpread ? storeOneByOne(anchor, group, at, value) : storeAnchored(anchor, group, at, value);
  });
}

/// All results at their points, then all stores: a result may stand where an argument is read at the same point.
void ResultStore::storeAll(ArrayRef<Result> group, function_ref<Point(const Result &)> getPoint) {
  SmallVector<Value> values;
  for (const Result &result : group)
    values.push_back(e.eval(result.value, getPoint(result)));
  for (auto [result, value] : llvm::zip_equal(group, values))
    e.store(result.buffer, value, e.places.linearize(getPoint(result), getShape(result.value)));
}
