//===- Control.cpp - loops of the nn dialect ------------------------------===//
//
// What is wrong with a loop, by number. Shardings are not compared: while they are decided those of a loop differ, and the gate
// behind that (`spmd-verify-phase`) looks at them.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Control.h"
#include "cleave/Dialect/Spmd/IR/Repeated.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;

#define GET_OP_CLASSES
#include "cleave/Dialect/Nn/IR/NnControl.cpp.inc"

YieldOp LoopOp::getYield() { return cast<YieldOp>(getBody().front().getTerminator()); }

OperandRange LoopOp::getNext() { return getYield().getNext(); }
Value LoopOp::getNextCondition() { return getYield().getCondition(); }

Operation *LoopOp::makeLike(OpBuilder &builder, TypeRange results, Value condition, ValueRange initial,
                            ValueRange captured) {
  auto made = create(builder, getLoc(), results, condition, initial, captured, getCountAttr());
  made.getBody().emplaceBlock();
  return made;
}

void LoopOp::makeEnd(OpBuilder &builder, Value condition, ValueRange next) {
  YieldOp::create(builder, getYield().getLoc(), condition, next);
}

/// What never runs is counted as if it did once: what costs nothing would be decided by chance.
int64_t LoopOp::getCountedTimes() {
  int64_t bound = getCount() ? int64_t(*getCount()) : kAssumedTimes;
  return std::clamp<int64_t>(getCondition() ? std::min(bound, kAssumedTimes) : bound, 1, spmd::kMostTimes);
}

/// C2, C3: `got` is of `wanted`'s shapes and element types.
static LogicalResult checkTypes(LoopOp loop, TypeRange got, TypeRange wanted, StringRef what, StringRef number) {
  if (got.size() != wanted.size())
    return loop.emitOpError() << what << " " << got.size() << " values, expected " << wanted.size() << " (" << number
                              << ")";
  for (auto [index, types] : llvm::enumerate(llvm::zip_equal(got, wanted))) {
    auto [type, expected] = types;
    if (!haveSameShapes(type, expected))
      return loop.emitOpError() << what << " " << type << " as value " << index << ", expected " << expected << " ("
                                << number << ")";
  }
  return success();
}

LogicalResult LoopOp::verifyRegions() {
  if (!getCondition() && !getCount())
    return emitOpError("has neither a condition nor a count (C1)");
  if (getCount() && int64_t(*getCount()) < 0)
    return emitOpError() << "has a count of " << int64_t(*getCount()) << ", expected at least 0 (C1)";
  SmallVector<Type> taken(getInitial().getTypes());
  llvm::append_range(taken, getCaptured().getTypes());
  auto yield = dyn_cast<YieldOp>(getBody().front().back());
  if (!yield)
    return emitOpError("has a body that does not end in nn.yield (C3)");
  if (failed(checkTypes(*this, getBody().getArgumentTypes(), taken, "takes", "C2")) ||
      failed(checkTypes(*this, yield.getNext().getTypes(), getInitial().getTypes(), "yields", "C3")) ||
      failed(checkTypes(*this, getResultTypes(), getInitial().getTypes(), "gives", "C3")))
    return failure();
  if (bool(getCondition()) != bool(yield.getCondition()))
    return emitOpError() << (getCondition() ? "yields no condition, but has one" : "yields a condition, but has none")
                         << " (C4)";
  for (Value condition : {getCondition(), yield.getCondition()})
    if (condition && cast<RankedTensorType>(condition.getType()).getRank() != 0)
      return emitOpError() << "has a condition of type " << condition.getType() << ", expected a scalar (C4)";
  return success();
}
