//===- InspectProgram.h - what is in a program file -------------*- C++ -*-===//
#ifndef CLEAVE_DRIVER_INSPECTPROGRAM_H
#define CLEAVE_DRIVER_INSPECTPROGRAM_H

#include "cleave/Program/Program.h"
#include "llvm/Support/JSON.h"

namespace cleave::driver {

/// Tensors, states, commands and what is sent, by keys that docs/report.md fixes. Precondition: `checkProgram` has passed it.
llvm::json::Object toJson(const program::Program &program);

} // namespace cleave::driver

#endif // CLEAVE_DRIVER_INSPECTPROGRAM_H
