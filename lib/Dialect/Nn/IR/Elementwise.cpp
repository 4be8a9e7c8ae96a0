//===- Elementwise.cpp - what elementwise ops say of themselves -----------===//
//
// Types follow from traits. Sums and differences rise with an operand as fast as that does, if one alone rises.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Nn.h"

using namespace mlir;
using namespace cleave::nn;

bool AddOp::isGentle(ArrayRef<bool> varies) { return varies[0] != varies[1]; }
bool SubOp::isGentle(ArrayRef<bool> varies) { return !varies[1]; }
