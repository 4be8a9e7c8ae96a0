//===- Check.h - is a partitioned program right? ----------------*- C++ -*-===//
#ifndef CLEAVE_COMPILER_CHECK_H
#define CLEAVE_COMPILER_CHECK_H

#include "cleave/Compiler/Compilation.h"
#include "cleave/Compiler/Values.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace cleave {

/// The model that a partitioned one was made from, for the shapes and values of its inputs, out of the file `path`. Null
/// after an error, which is among the diagnostics, also where inputs or outputs are others.
mlir::OwningOpRef<mlir::ModuleOp> loadOriginal(Compilation &partitioned, llvm::StringRef path);

/// Two runs of one model with the same inputs, one tensor per argument and per result.
struct Check {
  mlir::func::FuncOp ranks, original;
  llvm::ArrayRef<reference::Tensor> inputs, got, want; ///< `got` on ranks, `want` on one device
  std::optional<double> rtol, atol;                    ///< as asked for; the defaults go by element type
  std::optional<Tolerance> ofWide = {};                ///< default for f32, where what ran on ranks computes it in less
  /// One device, computing in less, too; empty: not known. Then outputs are judged by how far this is from `want`.
  llvm::ArrayRef<reference::Tensor> narrow = {};
};

/// How far rounding moves an output, by a run of both programs with every float an f64.
struct Rounding {
  double apart = 0;                 ///< largest difference between ranks and one device, both in double
  double ofRanks = 0, ofDevice = 0; ///< largest difference from one device in double
};

/// How far ranks and one device, both computing in less, are from one device that computes as the model says.
struct NarrowCheck {
  Spread ofRanks, ofDevice;
  bool isClose = false; ///< the ranks are not much farther
};

/// What is found of one output.
struct OutputCheck {
  std::string name;
  Tolerance tolerance;
  Difference difference;
  /// Out of tolerance, but by no more than rounding does to the original itself (see Check.cpp).
  bool isIllConditioned = false;
  /// Of an output out of tolerance, where rounding could be the reason: how far it goes, or why that cannot be told.
  std::optional<Rounding> rounding;
  std::string problem;
  /// Instead of the tolerance, where one device was run in less.
  std::optional<NarrowCheck> narrow;

  bool isClose() const { return narrow ? narrow->isClose : difference.position < 0; }
  bool isRight() const { return isClose() || isIllConditioned; }
};

/// One entry per output.
std::vector<OutputCheck> checkOutputs(const Check &check);

} // namespace cleave

#endif // CLEAVE_COMPILER_CHECK_H
