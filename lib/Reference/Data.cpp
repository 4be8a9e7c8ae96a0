//===- Data.cpp - what an op holds or counts ------------------------------===//
//
// An iota is one line along its dim, repeated. Parameters are no kernels: they are read from files, see Params.cpp.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "Kernels.h"
#include "Loops.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::reference;

static Tensor iota(nn::IotaOp op, Operands) {
  RankedTensorType type = getResultType(op);
  int64_t size = type.getShape().empty() ? 1 : type.getDimSize(op.getDim());
  Type i64 = IntegerType::get(op.getContext(), 64);
  SmallVector<int64_t> shape(type.getRank(), 1);
  if (!shape.empty())
    shape[op.getDim()] = size;
  Tensor line = Tensor::zeros(RankedTensorType::get(shape, i64));
  for (auto [i, element] : llvm::enumerate(line.write<int64_t>()))
    element = int64_t(uint64_t(op.getStart()) + uint64_t(op.getStep()) * i);
  Tensor converted =
      mapUnary<int64_t>(line, RankedTensorType::get(shape, type.getElementType()), [](int64_t x) { return x; });
  return broadcastTo(converted, type.getShape());
}

void cleave::reference::registerData(KernelTable &table) {
  table.add<nn::ConstantOp>([](nn::ConstantOp op, Operands) -> FailureOr<Tensor> {
    FailureOr<Tensor> value = Tensor::fromAttr(op.getValue());
    if (failed(value))
      return op.emitOpError("cannot be evaluated: its value is not a dense attribute of its type's size");
    return value;
  });
  table.add<nn::IotaOp>(iota);
}
