//===- Table.h - a schedule in the IR ---------------------------*- C++ -*-===//
//
// Between `schedule::Schedule`, which generators make and the checker reads, and `pipe.schedule`.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_DIALECT_PIPE_TRANSFORMS_TABLE_H
#define CLEAVE_LIB_DIALECT_PIPE_TRANSFORMS_TABLE_H

#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "cleave/Schedule/Schedule.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Error.h"

namespace cleave::pipe {

/// The loop of an entry: whose body calls a function per stage, in order. Null without one.
MicrobatchesOp findLoop(mlir::func::FuncOp func);
/// The calls of its stages, in order. Precondition: as pipe-split makes it.
llvm::SmallVector<mlir::func::CallOp> getStageCalls(MicrobatchesOp loop);

/// Pairs of stages of which the later one reads what the earlier one gives, by (later, earlier).
std::vector<schedule::Channel> findChannels(MicrobatchesOp loop);

/// Who computes what, in which order, by name or out of a file; `forward` without a name, or `circular` for several stages a
/// rank. `chunks`: stages per rank; a file has its own. Error: gradients; other numbers than those of the model; two ways through the ranks.
llvm::Expected<schedule::Schedule> makeTable(llvm::StringRef name, int32_t ranks, int32_t chunks, int32_t microbatches);

/// Precondition: the schedule has one replica.
ScheduleOp writeTable(mlir::OpBuilder &builder, mlir::Location loc, llvm::StringRef name,
                      const schedule::Schedule &table);
/// Fails after an error at the row that is none.
mlir::FailureOr<schedule::Schedule> readTable(ScheduleOp op);

} // namespace cleave::pipe

#endif // CLEAVE_LIB_DIALECT_PIPE_TRANSFORMS_TABLE_H
