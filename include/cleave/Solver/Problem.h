//===- Problem.h - what is to be decided ------------------------*- C++ -*-===//
//
// A graph of values and ops over dense numbers, with the shardings that the user annotates: all that deciding needs to
// know of a program. Build it in order, then hand it to `Solver`:
//
//   Problem problem(mesh);
//   ValueId x = problem.addValue({8, 64}, 4), w = problem.addValue({64, 256}, 4), y = problem.addValue({8, 256}, 4);
//   problem.setParameter(w);
//   problem.setAnnotation(w, annotation);                               // dims [_, model]
//   problem.addOp(problem.internRule(rule), {x, w}, {y});
//   problem.addOutput(y);
//
// A value that no op makes is an input. Ops without operands (constants, loads of parameters, iota) belong into the
// problem as inputs too, not as ops. An input without an annotation is *free*: any user splits it for nothing, and how it is
// stored follows from its users.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SOLVER_PROBLEM_H
#define CLEAVE_SOLVER_PROBLEM_H

#include "cleave/Sharding/Mesh.h"
#include "cleave/Sharding/ShardingRule.h"
#include "cleave/Support/HashIndex.h"
#include "llvm/ADT/STLExtras.h"
#include <deque>
#include <vector>

namespace cleave::spmd {

using RuleId = uint32_t;
using OpId = uint32_t;
using ValueId = uint32_t;
/// Number of an output, in the order in which they were added.
using OutputId = uint32_t;
/// What an annotation goes back to, such as a line of the plan. Means something to the caller only.
using CauseId = uint32_t;
/// No op, value, annotation, ...
inline constexpr uint32_t kNone = ~uint32_t(0);

/// What the user wants of one dim.
struct AnnotationDim {
  /// Major to minor.
  AtomList atoms;
  /// Propagation may append atoms.
  bool isOpen = false;
  /// Lower ones decide first.
  int64_t priority = 0;
};

/// How the user wants one value.
struct Annotation {
  llvm::SmallVector<AnnotationDim, 4> dims;
  /// Atoms over which the value is to be partial, ascending, and how its terms combine (`Sum` if there are none).
  AtomList partial;
  ReductionKind partialKind = ReductionKind::Sum;
  /// Atoms that must not split any open dim.
  AtomList replicated;
  /// Shard sizes need not divide; nor need they wherever else the atoms of its dims come.
  bool isUneven = false;
  CauseId cause = kNone;

  bool isPartial() const { return !partial.empty(); }
  /// True if both ask for the same, whoever asks.
  bool asksSameAs(const Annotation &other) const;
};

/// Two annotations that exclude each other.
struct AnnotationConflict {
  ValueId value = kNone;
  CauseId first = kNone, second = kNone;
};

class Problem {
public:
  explicit Problem(AtomMesh mesh) : mesh(std::move(mesh)) {}

  /// The number of `rule`: that of an equal one added before, or the next. Equal layers so share all work.
  RuleId internRule(ShardingRule &&rule);
  ValueId addValue(llvm::ArrayRef<int64_t> shape, int64_t elementBytes);
  /// Marks an input as a parameter of the model (a weight), which only moves when nothing else will do.
  void setParameter(ValueId value) { values[value].isParameter = true; }
  /// What has a multiple of `size` elements is not split unevenly. Comes before the problem is solved, as do the next two.
  void keepEven(int64_t size) { evenSize = size; }
  /// Nor is that dim of an input.
  void keepInputEven(ValueId value, int32_t dim) { values[value].evenDim = dim; }
  void keepOutputEven(OutputId output, int32_t dim) { outputs[output].evenDim = dim; }
  /// The atom may split whatever its size divides and a rule can split, also where no annotation brings it; `isUneven`: and what it does not
  /// divide, as that of an uneven annotation.
  void setFree(AtomId atom, bool isUneven = false);
  /// How an input is stored is decided with all else: it costs memory, and what users want otherwise is resharded. Without it an input
  /// that has no annotation is stored as its users have in common. Precondition: it has no annotation.
  void decideStorage(ValueId input) { values[input].isStorageDecided = true; }
  /// Nothing but an annotation splits this dim of an input.
  void keepInputDim(ValueId input, int32_t dim) { values[input].keptDim = dim; }
  /// The next call finds the output in the input, so both have one state. Precondition: the input's storage is decided, and the output has
  /// no annotation.
  void tie(ValueId input, OutputId output);
  /// Gives a value this state, for all its users. A second one that asks otherwise is a conflict.
  void setAnnotation(ValueId value, Annotation annotation);
  /// Preconditions: operands are inputs or results of earlier ops; results are new; one of each per tensor of the rule,
  /// with its rank.
  OpId addOp(RuleId rule, llvm::ArrayRef<ValueId> operands, llvm::ArrayRef<ValueId> results);
  /// An axis that annotations bring to `factor` of the op splits nothing else of it.
  void hold(OpId op, FactorId factor) { ops[op].held = factor; }
  /// Makes a value that is `operand` in the state that its annotation asks for (`spmd.constrain`): an op whose operand and
  /// result always have the same state. Precondition: both have one shape; `result` gets an annotation.
  OpId addConstraint(ValueId operand, ValueId result);
  /// The program returns `value`, in the annotated state if there is one, else in the one that is asked for
  /// the value itself, else in one that is convenient, but never partial. Only an annotation makes it partial.
  OutputId addOutput(ValueId value, const Annotation *annotation = nullptr);

