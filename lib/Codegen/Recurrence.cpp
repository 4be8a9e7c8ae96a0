//===- Recurrence.cpp - recurrent nets have no lowering in kernels --------===//
//
// They are steps before kernels are formed (`exec-unroll-recurrences`): one that is met here is refused as an op without a
// lowering.
//
//===----------------------------------------------------------------------===//
#include "Lowerings.h"

void cleave::codegen::registerRecurrence(LoweringTable &) {}
