//===- Cost.cpp - what is cheaper, by bytes moved and launches ------------===//
//
// The formulas of Cost.h.
//
//===----------------------------------------------------------------------===//
#include "Cost.h"

#include "Clusters.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"

using namespace mlir;
using namespace cleave;

int64_t exec::countElements(Value value) { return cast<RankedTensorType>(value.getType()).getNumElements(); }

int64_t exec::countBytes(Value value) {
  unsigned bits = cast<RankedTensorType>(value.getType()).getElementTypeBitWidth();
  return countElements(value) * ((bits + 7) / 8);
}

int64_t exec::countReadElements(Operation *op) {
  return countElements(Rows::get(op) ? op->getOperand(0) : op->getResult(0));
}

bool exec::isCheaperInReaders(const Chain &chain, Value value) {
  double repeated = 0, shares = 0;
  bool isReadWhole = false;
  for (Operation *reader : value.getUsers()) {
    double elements = countReadElements(reader);
    double share = std::min(1.0, elements / std::max<int64_t>(1, countElements(value)));
    repeated += share * chain.bytes + elements * chain.ops * kOpBytes;
    shares += share;
    isReadWhole |= share == 1;
  }
  double bytes = countBytes(value), loads = isReadWhole ? (shares - 1) * bytes : shares * bytes + kLaunchBytes;
  return repeated < chain.bytes + bytes + loads;
}

bool exec::isCheaperInReader(int64_t ops, Value value, int64_t elements) {
  return (elements - countElements(value)) * ops * kOpBytes <= 2 * countBytes(value) + kLaunchBytes;
}
