//===- KernelParts.cpp - several kernels of one ---------------------------===//
//
// A part is asked for by what it gives. From there it goes back to what is outside: an argument of the whole, or what a part
// before gives. All between is copied, so that what two parts need, and none gives, both compute.
//
//===----------------------------------------------------------------------===//
#include "KernelParts.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

/// In a part: its argument for what is outside, else a copy of the op that makes it.
Value Splitter::resolve(Value value) {
  if (Value known = inside.lookupOrNull(value))
    return known;
  if (Value outside = values.lookupOrNull(value)) {
    operands.push_back(outside);
    inside.map(value, body->addArgument(value.getType(), value.getLoc()));
    return inside.lookup(value);
  }
  Operation *op = value.getDefiningOp();
  for (Value operand : op->getOperands())
    resolve(operand);
  inner.clone(*op, inside);
  return inside.lookup(value);
}

FusedOp Splitter::makePart(ArrayRef<Value> results) {
  inside.clear();
  operands.clear();
  body = new Block(); // owned by the kernel once there is one
  inner.setInsertionPointToEnd(body);
  SmallVector<Value> yielded;
  for (Value result : results)
    yielded.push_back(resolve(result));
  YieldOp::create(inner, end->getLoc(), yielded);
  OperationState state(end->getLoc(), FusedOp::getOperationName());
  state.addOperands(operands);
  state.addTypes(ValueRange(yielded).getTypes());
  state.addRegion()->push_back(body);
  auto made = cast<FusedOp>(builder.create(state));
  for (auto [result, outside] : llvm::zip_equal(results, made.getResults()))
    values.map(result, outside);
  return made;
}
