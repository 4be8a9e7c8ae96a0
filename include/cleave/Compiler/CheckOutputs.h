//===- CheckOutputs.h - what two runs of one model say ----------*- C++ -*-===//
#ifndef CLEAVE_COMPILER_CHECKOUTPUTS_H
#define CLEAVE_COMPILER_CHECKOUTPUTS_H

#include "cleave/Compiler/Check.h"
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

/// One entry per output.
std::vector<OutputCheck> checkOutputs(const Check &check);

} // namespace cleave

#endif // CLEAVE_COMPILER_CHECKOUTPUTS_H
