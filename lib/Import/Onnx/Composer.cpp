//===- Composer.cpp - tables of numbers -----------------------------------===//
//
// A table is made in f64 and cast once, so that its numbers are rounded once, whatever type they end in. A small one is
// folded there and then; a cast of a large one is part of the program, and shards with what reads it.
//
//===----------------------------------------------------------------------===//
#include "Composer.h"

using namespace cleave;
using namespace cleave::onnx;
using reference::Tensor;

Value Composer::table(mlir::Type type, Shape shape, llvm::ArrayRef<double> values) {
  if (node.failed() || !node.checkSize(shape, type))
    return {};
  if (type.isF32()) {
    Tensor tensor = Tensor::zeros(mlir::RankedTensorType::get(shape, type));
    llvm::transform(values, tensor.write<float>().begin(), [](double value) { return float(value); });
    return node.constant(tensor);
  }
  Tensor tensor = Tensor::zeros(mlir::RankedTensorType::get(shape, node.getBuilder().getF64Type()));
  llvm::copy(values, tensor.write<double>().begin());
  return node.cast(node.constant(tensor), type);
}

bool Composer::require(llvm::ArrayRef<unsigned> operands) {
  for (unsigned index : operands)
    if (!node.check(node.hasOperand(index), "operand " + llvm::Twine(index) + " is missing"))
      return false;
  return !node.failed();
}
