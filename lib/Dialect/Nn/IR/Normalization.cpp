//===- Normalization.cpp - result types of norms --------------------------===//
//
// Layer and RMS norms run over the dims from `dim` on, as one; batch, group and local response norms are about
// channels, which are dim 1. No norm changes a type, so what is left to check is that scales and biases fit.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Normalization.h"
#include "TypeInference.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;

/// C1 and C2 of norms over the dims from `dim` on; `scale` and `bias` may be absent.
static LogicalResult inferTailNorm(Value input, int64_t dim, Value scale, Value bias, TypeInference &infer) {
  if (failed(infer.checkDim(dim, input)))
    return failure();
  ArrayRef<int64_t> tail = getShape(input).drop_front(dim);
  for (auto [value, name] : {std::pair(scale, "scale"), std::pair(bias, "bias")})
    if (value && !broadcastsTo(getShape(value), tail))
      return infer.reject(name, " ", value.getType(), " does not broadcast to the dims of ", input.getType(), " from ",
                          dim, " on (C2)");
  return infer.giveLike(input);
}

LogicalResult LayerNormOp::inferTypes(Adaptor op, TypeInference &infer) {
  return inferTailNorm(op.getInput(), op.getDim(), op.getScale(), op.getBias(), infer);
}

LogicalResult RmsNormOp::inferTypes(Adaptor op, TypeInference &infer) {
  return inferTailNorm(op.getInput(), op.getDim(), op.getScale(), Value(), infer);
}

/// C1 of norms per channel (dim 1).
static LogicalResult checkRank(Value input, size_t least, TypeInference &infer) {
  if (getShape(input).size() >= least)
    return success();
  return infer.reject("input is ", input.getType(), ", expected at least ", least, " dims (C1)");
}

LogicalResult BatchNormOp::inferTypes(Adaptor op, TypeInference &infer) {
  if (failed(checkRank(op.getInput(), 2, infer)))
    return failure();
  int64_t channels = getShape(op.getInput())[1];
  if (failed(infer.checkVector("scale", op.getScale(), channels, "C2")) ||
      failed(infer.checkVector("bias", op.getBias(), channels, "C2")) ||
      failed(infer.checkVector("mean", op.getMean(), channels, "C2")) ||
      failed(infer.checkVector("variance", op.getVariance(), channels, "C2")))
    return failure();
  return infer.giveLike(op.getInput());
}

LogicalResult GroupNormOp::inferTypes(Adaptor op, TypeInference &infer) {
  if (failed(checkRank(op.getInput(), 3, infer)))
    return failure();
  int64_t channels = getShape(op.getInput())[1], groups = op.getGroups();
  if (groups < 1 || channels % groups != 0)
    return infer.reject("cannot split ", channels, " channels into ", groups, " groups (C2)");
  if (failed(infer.checkVector("scale", op.getScale(), channels, "C3")) ||
      failed(infer.checkVector("bias", op.getBias(), channels, "C3")))
    return failure();
  return infer.giveLike(op.getInput());
}

LogicalResult LrnOp::inferTypes(Adaptor op, TypeInference &infer) {
  if (failed(checkRank(op.getInput(), 2, infer)))
    return failure();
  int64_t size = op.getSize();
  if (size < 1)
    return infer.reject("size is ", size, ", expected at least 1 (C2)");
  return infer.giveLike(op.getInput());
}
