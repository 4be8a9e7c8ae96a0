//===- Recurrence.cpp - recurrent nets have no form in kernels ------------===//
//
// They are steps before kernels are formed (`exec-unroll-recurrences`): one that is met here is refused as an op without a
// form.
//
//===----------------------------------------------------------------------===//
#include "Forms.h"

void cleave::codegen::registerRecurrence(FormTable &) {}
