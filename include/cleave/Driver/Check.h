//===- Check.h - is a partitioned program right? ----------------*- C++ -*-===//
#ifndef CLEAVE_DRIVER_CHECK_H
#define CLEAVE_DRIVER_CHECK_H

#include "cleave/Reference/Tensor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <optional>

namespace cleave::driver {

/// Two runs of one model with the same inputs, one tensor per argument and per result.
struct Check {
  mlir::func::FuncOp ranks, original;
  llvm::ArrayRef<reference::Tensor> inputs, got, want; ///< `got` on ranks, `want` on one device
  std::optional<double> rtol, atol;                    ///< as asked for; the defaults go by element type
};

/// Prints a line per output, and more where one is out of tolerance; `quiet`: only about those that are wrong. True if
/// all outputs are the same: within tolerance, or apart by no more than what rounding does to the original itself (see
/// Check.cpp).
bool checkOutputs(llvm::raw_ostream &os, const Check &check, bool quiet);

} // namespace cleave::driver

#endif // CLEAVE_DRIVER_CHECK_H
