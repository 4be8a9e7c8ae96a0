//===- Normalization.cpp - norms ------------------------------------------===//
//
// Statistics over ranks were taken apart when the program was partitioned; what is left is the whole norm of a rank's own rows.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Normalization.h"
#include "Writers.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

/// LayerNormalization and RMSNormalization take a scale of the shape that is normalized; another one is multiplied behind.
template <typename OpT> static std::string writeNorm(OpT op, GraphBuilder &out, StringRef opType, Value bias) {
  RankedTensorType type = getResultType(op);
  auto dims = RankedTensorType::get(type.getShape().drop_front(op.getDim()), type.getElementType());
  auto isFull = [&](Value value) { return cast<RankedTensorType>(value.getType()).getShape() == dims.getShape(); };
  Value scale = op.getScale();
  bool takesScale = scale && isFull(scale), takesBias = bias && isFull(bias) && (takesScale || !scale);
  Names inputs = {out(op.getInput()), takesScale ? out(scale) : out.splat(1, dims)};
  if (takesBias)
    inputs.push_back(out(bias));
  std::string result = out.node(
      opType, inputs, type, {{"axis", op.getDim()}, {"epsilon", op.getEpsilon().convertToDouble()}, {"stash_type", 1}});
  if (scale && !takesScale)
    result = out.binary("Mul", result, out(scale));
  return bias && !takesBias ? out.binary("Add", result, out(bias)) : result;
}

static std::string writeBatchNorm(nn::BatchNormOp op, GraphBuilder &out) {
  return out.node("BatchNormalization",
                  {out(op.getInput()), out(op.getScale()), out(op.getBias()), out(op.getMean()), out(op.getVariance())},
                  op.getType(), {{"epsilon", op.getEpsilon().convertToDouble()}});
}

/// One channel a group has an op of its own, which more runtimes have. Scale and bias are per channel since opset 21.
static std::string writeGroupNorm(nn::GroupNormOp op, GraphBuilder &out) {
  bool isInstance = int64_t(op.getGroups()) == op.getInput().getType().getDimSize(1);
  std::vector<NodeAttribute> attributes = {{"epsilon", op.getEpsilon().convertToDouble()}};
  if (!isInstance)
    attributes.emplace_back("num_groups", op.getGroups());
  return out.node(isInstance ? "InstanceNormalization" : "GroupNormalization",
                  {out(op.getInput()), out(op.getScale()), out(op.getBias())}, op.getType(), std::move(attributes));
}

static std::string writeLrn(nn::LrnOp op, GraphBuilder &out) {
  return out.node("LRN", {out(op.getInput())}, op.getType(),
                  {{"size", op.getSize()},
                   {"alpha", op.getAlpha().convertToDouble()},
                   {"beta", op.getBeta().convertToDouble()},
                   {"bias", op.getK().convertToDouble()}});
}

void cleave::onnx::registerNormalization(WriterTable &table) {
  table.add<nn::LayerNormOp>(
      [](nn::LayerNormOp op, GraphBuilder &out) { return writeNorm(op, out, "LayerNormalization", op.getBias()); });
  table.add<nn::RmsNormOp>(
      [](nn::RmsNormOp op, GraphBuilder &out) { return writeNorm(op, out, "RMSNormalization", Value()); });
  table.add<nn::BatchNormOp>(writeBatchNorm);
  table.add<nn::GroupNormOp>(writeGroupNorm);
  table.add<nn::LrnOp>(writeLrn);
}
