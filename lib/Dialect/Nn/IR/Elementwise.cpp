//===- Elementwise.cpp - what elementwise ops say of themselves -----------===//
//
// Types follow from traits. Sums and differences rise with an operand as fast as that does, if one alone rises. A factor is read for the
// gradient of the other one, a divisor for both.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"

using namespace mlir;
using namespace cleave::nn;

bool AddOp::isGentle(ArrayRef<bool> varies) { return varies[0] != varies[1]; }
bool SubOp::isGentle(ArrayRef<bool> varies) { return !varies[1]; }

bool MulOp::isReadForGradient(unsigned operand, ArrayRef<bool> wanted) { return wanted[1 - operand]; }
bool DivOp::isReadForGradient(unsigned operand, ArrayRef<bool> wanted) { return operand == 1 || wanted[1]; }
