//===- Spans.cpp - how often an op of a microbatch runs -------------------===//
//
// One walk in order: an op is of the latest span of its operands, `after` begins at pipe.accumulate, `each` at arguments
// that are split and at pipe.part:
//
//   %e = nn.exp %mask                whole        %s = nn.reduce sum %y dims [0]   each
//   %y = nn.mul %x, %e               each         %t = pipe.accumulate sum %s      after
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Pipe/Stages/Spans.h"

#include "cleave/Dialect/Pipe/IR/Pipe.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::pipe;

Spans::Spans(func::FuncOp func) : func(func), isSplit(getMicrobatches(func->getParentOp()).value_or(1) > 1) {
  assert(func.getBody().hasOneBlock() && "a program has one block");
  for (Operation &op : func.getBody().front()) {
    Span span = isSplit && !isa<PartOp>(op) ? Span::Invariant : Span::Each;
    for (Value operand : op.getOperands())
      span = std::max(span, get(operand));
    spans[&op] = isa<AccumulateOp>(op) ? Span::After : span;
  }
}

Span Spans::get(Value value) const {
  if (Operation *op = value.getDefiningOp())
    return spans.lookup(op);
  return getArgSplit(func, cast<BlockArgument>(value).getArgNumber()) ? Span::Each : Span::Invariant;
}
