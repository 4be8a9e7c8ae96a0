//===- Solver.h - deciding every sharding -----------------------*- C++ -*-===//
//
//   candidates   what each atom may do at each op: annotations flow along factors, no conflict is resolved (Candidates.h)
//   objective    bytes on the wire, and small terms that keep compute split (Objective.h)
//   passes       one mesh axis at a time, all else fixed: the exact minimum over the whole graph (Elimination.h)
//
// Passes repeat until nothing improves, first with the candidates that follow from the annotations, then also with those
// that give way to a conflict (fallbacks). Annotations of a lower priority number are decided first, and what they split stays.
//
//   Solver solver(problem);
//   if (!solver.solve()) report(solver.getErrors());
//   const Decision &decision = solver.getDecision();
//
// Everything is linear in the size of the graph, and deterministic.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SOLVER_SOLVER_H
#define CLEAVE_SOLVER_SOLVER_H

#include "cleave/Sharding/CostModel.h"
#include "cleave/Sharding/State.h"
#include "cleave/Solver/Problem.h"
#include <functional>
#include <memory>

namespace cleave::spmd {

/// Where to write how each decision came about, and how to call things there. What is asked for is up to the caller:
/// nothing is written, and no name asked for, without `os`.
struct SolverTrace {
  llvm::raw_ostream *os = nullptr;
  /// In mesh order.
  std::vector<std::string> axisNames;
  std::function<std::string(OpId)> opName;
  std::function<std::string(ValueId)> valueName;
};

class SearchMemory;

struct SolverOptions {
  CostModel costs;
  /// Rounds of passes per stage, at most.
  unsigned maxRounds = 4;
  /// Below this number of ops, pairs of axes are decided together in the end.
  unsigned maxOpsForPairs = 5000;
  /// Parameters that annotations split stay where they are, whatever it costs, and whatever brings their axes.
  bool keepParameters = false;
  /// Below `maxOpsForPairs`, look where deciding by bytes alone sends less.
  bool lookForFewerBytes = false;
  /// Units per byte that a rank stores of inputs whose storage is decided (`Problem::decideStorage`).
  double perStoredByte = 0;
  /// Units per byte that a rank reads and writes at each op: what passes through memory is alive there.
  double perValueByte = 0;
  /// True for factors of ops that free atoms may split. Null: all.
  std::function<bool(OpId, FactorId)> maySplit;
  /// What other searches found out, and this one adds to; null: nothing is known.
  std::shared_ptr<SearchMemory> memory;
  SolverTrace trace;
};

/// Why an atom that an annotation brings to an op does nothing there, or not what the annotation asks for.
struct ForcedReplication {
  enum class Reason {
    NoChoice,    ///< the op cannot be split along this factor; see `ShardingRule::mustReplicate`
    NotDividing, ///< the atom does not divide the factor
    AxisTaken,   ///< the factor, or one more major in the same dim, is split by other axes
    Dearer,      ///< possible, but `extraBytes` more on the wire if only this op did it
    Moved,       ///< the op cannot be split along this factor; the atom splits another one, so operands are resharded
  };
  OpId op = kNone;
  FactorId factor = 0;
  AtomId atom = 0;
  Reason reason = Reason::NoChoice;
  int64_t extraBytes = 0;
};

/// Ops next to each other that another decision splits otherwise.
struct Detour {
  enum class Kind {
    OtherStrategy, ///< annotations alone, without ways round conflicts, send more here
    SendsMore,     ///< deciding by bytes alone sends less here
  };
  Kind kind = Kind::OtherStrategy;
  /// Ascending; never empty.
  std::vector<OpId> ops;
  /// Bytes that the busiest rank sends here, by this decision and by the other one.
  int64_t bytes = 0, otherBytes = 0;
  /// Floating-point operations of a rank here.
  double flops = 0, otherFlops = 0;
  /// Equal places, this one included; `ops` are those of the first.
  int64_t numPlaces = 1;
};

/// What is wrong with the problem.
struct SolverError {
  enum class Kind {
    Conflict, ///< `first` and `second` want one value in two ways
    Illegal,  ///< `first` uses an atom twice, has the wrong number of dims, or does not divide
  };
  Kind kind = Kind::Conflict;
  ValueId value = kNone;
  CauseId first = kNone, second = kNone;
  /// Lower case, no full stop.
  std::string message;
};

/// One link of a chain from a decision back to an annotation.
struct CauseLink {
  enum class Kind {
    Op,         ///< factor `factor` of op number `id`
    Value,      ///< dim `factor` of value number `id`
    Output,     ///< dim `factor` of output number `id`
    Annotation, ///< the end: `id` is the annotation's CauseId
    Free,       ///< the end: the atom may split whatever it can (`Problem::setFree`)
  };
  Kind kind = Kind::Annotation;
  uint32_t id = kNone;
  int32_t factor = 0;
  /// The atom came here only to avoid a conflict at this op.
  bool isFallback = false;
};

/// The answer. Places of operands and results are those of the problem.
struct Decision {
  StateTable states;
  /// numAtoms choices per op, one after the other: index into the rule's choices.
  std::vector<uint16_t> choices;
  /// What each op wants of each operand, and how it makes each result.
  std::vector<StateId> operandStates, resultStates;
  /// How each value is shared: the state all users start from. An op's result that is made otherwise is resharded to it
  /// once. For an input, how it is stored.
  std::vector<StateId> valueStates;
  std::vector<StateId> outputStates;
  /// Bytes inside each op that the busiest rank sends.
  std::vector<int64_t> innerBytes;
  std::vector<ForcedReplication> forced;
  std::vector<Detour> detours;
  /// With all terms of the objective, in units of the cost model.
  int64_t objective = 0;
  /// Bytes that the busiest rank sends: all reshards, as `serveWants` shares them, and inside ops.
  int64_t wireBytes = 0;
};

/// Another choice of an op.
struct NextBest {
  /// What it costs more, all terms of the objective.
  int64_t bytes = 0;
  /// How the value asked about is then made, or taken.
  State result;
};

class Solver {
public:
  /// `problem` must outlive this.
  explicit Solver(const Problem &problem, SolverOptions options = {});
  ~Solver();

  /// False if there are errors.
  bool solve();
  llvm::ArrayRef<SolverError> getErrors() const;
  /// Precondition: `solve` returned true.
  const Decision &getDecision() const;

  /// The atoms that annotations bring to a factor of an op, whether or not they split it.
  AtomList getReached(OpId op, FactorId factor) const;
  /// How `atom` came to `factor` of `op`: the op first, an annotation last. Empty if it did not come.
  std::vector<CauseLink> explain(OpId op, FactorId factor, AtomId atom) const;
  /// The same for a dim of a value.
  std::vector<CauseLink> explainValue(ValueId value, unsigned dim, AtomId atom) const;
  /// The best that is left if the op that makes `value` makes another choice for the axis of `atom`, or if a user of an
  /// input takes it otherwise, and everything else follows suit; nothing if there is no other, or an annotation says how it is.
  /// One elimination over the graph for an op, one per user for an input.
  std::optional<NextBest> findNextBest(ValueId value, AtomId atom) const;

private:
  friend class JointTables;
  class Search;
  /// A decision that was looked up has no search behind it until somebody asks why.
  Search &getSearch() const;

  const Problem &problem;
  SolverOptions options;
  mutable std::unique_ptr<Search> search;
  std::optional<Decision> known;
};

} // namespace cleave::spmd

#endif // CLEAVE_SOLVER_SOLVER_H
