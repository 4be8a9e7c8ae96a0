//===- Staged.h - what all ranks of one entry share -------------*- C++ -*-===//
//
// The loop and its table, and who reads what: the messages between two stages, whole values from before the loop, arguments.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_DIALECT_PIPE_STAGES_STAGED_H
#define CLEAVE_LIB_DIALECT_PIPE_STAGES_STAGED_H

#include "Table.h"

#include "cleave/Dialect/Pipe/Stages/StageUnits.h"
#include "cleave/Schedule/Simulate.h"
#include "cleave/Schedule/Updates.h"

#include <set>

namespace cleave::pipe {

struct Staged {
  /// Finds out who reads what. Precondition: a loop of pipe-split, with as many units as the table has.
  Staged(mlir::func::FuncOp func, MicrobatchesOp loop, const schedule::Schedule &table);

  mlir::func::FuncOp func;
  MicrobatchesOp loop;
  const schedule::Schedule &table;
  /// By unit: of the loop's body; and of its second body, if it has one.
  llvm::SmallVector<mlir::func::CallOp> calls, rest;
  StageUnits units;
  /// Of calls in the loop, and behind it.
  llvm::DenseMap<mlir::Operation *, int32_t> stageOf;
  llvm::DenseMap<mlir::Operation *, int32_t> unitOf;
  /// Stages that read a value made before the loop, ascending; the first of all that read results of its call makes them.
  llvm::DenseMap<mlir::Value, std::set<int32_t>> readers;

  /// The call of a unit as a microbatch makes it: those of one size have their own.
  mlir::func::CallOp getCall(int32_t unit, int32_t microbatch) {
    return loop.getDeal().hasOneMore(microbatch) || rest.empty() ? calls[unit] : rest[unit];
  }
  int32_t getMaker(mlir::Operation *call) const;
  /// Where a stage is at home: has its states, and what is made of all microbatches. Others of its ranks are those of other ways.
  int32_t getRank(int32_t stage) const { return table.replicas.front().placement[stage]; }
  bool isOn(int32_t rank, int32_t stage) const {
    return llvm::any_of(table.replicas, [&](const schedule::Replica &way) { return way.placement[stage] == rank; });
  }
  /// The stage whose rank has a result of the function.
  int32_t getResultStage(mlir::Value returned);
  /// The rank that has an argument which is kept as it is, or the next value of which it makes; nothing of all others.
  std::optional<int32_t> getOwner(mlir::BlockArgument argument) const;
  /// Whether a call behind the loop needs gradients of its own stage alone, so that it may run while its rank still waits for others: an update,
  /// or, where a length to clip by or a scale comes first, what the stage adds to that.
  bool isAlone(mlir::Operation *behind) const { return alone.contains(behind); }
  /// Why calls of the stage are none of those, for people; empty: all are.
  std::string describeNeeds(int32_t stage);
  /// Adds what these calls take of each stage, and the reductions in them. `timed`: as below. Error: of the module's cluster.
  llvm::LogicalResult addUpdateCosts(const schedule::Schedule &timed, schedule::Costs &costs);
  /// Of two ways: whether sums or parts of this result of the loop are also made on a rank that is not its stage's home.
  bool isSentHome(mlir::OpResult result);
  /// Fills waits of ranks in `timed`, this table with times of its channels, with what may run in them; `costs` have its times. A table that
  /// says itself when stages are updated stays as it is. Returns what is late: all, unless `early`.
  llvm::Expected<std::vector<schedule::LateUpdate>> placeUpdates(schedule::Schedule &timed,
                                                                 const schedule::Costs &costs, bool early);
  /// The first stage of a rank.
  int32_t getStageOf(int32_t rank) const;
  /// What stage `from` hands to stage `to` for each microbatch: what that reads, and its rank has not got by an earlier message. To a later
  /// stage goes what the forward makes, for all units that read it; to an earlier one also what the backward makes.
  llvm::SmallVector<mlir::Value> getMessage(int32_t from, int32_t to, int32_t microbatch);
  int64_t getChannel(int32_t from, int32_t to) const;
  /// The value that the body yields for a result of the loop.
  mlir::Value getYielded(mlir::OpResult result) {
    return loop.getBody().front().getTerminator()->getOperand(result.getResultNumber());
  }

private:
  void findReaders();
  void findOwners();
  void findAlone();
  mlir::Value findForeign(mlir::Operation *behind);
  bool isReadBy(int32_t stage, mlir::Value value);

  llvm::DenseMap<mlir::Value, int32_t> owners;
  llvm::DenseSet<mlir::Operation *> alone;
};

} // namespace cleave::pipe

#endif // CLEAVE_LIB_DIALECT_PIPE_STAGES_STAGED_H
