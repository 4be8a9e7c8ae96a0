//===- Losses.cpp - what a step minimizes ---------------------------------===//
//
// Means over positions, in f32 at least. With logits x, probabilities p = softmax(x), the class c of a position and s of smoothing
// (Szegedy et al. 2016):
//
//   cross_entropy   -(1 - s) log p_c - s mean(log p)      nll   -x_c
//   bce             max(x, 0) - x t + log(1 + exp(-|x|))  mse   (x - t)^2      l1   |x - t|
//
// Positions whose label is ignored count for nothing, neither above nor below the line.
//
//===----------------------------------------------------------------------===//
#include "Step.h"

#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"
#include "cleave/Dialect/Nn/IR/Ops/Indexing.h"
#include "cleave/Dialect/Nn/IR/Ops/Reduction.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;
using LossKind = spmd::PlanLoss::Kind;

static bool hasClasses(const spmd::PlanLoss &loss) {
  return loss.kind == LossKind::CrossEntropy || loss.kind == LossKind::Nll;
}

/// Models of language have classes last, others in dim 1: of a tensor of three dims the larger one of both.
static FailureOr<int64_t> findClassDim(MLIRContext *context, const spmd::PlanLoss &loss, Value value) {
  Shape shape = Composer::shape(value);
  int64_t rank = Composer::rank(value);
  if (rank < 2)
    return emitErrorAt(context, loss.of.place)
           << "'" << loss.of.text << "' is " << value.getType() << ": a tensor of classes has two dims at least";
  if (loss.classes) {
    if (*loss.classes >= rank)
      return emitErrorAt(context, loss.of.place)
             << "'" << loss.of.text << "' is " << value.getType() << ", which has no dim " << *loss.classes;
    return *loss.classes;
  }
  if (rank == 3 && shape[1] == shape[2])
    return emitErrorAt(context, loss.of.place) << "'" << loss.of.text << "' is " << value.getType()
                                               << ", whose classes may be along dim 1 or 2: say 'classes: 2'";
  return rank == 3 && shape[2] > shape[1] ? 2 : 1;
}

RankedTensorType cleave::nn::getLabelType(MLIRContext *context, const spmd::PlanLoss &loss, Value value) {
  if (!hasClasses(loss))
    return cast<RankedTensorType>(value.getType());
  FailureOr<int64_t> dim = findClassDim(context, loss, value);
  if (failed(dim))
    return {};
  SmallVector<int64_t> shape(Composer::shape(value));
  shape.erase(shape.begin() + *dim);
  return RankedTensorType::get(shape, IntegerType::get(context, 64));
}

/// The mean over all elements.
static Value average(Composer &f, Value value) {
  double count = double(cast<RankedTensorType>(value.getType()).getNumElements());
  return f.mul(f.sumAll(value), 1 / count);
}

/// Of labels [.., positions ..] without the dim of the classes.
static ComposedLoss composeClasses(Composer &f, const spmd::PlanLoss &loss, Value value, Value labels, int64_t dim,
                                   bool factorsCount) {
  Value logs = f.widen(value);
  if (loss.kind == LossKind::CrossEntropy)
    logs = f.create<LogSoftmaxOp>(logs, dim);
  // What does not count is looked up as class 0, so that no index is out of range.
  Value indices = labels, counted;
  if (loss.ignored) {
    counted = f.negate(f.eq(labels, double(*loss.ignored)));
    // An index below zero counts from the end, a label does not: -1, another way to say "none", would be the last class.
    Value classes = f.select(f.lt(labels, 0), f.sub(labels, double(Composer::shape(logs)[dim])), labels);
    indices = f.select(counted, classes, 0);
  }
  SmallVector<int64_t> positions(Composer::shape(labels));
  Value picked = f.reshape(f.create<GatherElementsOp>(logs, f.unsqueeze(indices, {dim}), dim), positions);
  if (loss.smoothing > 0)
    picked = f.add(f.mul(picked, 1 - loss.smoothing), f.mul(f.mean(logs, {dim}), loss.smoothing));
  Value terms = f.neg(picked);
  if (!loss.ignored)
    return {average(f, terms), {}};
  Value count = f.max(f.sumAll(f.cast(counted, Composer::elementType(logs))), 1), known = f.select(counted, terms, 0);
  if (!factorsCount)
    return {f.div(f.sumAll(known), count), {}};
  double all = double(cast<RankedTensorType>(known.getType()).getNumElements());
  return {average(f, known), f.div(f.scalarLike(count, all), count)};
}

/// Element by element, where labels are numbers.
static Value compare(Composer &f, LossKind kind, Value x, Value t) {
  if (kind == LossKind::Mse)
    return f.square(f.sub(x, t));
  if (kind == LossKind::L1)
    return f.abs(f.sub(x, t));
  // Never of a large number: nothing overflows.
  Value tail = f.log(f.add(f.exp(f.neg(f.abs(x))), 1));
  return f.add(f.sub(f.max(x, 0), f.mul(x, t)), tail);
}

/// The type of an output that is one number.
static bool isNumber(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.getNumElements() == 1 && isa<FloatType>(type.getElementType());
}

ComposedLoss cleave::nn::composeLoss(Composer &f, const spmd::PlanLoss &loss, Value value, Value labels,
                                     bool factorsCount) {
  MLIRContext *context = value.getContext();
  if (loss.kind == LossKind::Output) {
    if (isNumber(value))
      return {f.mul(f.reshape(f.widen(value), {}), loss.weight), {}};
    emitErrorAt(context, loss.of.place) << "'" << loss.of.text << "' is " << value.getType()
                                        << ": a loss is one number; 'kind: mse' and others make one";
    return {};
  }
  if (!isa<FloatType>(Composer::elementType(value))) {
    emitErrorAt(context, loss.of.place) << "'" << loss.of.text << "' is " << value.getType() << ", which has no floats";
    return {};
  }
  FailureOr<int64_t> dim = hasClasses(loss) ? findClassDim(context, loss, value) : FailureOr<int64_t>(0);
  if (failed(dim))
    return {};
  ComposedLoss composed;
  if (hasClasses(loss))
    composed = composeClasses(f, loss, value, labels, *dim, factorsCount);
  else
    composed.value = average(f, compare(f, loss.kind, f.widen(value), f.widen(labels)));
  if (loss.weight != 1)
    composed.value = f.mul(composed.value, loss.weight);
  return composed;
}
