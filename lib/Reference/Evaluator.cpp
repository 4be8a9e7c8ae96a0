//===- Evaluator.cpp - finds and calls the kernel of an op ----------------===//
//
// The table is filled once, by every family. Before a kernel runs, its results are checked to fit into memory, so that
// a small model that asks for petabytes ends in an error.
//
//===----------------------------------------------------------------------===//
#include "cleave/Reference/Evaluator.h"

#include "Kernels.h"

using namespace mlir;
using namespace cleave::reference;

static const KernelTable &getTable() {
  static const KernelTable table = [] {
    KernelTable result;
#define CLEAVE_NN_FAMILY(Family) register##Family(result);
#include "cleave/Dialect/Nn/IR/NnFamilies.inc"
    registerExec(result);
    return result;
  }();
  return table;
}

/// Fails if a result has an element type the evaluator does not know, or is larger than the machine.
static LogicalResult checkResults(Operation *op) {
  for (Type type : op->getResultTypes()) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || getElementBytes(tensor.getElementType()) == 0)
      return op->emitOpError() << "cannot be evaluated: result type " << type << " is not supported";
    if (!Tensor::fits(tensor))
      return op->emitOpError() << "cannot be evaluated: a result of " << type << " does not fit into memory";
  }
  return success();
}

bool cleave::reference::canEvaluate(OperationName name) { return getTable().find(name) != nullptr; }
bool cleave::reference::canEvaluate(Operation *op) { return canEvaluate(op->getName()); }

LogicalResult cleave::reference::evaluate(Operation *op, ArrayRef<Tensor> operands, SmallVectorImpl<Tensor> &results) {
  const KernelTable::Kernel *kernel = getTable().find(op->getName());
  if (!kernel)
    return op->emitOpError("cannot be evaluated: the evaluator has no kernel for it");
  if (failed(checkResults(op)))
    return failure();
  return (*kernel)(op, operands, results);
}
