//===- Differentiate.cpp - the walk in reverse ----------------------------===//
//
// A walk along the path in reverse. Each op is visited once, when all that reads its results has been: its rule makes ops where the
// composer is, and a map holds the sum of what each value has got so far.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/Gradients/Differentiate.h"

#include "cleave/Dialect/Nn/Gradients/GradientBuilder.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;

static bool hasFloats(Value value) { return isa<FloatType>(getElementType(value)); }

//===----------------------------------------------------------------------===//
// What a rule sees
//===----------------------------------------------------------------------===//

Value GradientBuilder::sumTo(Value value, Shape shape) {
  Shape from = Composer::shape(value);
  if (!value || from == shape)
    return value;
  SmallVector<int64_t> dims;
  int64_t added = int64_t(from.size()) - int64_t(shape.size());
  for (int64_t dim = 0; dim < int64_t(from.size()); ++dim)
    if (dim < added || (shape[dim - added] == 1 && from[dim] != 1))
      dims.push_back(dim);
  return f.reshape(f.sum(value, dims, /*keepDims=*/true), shape);
}

LogicalResult GradientBuilder::add(Value value, Value gradient) {
  if (wants(value) && gradient)
    addTo(value, f.cast(sumTo(gradient, Composer::shape(value)), Composer::elementType(value)));
  return success();
}

LogicalResult cleave::nn::refuseGradient(GradientBuilder &gradients, StringRef reason) {
  return gradients.refuse(reason);
}

/// The ops between are differentiated as any: their operands on the way are the op's own.
LogicalResult GradientBuilder::addThrough(ValueRange made) {
  llvm::SmallSetVector<Value, 8> wanted, leaves;
  for (Value operand : op->getOperands())
    if (wants(operand))
      wanted.insert(operand);
  leaves = wanted;
  leaves.insert_range(op->getOperands());
  // Each target has a walk of its own; what they have in common is visited again.
  for (auto [target, seed] : llvm::zip_equal(made, gradients)) {
    if (!seed)
      continue;
    GradientPath path = findGradientPath(target, leaves.getArrayRef(), wanted.size());
    Differentiation walk(f, path);
    if (failed(walk.run(target, seed)))
      return refuse(walk.getReason());
    for (Value leaf : wanted)
      if (failed(add(leaf, walk.getGradient(leaf))))
        return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// The path
//===----------------------------------------------------------------------===//

/// Ops that lead to the target, depth first, each after those that it reads.
static SmallVector<Operation *> findOps(Value target, const DenseSet<Value> &leaves) {
  DenseSet<Operation *> done;
  SmallVector<Operation *> stack, order;
  auto visit = [&](Value value) {
    if (Operation *op = leaves.contains(value) ? nullptr : value.getDefiningOp(); op && !done.contains(op))
      stack.push_back(op);
  };
  visit(target);
  while (!stack.empty()) {
    // An op may wait in the stack for several that read it: the last one asks for it first.
    Operation *op = stack.back();
    size_t height = stack.size();
    if (!done.contains(op))
      for (Value operand : op->getOperands())
        visit(operand);
    if (stack.size() > height)
      continue;
    stack.pop_back();
    if (done.insert(op).second)
      order.push_back(op);
  }
  return order;
}

GradientPath cleave::nn::findGradientPath(Value target, ArrayRef<Value> leaves, size_t numWanted) {
  GradientPath path;
  path.leaves.insert(leaves.begin(), leaves.end());
  DenseSet<Value> moved(path.leaves);
  path.active.insert(leaves.begin(), leaves.begin() + numWanted);
  for (Operation *op : findOps(target, path.leaves)) {
    auto touches = [&](const DenseSet<Value> &set) {
      return llvm::any_of(op->getOperands(), [&](Value value) { return set.contains(value); });
    };
    if (!touches(moved))
      continue;
    path.ops.push_back(op);
    bool follows = touches(path.active) && !op->hasAttr(kDetachedAttr);
    for (Value result : op->getResults()) {
      moved.insert(result);
      if (follows && hasFloats(result) && !path.leaves.contains(result))
        path.active.insert(result);
    }
  }
  return path;
}

//===----------------------------------------------------------------------===//
// The walk
//===----------------------------------------------------------------------===//

/// A leaf has one, too, which is not handed on.
SmallVector<Value, 2> Differentiation::getGradients(Operation *op) const {
  return llvm::map_to_vector<2>(op->getResults(), [&](Value result) {
    return path.leaves.contains(result) ? Value() : gradients.lookup(result);
  });
}

/// What is wanted of a value is wanted of its gradient.
static Value wantAlike(Composer &f, Operation *op, Value gradient) {
  OpBuilder &builder = f.getOpBuilder();
  if (auto pin = dyn_cast<spmd::PinOp>(op))
    return spmd::PinOp::create(builder, f.getLoc(), gradient, builder.getStringAttr("grad(" + pin.getName() + ")"),
                               pin.getAnnotation().value_or(nullptr));
  if (auto constraint = dyn_cast<spmd::ConstrainOp>(op))
    return spmd::ConstrainOp::create(builder, f.getLoc(), constraint.getType(), gradient,
                                     builder.getStringAttr("grad"));
  return {};
}

LogicalResult Differentiation::differentiate(Operation *op) {
  auto wants = [&](Value value) { return path.active.contains(value); };
  auto add = [&](Value value, Value part) {
    Value &sum = gradients[value];
    sum = sum ? f.add(sum, part) : part;
  };
  SmallVector<Value, 2> ofResults = getGradients(op);
  if (Value alike = wantAlike(f, op, ofResults.front()))
    return add(op->getOperand(0), alike), success();
  auto known = dyn_cast<DifferentiableOpInterface>(op);
  GradientBuilder builder(f, op, ofResults, wants, add);
  if (known && succeeded(known.differentiate(builder)))
    return success();
  obstacle = op;
  reason = builder.getRefusal();
  return failure();
}

LogicalResult Differentiation::run(Value target, Value seed, llvm::function_ref<void(Operation *)> visit) {
  if (path.active.contains(target))
    gradients[target] = seed;
  for (Operation *op : llvm::reverse(path.ops)) {
    bool isActive = llvm::any_of(op->getOperands(), [&](Value value) { return path.active.contains(value); });
    if (!isActive || llvm::none_of(getGradients(op), [](Value gradient) { return bool(gradient); }))
      continue;
    visit(op);
    if (failed(differentiate(op)) || f.hasError())
      return failure();
  }
  return success();
}
