//===- States.h - what stays in the ranks between calls ---------*- C++ -*-===//
//
// A result with the attribute `spmd.state = "past"` is what the next call finds as its argument "past". Both are of one
// shape, or the result is larger along one dim, the one that *grows*: then the last positions of it are the argument.
//
//   argument        |   past, p positions   |
//   result          |   past                | n new |
//   next argument           |   past, p positions   |
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_SPMD_IR_STATES_H
#define CLEAVE_DIALECT_SPMD_IR_STATES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace cleave::spmd {

/// Of an argument: it stays in the ranks from call to call, and this function leaves it as it is; another entry of the program makes its
/// next value.
inline constexpr llvm::StringLiteral kKeptAttr = "spmd.kept";

struct StatePlace {
  unsigned argument, result;
  /// The dim that grows, and by how many positions; nothing where there is one shape.
  std::optional<unsigned> dim;
  int64_t added = 0;
};

/// How a result of type `result` can be the next value of an argument of type `argument`; nothing if it cannot. Shapes and
/// elements count, encodings do not.
std::optional<StatePlace> matchState(mlir::Type argument, mlir::Type result);

/// The states of a function, by result. Fails after an error where an attribute names no argument, one that has a state
/// already, or one of another type.
mlir::FailureOr<llvm::SmallVector<StatePlace>> getStates(mlir::func::FuncOp func);

/// Which argument a result is the next value of; nothing if it is no state, or of no argument.
std::optional<unsigned> findStateArgument(mlir::func::FuncOp func, unsigned result);

} // namespace cleave::spmd

#endif // CLEAVE_DIALECT_SPMD_IR_STATES_H
