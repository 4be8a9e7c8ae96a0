//===- Check.h - says whether a partitioned program is right ----*- C++ -*-===//
#ifndef CLEAVE_DRIVER_CHECK_H
#define CLEAVE_DRIVER_CHECK_H

#include "cleave/Compiler/Check.h"

namespace cleave::driver {

/// Prints a line per output, and more where one is out of tolerance; `quiet`: only about those that are wrong. True if
/// all are right.
bool printChecks(llvm::raw_ostream &os, llvm::ArrayRef<OutputCheck> outputs, bool quiet);

} // namespace cleave::driver

#endif // CLEAVE_DRIVER_CHECK_H
