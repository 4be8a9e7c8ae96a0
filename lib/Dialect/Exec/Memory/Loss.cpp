//===- Loss.cpp - where the forward of a step ends ------------------------===//
//
// Gradients are differentiated behind the loss, so that no op of theirs stands before the op that makes it. Of microbatches the loss is a sum,
// behind all of them: then it is the last addend of it.
//
//===----------------------------------------------------------------------===//
#include "Loss.h"

#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "cleave/Dialect/Spmd/IR/Spans.h"
#include "cleave/Dialect/Spmd/IR/States.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace cleave;

/// The last op whose result a value behind all microbatches is a sum of, perhaps over ranks, and by some factor.
static Operation *findLastAddend(Operation *behind, const spmd::Spans &spans) {
  Operation *last = nullptr;
  SmallVector<Operation *> todo{behind};
  DenseSet<Operation *> seen;
  while (!todo.empty()) {
    Operation *op = todo.pop_back_val();
    if (!op || !seen.insert(op).second || spans.get(op) != spmd::Span::After)
      continue;
    if (auto sum = dyn_cast<pipe::AccumulateOp>(op)) {
      Operation *addend = sum.getInput().getDefiningOp();
      last = addend && (!last || last->isBeforeInBlock(addend)) ? addend : last;
      continue;
    }
    for (Value operand : op->getOperands())
      todo.push_back(operand.getDefiningOp());
  }
  return last;
}

Operation *cleave::exec::findLoss(func::FuncOp func) {
  for (unsigned index = 0; index < func.getNumResults(); ++index) {
    if (spmd::getResultName(func, index) != "loss")
      continue;
    Operation *maker = func.getBody().front().getTerminator()->getOperand(index).getDefiningOp();
    spmd::Spans spans(func);
    return maker && spans.get(maker) == spmd::Span::After ? findLastAddend(maker, spans) : maker;
  }
  return nullptr;
}
