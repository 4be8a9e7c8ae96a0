//===- Recurrence.cpp - gradients of recurrent nets -----------------------===//
//
// Through time (Werbos 1990): the steps are made again, and differentiated as what they are made of.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Recurrence.h"
#include "cleave/Dialect/Nn/Gradients/GradientBuilder.h"
#include "cleave/Dialect/Nn/IR/Recurrence.h"

using namespace mlir;
using namespace cleave::nn;

LogicalResult RecurrenceOp::differentiate(GradientBuilder &g) {
  return g.addThrough(unrollRecurrence(g.f.getOpBuilder(), g.f.getLoc(), *this, (*this)->getOperands()));
}
