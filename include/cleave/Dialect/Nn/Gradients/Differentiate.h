//===- Differentiate.h - gradients in reverse -------------------*- C++ -*-===//
//
// Reverse-mode differentiation (Griewank and Walther, Evaluating Derivatives, 2008):
//
//   xs ──▶ op ──▶ op ──▶ y          gradients of xs ◀── rule ◀── rule ◀── seed
//    zs ───┘                                      uses operands and results of its op
//
// Ops from xs to y are visited from y on, each when the gradients of its results are complete; its rule (GradientBuilder.h) adds those
// of its operands, and a value that several ops read gets the sum. xs and zs are leaves: nothing goes past them.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_NN_GRADIENTS_DIFFERENTIATE_H
#define CLEAVE_DIALECT_NN_GRADIENTS_DIFFERENTIATE_H

#include "cleave/Dialect/Nn/IR/Composer.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace cleave::nn {

/// Of an op through which no gradient goes, as what it would be is known to be zero.
inline constexpr llvm::StringLiteral kDetachedAttr = "nn.detached";

/// What lies between leaves and a target.
struct GradientPath {
  /// Ops that lead from leaves to the target, each after those that it reads.
  llvm::SmallVector<mlir::Operation *> ops;
  /// Values of floats on it that depend on what is differentiated by, these included.
  llvm::DenseSet<mlir::Value> active;
  llvm::DenseSet<mlir::Value> leaves;
};

/// \param leaves of which the first `numWanted` are differentiated by. Time and stack: linear in the ops that lead to the target, and
/// constant (a model may be one chain of a million ops).
GradientPath findGradientPath(mlir::Value target, llvm::ArrayRef<mlir::Value> leaves, size_t numWanted);

class Differentiation {
public:
  /// \param f makes the ops; its place is after all ops of `path`.
  Differentiation(Composer &f, const GradientPath &path) : f(f), path(path) {}

  /// Visits the path from a target of gradient `seed`. `visit` is told each op before its rule makes ops. Fails where an op has no
  /// gradient, or `f` made nothing.
  llvm::LogicalResult run(
      mlir::Value target, mlir::Value seed,
      llvm::function_ref<void(mlir::Operation *)> visit = [](mlir::Operation *) {});

  /// Null where the target does not depend on the value, or in steps alone.
  mlir::Value getGradient(mlir::Value value) const { return gradients.lookup(value); }

  /// After a failure: the op without a gradient, and why, which completes "'nn.x' has no gradient"; null where `f` failed.
  mlir::Operation *getObstacle() const { return obstacle; }
  llvm::StringRef getReason() const { return reason; }

private:
  llvm::SmallVector<mlir::Value, 2> getGradients(mlir::Operation *op) const;
  llvm::LogicalResult differentiate(mlir::Operation *op);

  Composer &f;
  const GradientPath &path;
  llvm::DenseMap<mlir::Value, mlir::Value> gradients;
  mlir::Operation *obstacle = nullptr;
  std::string reason;
};

} // namespace cleave::nn

#endif // CLEAVE_DIALECT_NN_GRADIENTS_DIFFERENTIATE_H
