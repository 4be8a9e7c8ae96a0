//===- StageParts.h - what each stage is made of ----------------*- C++ -*-===//
//
// The program of one microbatch, taken apart: which ops each stage has, what it reads from whom, what it hands on.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_DIALECT_PIPE_STAGES_STAGEPARTS_H
#define CLEAVE_LIB_DIALECT_PIPE_STAGES_STAGEPARTS_H

#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "cleave/Dialect/Pipe/Stages/StageUnits.h"
#include "cleave/Dialect/Spmd/IR/Spans.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"

namespace cleave::pipe {

using Values = llvm::SmallSetVector<mlir::Value, 8>;

struct StageParts {
  /// Its own, what it computes again because sending is more expensive, its parameters and constants; not in order.
  llvm::SetVector<mlir::Operation *> ops;
  /// What it reads: parts of arguments and of whole values; whole values; what earlier stages made.
  Values parts, invariants, received;
  /// What later stages, or the caller, get of it. A value that is passed on is among `received` too.
  Values given;
  /// Invariant values to be made before the loop: those that it reads all of, or in parts, and does not get; and what others get of it.
  Values before;
};

/// Ops behind the loop that run on one rank at a time.
struct AfterParts {
  /// The stage whose rank it is; how many others have to send something first, one behind the other.
  int64_t stage = 0, level = 0;
  /// With invariant ones that these or the caller need.
  llvm::SetVector<mlir::Operation *> ops;
  /// Results of pipe.accumulate, of other such parts, whole values that are made before the loop, arguments; and what others or the caller get.
  Values reads, gives;
};

/// What is summed up over microbatches of arguments alone, as how many labels count: a rank that needs it knows it before the first of them.
struct AheadParts {
  /// Of each microbatch, made of `reads`, which are arguments that are split; the sums, and what is made of these alone; what others get.
  llvm::SetVector<mlir::Operation *> each, known;
  llvm::SmallVector<AccumulateOp> sums;
  Values reads, gives;

  bool contains(mlir::Operation *op) const {
    return op && (known.contains(op) || llvm::is_contained(sums, llvm::dyn_cast<AccumulateOp>(op)));
  }
};

struct ModelParts {
  StageUnits units{0, false};
  /// By unit.
  std::vector<StageParts> stages;
  /// Operands of pipe.accumulate, in order.
  llvm::SmallVector<AccumulateOp> sums;
  /// Values that are returned and made in the loop.
  Values outputs;
  AheadParts ahead;
  /// What stands behind the loop, each part behind those that it reads.
  std::vector<AfterParts> afters;
  /// The unit that makes a value of the loop.
  llvm::DenseMap<mlir::Operation *, int64_t> stageOf;
  /// The unit that makes the results of a whole op for all who need them; the others are made by each.
  llvm::DenseMap<mlir::Operation *, int64_t> makers;

  /// Who makes a whole value that unit `stage` needs.
  int64_t getMaker(int64_t stage, mlir::Value value) const {
    auto found = makers.find(value.getDefiningOp());
    return found == makers.end() ? stage : found->second;
  }
};

struct SharedInvariant;
/// Of the whole values that each stage reads, those that several need (SharedInvariants.h).
using FindShared = llvm::function_ref<std::vector<SharedInvariant>(llvm::ArrayRef<Values> wanted)>;

/// True for what every stage has by itself.
inline bool isOfEveryStage(mlir::Operation *op) { return nn::isData(op); }

/// Ops go where `pipe.stage` says, those without one where the last of their producers is. What stands behind the loop does so where the last
/// stage is; in a step, where most of what it reads of the loop is made. `again`: ops whose results each stage makes by itself. `relays`: a
/// value for a later stage's forward passes all between. `findShared`: which whole values go from one stage to others.
/// Fails after an error: a stage without ops; an edge that goes backward; a value of one microbatch that is read behind the loop.
mlir::FailureOr<ModelParts> findParts(mlir::func::FuncOp func, const spmd::Spans &spans,
                                      llvm::DenseSet<mlir::Operation *> again, bool relays, FindShared findShared);

} // namespace cleave::pipe

#endif // CLEAVE_LIB_DIALECT_PIPE_STAGES_STAGEPARTS_H
