//===- Check.h - says whether a partitioned program is right ----*- C++ -*-===//
#ifndef CLEAVE_DRIVER_CHECK_H
#define CLEAVE_DRIVER_CHECK_H

#include "cleave/Compiler/Run.h"

namespace cleave::driver {

/// Prints a line per output, and more where one is out of tolerance; `quiet`: only about those that are wrong. True if
/// all are right.
bool printChecks(llvm::raw_ostream &os, llvm::ArrayRef<OutputCheck> outputs, bool quiet);

/// The same of gradients and slopes, a line each.
bool printSlopes(llvm::raw_ostream &os, llvm::ArrayRef<SlopeCheck> slopes, bool quiet);

} // namespace cleave::driver

#endif // CLEAVE_DRIVER_CHECK_H
