//===- Data.cpp - constants and parameters --------------------------------===//
//
// Constants stand in the file, parameters beside it, each rank's shard by itself (ShardWriter.h).
//
//===----------------------------------------------------------------------===//
#include "Writers.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

static Written writeConstant(nn::ConstantOp op, GraphBuilder &out) {
  auto value = op.getValue();
  if (!isa<DenseElementsAttr, DenseResourceElementsAttr>(Attribute(value)))
    return op.emitOpError("has a value that is not a dense attribute of its type's size");
  return out.constant(value);
}

/// Counted in i64, as the op's positions are, and converted once.
static std::string writeIota(nn::IotaOp op, GraphBuilder &out) {
  RankedTensorType type = getResultType(op);
  int64_t extent = type.getDimSize(op.getDim()), start = op.getStart(), step = op.getStep();
  Type positions = IntegerType::get(op.getContext(), 64);
  std::string places =
      out.node("Range", {out.number(0), out.number(extent), out.number(1)}, RankedTensorType::get({extent}, positions));
  if (step != 1)
    places = out.binary("Mul", places, out.number(step));
  if (start != 0)
    places = out.binary("Add", places, out.number(start));
  SmallVector<int64_t> shape(type.getRank(), 1);
  shape[op.getDim()] = extent;
  return out.expand(out.reshape(out.cast(places, type.getElementType()), shape), type.getShape());
}

void cleave::onnx::registerData(WriterTable &table) {
  table.add<nn::ConstantOp>(writeConstant);
  table.add<nn::LoadOp>([](nn::LoadOp op, GraphBuilder &out) { return out.load(op); });
  table.add<nn::IotaOp>(writeIota);
}
