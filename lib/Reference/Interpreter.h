//===- Interpreter.h - a block of ops on all ranks --------------*- C++ -*-===//
//
// The body of a function, or of a loop over microbatches. All ranks of a mesh advance in lockstep; where a rank of a pipeline
// meets another one, it stops, and whoever runs both goes on.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_REFERENCE_INTERPRETER_H
#define CLEAVE_LIB_REFERENCE_INTERPRETER_H

#include "Ranks.h"
#include "cleave/Dialect/Exec/IR/Control.h"
#include "cleave/Dialect/Nn/IR/Control.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "cleave/Reference/Evaluator.h"

namespace cleave::reference {

class Interpreter {
public:
  /// `mesh` is null where the block is not partitioned. Precondition: the block has a terminator.
  Interpreter(mlir::Block &block, spmd::MeshAttr mesh, ParamStore &params);

  /// Runs the whole block: one list of tensors per argument, and per operand of the terminator.
  llvm::LogicalResult run(llvm::SmallVector<PerRank> arguments, llvm::SmallVectorImpl<PerRank> &results);

  void begin(llvm::SmallVector<PerRank> arguments);
  /// Goes on to the terminator, or to the next message, which waits for `finish`.
  mlir::FailureOr<mlir::Operation *> advance();
  llvm::SmallVector<PerRank> getOperands(mlir::Operation &op);
  void set(mlir::Value value, PerRank ofRanks);
  void finish(mlir::Operation &op);

private:
  void findLastUses();
  llvm::LogicalResult step(mlir::Operation &op);
  llvm::LogicalResult compute(mlir::Operation &op);
  llvm::LogicalResult load(nn::LoadOp op);
  llvm::LogicalResult runCall(mlir::func::CallOp call);
  llvm::LogicalResult runMicrobatches(pipe::MicrobatchesOp loop);
  llvm::LogicalResult runLoop(nn::LoopOp loop);
  llvm::LogicalResult runEnter(exec::EnterOp enter);
  llvm::LogicalResult runLeave(exec::LeaveOp leave);
  llvm::LogicalResult runParts(mlir::Operation &op);
  /// The operands of `op` on `rank`.
  llvm::SmallVector<Tensor> getOperands(mlir::Operation &op, int64_t rank);
  /// The first rank whose operands of `op` share their bytes with those of `rank`; `rank` itself if there is none.
  int64_t findTwin(llvm::ArrayRef<llvm::SmallVector<Tensor>> operands, int64_t rank);

  mlir::Block &block;
  mlir::Operation *next;
  spmd::MeshAttr mesh;
  int64_t numRanks;
  ParamStore &params;
  llvm::DenseMap<mlir::Value, PerRank> values;
  /// Null for what a loop that is marks in the block reads from outside: each iteration does.
  llvm::DenseMap<mlir::Value, mlir::Operation *> lastUses;
  /// Loops that are marks in the block and have begun, and how many iterations they have done.
  llvm::SmallVector<std::pair<exec::EnterOp, int64_t>> entered;
};

/// Whether `loop`, a mark or an op with a body, goes on behind so many iterations. Fails after an error where ranks disagree, since they
/// meet in the body.
mlir::FailureOr<bool> readCondition(mlir::Operation *loop, const PerRank &condition, int64_t iteration);

/// Runs the functions of all ranks of a pipeline, `func` being what they mean: arguments and results are its own.
/// Messages are rendezvous. Fails after an error: two ends that do not agree (P8, P12), ranks that wait for each other (P9).
llvm::LogicalResult runRanks(mlir::func::FuncOp func, spmd::MeshAttr mesh, ParamStore &params,
                             llvm::ArrayRef<PerRank> arguments, llvm::SmallVectorImpl<PerRank> &results);

} // namespace cleave::reference

#endif // CLEAVE_LIB_REFERENCE_INTERPRETER_H
