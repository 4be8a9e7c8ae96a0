//===- Movement.cpp - derivatives of movement -----------------------------===//
//
// Elements change place, so their gradients go back where they came from; what is there several times gets the sum, and what
// was left out gets zeros.
//
//===----------------------------------------------------------------------===//
#include "Gradient.h"

#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

/// One dim of a slice, undone: `size` elements from `start`, every step-th, back among zeros in a dim of `extent`.
///
///   g0 g1 g2, start 1, step 2, extent 8  ─▶  g0 0 | g1 0 | g2 0  ─▶  0 g0 0 g1 0 g2 0 0
static Value undoSlice(Derivative &d, Value g, int64_t dim, int64_t start, int64_t step, int64_t extent) {
  Ints shape(NodeContext::shape(g)), low(shape.size(), 0), high(shape.size(), 0);
  int64_t size = shape[dim];
  if (step < 0) { // from the last one on
    Ints starts(shape.size(), 0), steps(shape.size(), 1);
    starts[dim] = size - 1;
    steps[dim] = -1;
    g = d.node.create<nn::SliceOp>(g, starts, shape, steps);
    start += (size - 1) * step;
    step = -step;
  }
  if (step > 1) {
    Ints apart(shape), more(shape.size() + 1, 0);
    apart.insert(apart.begin() + dim + 1, 1);
    more[dim + 1] = step - 1;
    g = d.f.pad(d.node.reshape(g, apart), Ints(apart.size(), 0), more);
    shape[dim] = size * step;
    g = d.node.sliceDim(d.node.reshape(g, shape), dim, 0, (size - 1) * step + 1);
  }
  low[dim] = start;
  high[dim] = extent - start - ((size - 1) * step + 1);
  return d.f.pad(g, low, high);
}

static bool differentiateSlice(Derivative &d, nn::SliceOp slice) {
  Value g = d.gradient();
  Shape shape = NodeContext::shape(d.operand(0));
  if (cast<RankedTensorType>(g.getType()).getNumElements() == 0)
    return d.give(0, d.zerosLike(d.operand(0))), true;
  for (int64_t dim = 0; dim < int64_t(shape.size()) && !d.node.failed(); ++dim)
    if (NodeContext::shape(g)[dim] != shape[dim] || slice.getSteps()[dim] != 1)
      g = undoSlice(d, g, dim, slice.getStarts()[dim], slice.getSteps()[dim], shape[dim]);
  return d.give(0, g), true;
}

static bool differentiateConcat(Derivative &d, nn::ConcatOp concat) {
  int64_t at = 0, dim = concat.getDim();
  for (Value input : concat.getInputs()) {
    int64_t size = NodeContext::shape(input)[dim];
    if (d.wants(input))
      d.give(input, d.node.sliceDim(d.gradient(), dim, at, size));
    at += size;
  }
  return true;
}

/// Padding by a number. What pads otherwise repeats elements, for which there is no rule yet.
static bool differentiatePad(Derivative &d, nn::PadOp pad) {
  if (pad.getMode() != nn::PadMode::Constant)
    return false;
  Value g = d.gradient(), input = pad.getInput(), value = pad.getValue();
  Value inner = d.node.slice(g, pad.getLow(), NodeContext::shape(input), Ints(pad.getLow().size(), 1));
  d.give(input, inner);
  if (d.wants(value)) {
    Ints all = llvm::to_vector(llvm::seq<int64_t>(0, NodeContext::rank(g)));
    d.give(value, d.f.sub(d.f.sum(g, all), d.f.sum(inner, all)));
  }
  return true;
}

bool cleave::onnx::differentiateMovement(Derivative &d, Operation *op) {
  Value g = d.gradient();
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](nn::ReshapeOp) { return d.give(0, d.node.reshape(g, NodeContext::shape(d.operand(0)))), true; })
      .Case([&](nn::TransposeOp turn) {
        Ints back(turn.getPermutation().size());
        for (auto [to, from] : llvm::enumerate(turn.getPermutation()))
          back[from] = to;
        return d.give(0, d.node.transpose(g, back)), true;
      })
      .Case([&](nn::BroadcastOp) { return d.give(0, g), true; })
      .Case([&](nn::ConcatOp concat) { return differentiateConcat(d, concat); })
      .Case([&](nn::SliceOp slice) { return differentiateSlice(d, slice); })
      .Case([&](nn::PadOp pad) { return differentiatePad(d, pad); })
      .Case([&](nn::RotateOp rotate) {
        int64_t size = NodeContext::shape(g)[rotate.getDim()], amount = rotate.getAmount();
        d.give(0, amount ? d.node.create<nn::RotateOp>(g, rotate.getDim(), size - amount) : g);
        return true;
      })
      .Case([&](nn::TriluOp part) {
        return d.give(0, d.node.create<nn::TriluOp>(g, part.getOffset(), part.getUpper())), true;
      })
      .Default(false);
}
