//===- StepOps.h - the ops of a step, forward and backward ------*- C++ -*-===//
//
// Which ops of one microbatch compute gradients, and of which ops of the model: by the names that nn-differentiate gives their nodes.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_DIALECT_PIPE_STAGES_STEPOPS_H
#define CLEAVE_LIB_DIALECT_PIPE_STAGES_STEPOPS_H

#include "cleave/Dialect/Pipe/Stages/StageUnits.h"
#include "cleave/Dialect/Spmd/IR/Spans.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"

namespace cleave::pipe {

class StepOps {
public:
  /// Precondition: one block.
  StepOps(mlir::func::FuncOp func, const spmd::Spans &spans);

  /// In program order; none where `func` is no step.
  llvm::ArrayRef<mlir::Operation *> getBackward() const { return backward.getArrayRef(); }
  bool isBackward(mlir::Operation *op) const { return backward.contains(op); }
  /// The ops of the model that a backward op is the gradient of, or makes again; none where its name says nothing.
  llvm::SmallVector<mlir::Operation *> getForward(mlir::Operation *op) const;

  /// Stage of an op of the forward; nothing for what is of no stage.
  using ForwardStages = llvm::DenseMap<mlir::Operation *, int64_t>;
  /// By op of the backward, in program order. An op is where the ops are that it is the gradient of, or behind what it reads of the backward
  /// of earlier stages; what is made again, where it is read first. What other stages read is of I. Of the rest W has contractions and convolutions, and what reads these, so that norms
  /// drag nothing along.
  llvm::MapVector<mlir::Operation *, int64_t> findUnits(const StageUnits &units, const ForwardStages &stages) const;

private:
  int64_t findStage(mlir::Operation *op, const ForwardStages &forward, const ForwardStages &stages) const;

  llvm::SetVector<mlir::Operation *> backward;
  /// Of these, what is made again of the forward alone: it waits for no gradient.
  llvm::DenseSet<mlir::Operation *> remade;
  /// By name of the node.
  llvm::StringMap<llvm::SmallVector<mlir::Operation *, 1>> forwardOf;
};

} // namespace cleave::pipe

#endif // CLEAVE_LIB_DIALECT_PIPE_STAGES_STEPOPS_H
