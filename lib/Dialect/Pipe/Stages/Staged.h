//===- Staged.h - what all ranks of one entry share -------------*- C++ -*-===//
//
// The loop and its table, and who reads what: the messages between two stages, whole values from before the loop, arguments.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_DIALECT_PIPE_STAGES_STAGED_H
#define CLEAVE_LIB_DIALECT_PIPE_STAGES_STAGED_H

#include "Table.h"

#include <set>

namespace cleave::pipe {

struct Staged {
  mlir::func::FuncOp func;
  MicrobatchesOp loop;
  const schedule::Schedule &table;
  /// Of the loop's body; and of its second body, if it has one.
  llvm::SmallVector<mlir::func::CallOp> calls, rest;
  llvm::DenseMap<mlir::Operation *, int32_t> stageOf;
  /// Stages that read a value made before the loop, ascending; the first of all that read results of its call makes them.
  llvm::DenseMap<mlir::Value, std::set<int32_t>> readers;

  void findReaders();
  /// The call of a stage as a microbatch makes it: those of one size have their own.
  mlir::func::CallOp getCall(int32_t stage, int32_t microbatch) {
    return loop.getDeal().hasOneMore(microbatch) || rest.empty() ? calls[stage] : rest[stage];
  }
  int32_t getMaker(mlir::Operation *call) const;
  int32_t getReader(mlir::Value argument) const;
  int32_t getRank(int32_t stage) const { return table.getRank(stage, 0); }
  int32_t getLastRank() const { return getRank(table.numStages - 1); }
  int32_t getRank(mlir::Value made) const { return getRank(stageOf.lookup(made.getDefiningOp())); }
  llvm::SmallVector<mlir::Value> getMessage(int32_t from, int32_t to);
  int64_t getChannel(int32_t from, int32_t to) const;
  /// The value that the body yields for a result of the loop.
  mlir::Value getYielded(mlir::OpResult result) {
    return loop.getBody().front().getTerminator()->getOperand(result.getResultNumber());
  }
};

} // namespace cleave::pipe

#endif // CLEAVE_LIB_DIALECT_PIPE_STAGES_STAGED_H
