//===- Explanation.h - why values are sharded as they are -------*- C++ -*-===//
//
//   std::unique_ptr<cleave::Explainer> explainer = cleave::Explainer::create(compilation);
//   for (const cleave::ValueExplanation &value : *explainer->explain("*/Softmax_output_0"))
//     for (const cleave::AxisExplanation &axis : value.axes) ...
//
// What was decided is asked, not decided anew. Shardings are written as in plans.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_COMPILER_EXPLANATION_H
#define CLEAVE_COMPILER_EXPLANATION_H

#include "cleave/Compiler/Compilation.h"

namespace cleave {

/// One step on the way of an axis from an annotation to a value.
struct CauseStep {
  enum class Kind {
    Op,         ///< an op that takes it over
    Value,      ///< a value that has it
    Output,     ///< an output of the program that has it
    PassedOn,   ///< a value in terms, of which an op makes another one in terms
    Annotation, ///< the end
    Free,       ///< the end: the axis may split whatever it can
    Chosen,     ///< the end: Cleave added it, for a reason
  };
  Kind kind = Kind::Annotation;
  /// `nn.softmax`, the value's name, the output's number, the place of the annotation: `plan.yaml:7:5`, the reason.
  std::string name;
  /// Of an op: `/enc/Softmax`; may be empty.
  std::string node;
  /// Where it is: `dim 1`, at an op `dim 1 of the result`.
  std::string dim;
  /// It came here only to avoid a conflict at this op.
  bool avoidsConflict = false;

  bool operator==(const CauseStep &other) const;
};

/// Another choice of the op that makes a value.
struct Alternative {
  /// How much more everything would cost, surcharges of the objective included.
  int64_t bytes = 0;
  /// How the value would then be made.
  std::string sharding;
  /// The same as time; 0 without a cluster.
  double ns = 0;
};

/// Why axes split a dim, or why a value is in terms over one.
struct AxisExplanation {
  /// Nothing: the value is in terms.
  std::optional<unsigned> dim;
  /// `model`, or of a dim `data, model` where all came the same way.
  std::string axes;
  /// The last step first; no two equal ones follow each other. Empty: no annotation, it costs less.
  std::vector<CauseStep> chain;
  std::optional<Alternative> nextBest;
};

/// A value and its sharding.
struct ShardedValue {
  /// Of the first of its names; `a value inside /enc/Softmax` without one.
  std::string name;
  /// `f32[8, 128]`, the global shape.
  std::string type;
  std::string sharding;
  /// Of bytes that hold elements of 4 or 2 bits: the tensor of these, `i4[64, 96]`; empty for others.
  std::string holds = {};
};

struct ValueExplanation : ShardedValue {
  /// Outputs that are this value, and are sharded otherwise than it is inside.
  std::vector<ShardedValue> returned;
  /// One for each chain, dims in order.
  std::vector<AxisExplanation> axes;
  /// It is replicated on every rank; and then, whether an annotation reaches it, and what following that would cost, axis by axis.
  bool isReplicated = false, isReached = false;
  std::vector<Alternative> alternatives;
  /// Axes of annotations that the op that makes it does not follow.
  std::vector<std::string> unfollowed;
};

/// `h: f32[8, 128] [data, _]`, and what of it `cleave explain` prints below.
void printExplanation(llvm::raw_ostream &os, const ShardedValue &value);
void printExplanation(llvm::raw_ostream &os, const Alternative &alternative);
/// A line for each step of each chain.
void printExplanation(llvm::raw_ostream &os, const ValueExplanation &value);

class Explainer {
public:
  /// Takes a loaded model with a mesh to its decisions. Null after an error: it is past them, or has none to run.
  /// `compilation` must outlive this, and may go on.
  static std::unique_ptr<Explainer> create(Compilation &compilation);
  ~Explainer();

  /// All values that are not whole, in order.
  std::vector<ShardedValue> getSharded() const;
  /// The values that have a name which matches, or else the first result of each node whose name does, or else of modules that match what
  /// they read of parameters, and what they make that others read; `module:PATTERN` is about modules alone. Nothing after an error: it is no
  /// pattern, or matches nothing.
  std::optional<std::vector<ValueExplanation>> explain(llvm::StringRef pattern) const;
  /// The same of one name, such as the node of a collective; maybe none.
  std::vector<ValueExplanation> explainName(llvm::StringRef name) const;
  /// The least that another choice there costs more; nothing where there is no other.
  std::optional<Alternative> findNextBest(llvm::StringRef name) const;

private:
  struct State;
  explicit Explainer(std::unique_ptr<State> state);
  std::unique_ptr<State> state;
};

} // namespace cleave

#endif // CLEAVE_COMPILER_EXPLANATION_H
