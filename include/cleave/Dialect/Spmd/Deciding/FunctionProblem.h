//===- FunctionProblem.h - one function as a problem to decide --*- C++ -*-===//
//
// The bridge between the IR and `Solver/Problem.h`: it numbers values and ops, reads rules and annotations, and keeps the
// way back, so that a decision can be written into types and explained.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_SPMD_DECIDING_FUNCTIONPROBLEM_H
#define CLEAVE_DIALECT_SPMD_DECIDING_FUNCTIONPROBLEM_H

#include "cleave/Dialect/Spmd/IR/FreeAxes.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Dialect/Spmd/IR/Spans.h"
#include "cleave/Solver/Solver.h"
#include <cassert>

namespace cleave::spmd {

/// A loop, as the problem has it: an op for each value that goes into its body, whose results and operands all lie in one
/// state, so that deciding one of them decides all.
struct LoopProblem {
  LoopOpInterface op;
  /// Of initial value and yielded one, argument and result.
  llvm::SmallVector<OpId> carried;
  /// Of the operand and the argument.
  llvm::SmallVector<OpId> captured;
  /// Of both conditions, which it wants whole; `kNone` where there are none.
  OpId condition = kNone;
  /// The iterations that it is counted for.
  int64_t times = 1;
};

/// What is decided of a function besides what its types ask for.
struct ProblemOptions {
  /// An axis that comes to attention along its queries' sequence stays there.
  bool holdsQueries = false;
  /// How parameters without an annotation are stored is decided, at a price on memory; else they are stored as their users want them.
  bool storesParameters = false;
  /// Atoms that may split whatever they can.
  FreeAtoms free = {};
};

/// For all who decide on one model (`SolverOptions::memory`).
std::shared_ptr<SearchMemory> makeSearchMemory();

class FunctionProblem {
public:
  /// Reads `func`. Null after an error: an op without a sharding rule, control flow, states that are none. `atoms` must outlive this.
  static std::unique_ptr<FunctionProblem> create(mlir::func::FuncOp func, MeshAtoms &atoms,
                                                 ProblemOptions options = {});

  /// Solves it. Fails after an error: annotations that exclude each other.
  llvm::LogicalResult solve(SolverOptions options);

  const Problem &getProblem() const { return problem; }
  /// Precondition: `solve` succeeded.
  const Solver &getSolver() const {
    assert(solver && "not solved yet");
    return *solver;
  }
  const Decision &getDecision() const { return getSolver().getDecision(); }

  mlir::func::FuncOp getFunction() const { return func; }
  /// By number.
  llvm::ArrayRef<mlir::Value> getValues() const { return values; }
  llvm::ArrayRef<mlir::Operation *> getOps() const { return ops; }
  /// Outer ones before those in their bodies.
  llvm::ArrayRef<LoopProblem> getLoops() const { return loops; }
  ValueId getId(mlir::Value value) const { return valueIds.lookup(value); }
  /// Where the annotation with this cause was made: a place of the plan, or the value that carries it.
  mlir::Location getAnnotationLoc(CauseId cause) const;

private:
  FunctionProblem(mlir::func::FuncOp func, MeshAtoms &atoms, ProblemOptions options)
      : func(func), atoms(atoms), options(std::move(options)), problem(atoms.getAtoms()), spans(func) {}

  llvm::LogicalResult build();
  llvm::LogicalResult addValue(mlir::Value value);
  llvm::LogicalResult addValues(mlir::Block &block);
  void setParameter(ValueId value);
  llvm::LogicalResult tieStates();
  void addOps(mlir::Block &block);
  void addOp(mlir::Operation *op);
  void addLoop(LoopOpInterface loop);
  /// The microbatches that `op` is counted for; 1 for what is in a loop, which is counted as its loop is.
  int64_t getMicrobatches(mlir::Operation *op) const;
  /// The iterations that `loop` is counted for, in what runs as often as is added now.
  int64_t getTimes(LoopOpInterface loop) const;
  OpId addLoopOp(LoopOpInterface loop, llvm::ArrayRef<mlir::Value> operands, llvm::ArrayRef<mlir::Value> results);
  void setAnnotation(mlir::Value value, ValueId id, ShardingAttr sharding);
  void emit(const SolverError &error);

  mlir::func::FuncOp func;
  MeshAtoms &atoms;
  ProblemOptions options;
  Problem problem;
  Spans spans;
  std::unique_ptr<Solver> solver;
  std::vector<mlir::Value> values;
  std::vector<mlir::Operation *> ops;
  std::vector<LoopProblem> loops;
  /// How often what is added now runs: bytes and flops count as often. All loops together count no more often than `mostTimes`.
  int64_t times = 1, mostTimes = 1;
  llvm::DenseMap<mlir::Value, ValueId> valueIds;
  /// By cause.
  std::vector<mlir::Value> annotations;
  struct RuleTable;
  std::shared_ptr<RuleTable> rules;
};

} // namespace cleave::spmd

#endif // CLEAVE_DIALECT_SPMD_DECIDING_FUNCTIONPROBLEM_H
