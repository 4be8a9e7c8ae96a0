//===- Begins.h - what states hold before the first call --------*- C++ -*-===//
#ifndef CLEAVE_REFERENCE_BEGINS_H
#define CLEAVE_REFERENCE_BEGINS_H

#include "cleave/Reference/Evaluator.h"

namespace cleave::reference {

/// What a state holds before the first call, whole: a parameter or a part of it, cast to the state's type (Nn/IR/Begins.h), or zeros.
struct Beginning {
  Tensor value;
  bool isParameter = false;
};

/// By argument of `func`, where memory is planned by its inputs; nothing for what has no role in a step, or is of a batch. Errors are
/// emitted at the function.
mlir::FailureOr<llvm::SmallVector<std::optional<Beginning>>> getBeginnings(mlir::func::FuncOp func);

} // namespace cleave::reference

#endif // CLEAVE_REFERENCE_BEGINS_H
