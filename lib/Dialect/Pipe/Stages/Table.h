//===- Table.h - a schedule in the IR ---------------------------*- C++ -*-===//
//
// Between `schedule::Schedule`, which generators make and the checker reads, and `pipe.schedule`.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_DIALECT_PIPE_STAGES_TABLE_H
#define CLEAVE_LIB_DIALECT_PIPE_STAGES_TABLE_H

#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "cleave/Schedule/Place.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Error.h"

namespace cleave::pipe {

/// The loop of an entry: whose body calls a function per stage, in order. Null without one.
MicrobatchesOp findLoop(mlir::func::FuncOp func);
/// The calls of its units in a body, in order. Precondition: as pipe-split makes it.
llvm::SmallVector<mlir::func::CallOp> getStageCalls(mlir::Region &body);

/// Fails after an error: a second body hands other values from call to call than the first.
llvm::LogicalResult checkBodies(MicrobatchesOp loop);

/// Pairs of stages of which one reads what the other gives, by (later, earlier).
std::vector<schedule::Channel> findChannels(MicrobatchesOp loop);

/// What a table is for: a model without gradients; a step; a model by the plan of its step, where a schedule with gradients stands for the one
/// without that has its stages where that has them.
enum class TableUse { Inference, Training, InferenceOfStep };

/// Who computes what, in which order, by name or out of a file; without a name as `getRunSchedule` says. A file has its own number of
/// chunks. The same table for all who ask with the same words.
/// Error: gradients where there are none, or none where there are; other numbers than those of the model; two ways through the ranks; stages
/// where the schedule cannot have them.
llvm::Expected<schedule::Schedule> makeTable(llvm::StringRef name, schedule::Shape shape,
                                             const schedule::PlacementRequest &request, TableUse use);

/// The error for a word that is none.
mlir::InFlightDiagnostic emitNoPlacement(mlir::ModuleOp module, llvm::StringRef word);

ScheduleOp writeTable(mlir::OpBuilder &builder, mlir::Location loc, llvm::StringRef name,
                      const schedule::Schedule &table);
/// Fails after an error at the row that is none.
mlir::FailureOr<schedule::Schedule> readTable(ScheduleOp op);

} // namespace cleave::pipe

#endif // CLEAVE_LIB_DIALECT_PIPE_STAGES_TABLE_H