  const AtomMesh &getMesh() const { return mesh; }
  /// True if the atom may split what it does not divide: some uneven annotation has it.
  bool mayBeUneven(AtomId atom) const { return llvm::is_contained(unevenAtoms, atom); }
  llvm::ArrayRef<AtomId> getUnevenAtoms() const { return unevenAtoms; }
  llvm::ArrayRef<AtomId> getFreeAtoms() const { return freeAtoms; }
  bool isStorageDecided(ValueId value) const { return values[value].isStorageDecided; }
  /// The dim that `keepInputDim` named; -1: none.
  int32_t keptDimOfInput(ValueId value) const { return values[value].keptDim; }
  llvm::ArrayRef<std::pair<ValueId, OutputId>> getTies() const { return ties; }
  /// True for the size of what is never padded.
  bool isKeptEven(int64_t size) const { return evenSize != 0 && size % evenSize == 0; }
  /// The dim that is not; -1: none.
  int32_t evenDimOfInput(ValueId value) const { return values[value].evenDim; }
  int32_t evenDimOfOutput(OutputId output) const { return outputs[output].evenDim; }
  size_t numOps() const { return ops.size(); }
  size_t numValues() const { return values.size(); }
  size_t numOutputs() const { return outputs.size(); }
  size_t numRules() const { return rules.size(); }

  const ShardingRule &rule(RuleId id) const { return rules[id]; }
  RuleId ruleOf(OpId op) const { return ops[op].rule; }
  bool isConstraint(OpId op) const { return ops[op].isConstraint; }
  /// The factor that `hold` named; -1 if none.
  FactorId heldFactor(OpId op) const { return ops[op].held; }
  /// Operands and results of all ops lie one after the other; these are the places of an op's first ones.
  uint32_t firstOperand(OpId op) const { return ops[op].firstOperand; }
  uint32_t firstResult(OpId op) const { return ops[op].firstResult; }
  llvm::ArrayRef<ValueId> operands(OpId op) const { return slice(allOperands, &Op::firstOperand, op); }
  llvm::ArrayRef<ValueId> results(OpId op) const { return slice(allResults, &Op::firstResult, op); }
  size_t numOperands() const { return allOperands.size(); }
  size_t numResults() const { return allResults.size(); }

  llvm::ArrayRef<int64_t> shape(ValueId value) const {
    return llvm::ArrayRef<int64_t>(extents).slice(values[value].firstExtent, values[value].rank);
  }
  int64_t elementBytes(ValueId value) const { return values[value].elementBytes; }
  /// Of the whole value.
  double totalBytes(ValueId value) const {
    auto bytes = static_cast<double>(elementBytes(value));
    for (int64_t extent : shape(value))
      bytes *= static_cast<double>(extent);
    return bytes;
  }
  bool isParameter(ValueId value) const { return values[value].isParameter; }
  /// The op that makes the value; `kNone` for an input.
  OpId producer(ValueId value) const { return values[value].producer; }
  unsigned resultIndex(ValueId value) const { return values[value].resultIndex; }
  /// Null if there is none.
  const Annotation *annotation(ValueId value) const { return lookup(values[value].annotation); }

  ValueId outputValue(OutputId output) const { return outputs[output].value; }
  const Annotation *outputAnnotation(OutputId output) const { return lookup(outputs[output].annotation); }

  /// True if both ask for the same decision, whoever asks.
  bool isSameAs(const Problem &other) const;

  /// Annotations of one value that exclude each other, in the order in which they came.
  llvm::ArrayRef<AnnotationConflict> getConflicts() const { return conflicts; }

private:
  struct Value {
    uint32_t firstExtent, rank;
    int64_t elementBytes;
    OpId producer = kNone;
    uint32_t resultIndex = 0;
    uint32_t annotation = kNone;
    bool isParameter = false, isStorageDecided = false;
    int32_t evenDim = -1, keptDim = -1;
  };
  struct Op {
    RuleId rule;
    uint32_t firstOperand, firstResult;
    bool isConstraint = false;
    FactorId held = -1;
  };
  struct Output {
    ValueId value;
    uint32_t annotation;
    int32_t evenDim = -1;
  };

  void noteUneven(const Annotation &annotation);
  const Annotation *lookup(uint32_t id) const { return id == kNone ? nullptr : &annotations[id]; }
  llvm::ArrayRef<ValueId> slice(const std::vector<ValueId> &all, uint32_t Op::*first, OpId op) const {
    uint32_t begin = ops[op].*first, end = op + 1 < ops.size() ? ops[op + 1].*first : all.size();
    return llvm::ArrayRef<ValueId>(all).slice(begin, end - begin);
  }

  AtomMesh mesh;
  std::deque<ShardingRule> rules;
  HashIndex ruleIndex;
  std::vector<Value> values;
  std::vector<int64_t> extents;
  std::vector<Op> ops;
  std::vector<ValueId> allOperands, allResults;
  std::vector<Output> outputs;
  std::deque<Annotation> annotations;
  std::vector<AnnotationConflict> conflicts;
  AtomList unevenAtoms, freeAtoms;
  std::vector<std::pair<ValueId, OutputId>> ties;
  int64_t evenSize = 0;
};

} // namespace cleave::spmd

#endif // CLEAVE_SOLVER_PROBLEM_H
