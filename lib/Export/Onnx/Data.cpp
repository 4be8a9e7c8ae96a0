//===- Data.cpp - constants and parameters --------------------------------===//
//
// Constants stand in the file, parameters beside it, each rank's shard by itself (ShardWriter.h).
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "Writers.h"
#include "cleave/Reference/Tensor.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

/// Equal elements stand once, however many there are.
static Written writeConstant(nn::ConstantOp op, GraphBuilder &out) {
  ElementsAttr value = op.getValue();
  RankedTensorType type = getResultType(op);
  constexpr int64_t few = 1024;
  if (auto dense = dyn_cast<DenseElementsAttr>(Attribute(value));
      dense && dense.isSplat() && type.getNumElements() > few)
    return out.expand(out.constant(dense.resizeSplat(RankedTensorType::get({}, type.getElementType()))),
                      type.getShape());
  if (failed(reference::Tensor::fromAttr(value)))
    return op.emitOpError("has a value that is not a dense attribute of its type's size");
  return out.constant(value);
}

/// The file that a rank's shard is split from by its own place on the mesh.
static Written writeLoad(nn::LoadOp op, GraphBuilder &out) {
  Attribute shard = op.getShardingAttr();
  auto sharding = dyn_cast_if_present<spmd::ShardingAttr>(shard);
  if (shard && (!sharding || sharding.getMesh() != spmd::getMesh(op->getParentOfType<func::FuncOp>())))
    return op.emitOpError() << "cannot be exported: " << shard << " is not a sharding over the mesh of the module";
  return out.load(op);
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
  table.add<nn::LoadOp>(writeLoad);
  table.add<nn::IotaOp>(writeIota);
}
