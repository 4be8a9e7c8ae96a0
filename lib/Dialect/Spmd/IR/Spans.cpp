//===- Spans.cpp - how often an op of a microbatch runs -------------------===//
//
// One walk in order: an op is of the latest span of its operands, `after` begins at pipe.accumulate, `each` at arguments
// that are split and at pipe.part:
//
//   %e = nn.exp %mask                whole        %s = nn.reduce sum %y dims [0]   each
//   %y = nn.mul %x, %e               each         %t = pipe.accumulate sum %s      after
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Spmd/IR/Spans.h"

#include "cleave/Dialect/Spmd/IR/StepRoles.h"

using namespace mlir;
using namespace cleave::spmd;

static int64_t readMicrobatches(func::FuncOp func) {
  auto count = func->getParentOp()->getAttrOfType<IntegerAttr>(kMicrobatchesAttr);
  return count ? count.getInt() : 1;
}

static bool hasRoles(func::FuncOp func) {
  for (unsigned index = 0; index < func.getNumArguments(); ++index)
    if (func.getArgAttr(index, kRoleAttr))
      return true;
  return false;
}

Spans::Spans(func::FuncOp func) : func(func), microbatches(readMicrobatches(func)), isStep(hasRoles(func)) {
  assert(func.getBody().hasOneBlock() && "a program has one block");
  for (Operation &op : func.getBody().front()) {
    Span span = areSeveral() && !op.hasTrait<TakesPart>() ? Span::Invariant : Span::Each;
    for (Value operand : op.getOperands())
      span = std::max(span, get(operand));
    spans[&op] = op.hasTrait<CombinesParts>() ? Span::After : span;
  }
}

Span Spans::get(Value value) const {
  if (Operation *op = value.getDefiningOp())
    return spans.lookup(op);
  unsigned index = cast<BlockArgument>(value).getArgNumber();
  return func::FuncOp(func).getArgAttr(index, kSplitInTimeAttr) ? Span::Each : Span::Invariant;
}
