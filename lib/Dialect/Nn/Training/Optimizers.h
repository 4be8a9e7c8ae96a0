//===- Optimizers.h - from a gradient to a new weight -----------*- C++ -*-===//
#ifndef CLEAVE_LIB_DIALECT_NN_TRAINING_OPTIMIZERS_H
#define CLEAVE_LIB_DIALECT_NN_TRAINING_OPTIMIZERS_H

#include "cleave/Dialect/Nn/IR/Composer.h"
#include "cleave/Plan/Train.h"

namespace cleave::nn {

/// What all weights of a step share: numbers of rank 0 in f64, so that `1 - beta^n` keeps its digits.
struct StepNumbers {
  mlir::Value rate;
  /// Steps done with this one.
  mlir::Value count;
};

/// The rate of the step after `done` ones, both of rank 0: i64, and f64.
mlir::Value composeRate(Composer &f, const spmd::PlanRate &rate, mlir::Value done);

/// The words of an optimizer's states of a weight, `m` and `v`; all begin as zeros.
llvm::ArrayRef<llvm::StringRef> getStateWords(const spmd::PlanOptimizer &optimizer);

/// Takes one step: the next weight, after what becomes of `states` in place.
/// \param weight, gradient, states of one shape and type, f32 or f64; \param decay and \param rateFactor are the weight's own.
mlir::Value composeUpdate(Composer &f, const spmd::PlanOptimizer &optimizer, const StepNumbers &numbers,
                          mlir::Value weight, mlir::Value gradient, llvm::MutableArrayRef<mlir::Value> states,
                          double decay, double rateFactor);

} // namespace cleave::nn

#endif // CLEAVE_LIB_DIALECT_NN_TRAINING_OPTIMIZERS_H
