//===- ShardingRule.h - how one op may be split -----------------*- C++ -*-===//
//
// An op's rule is an einsum with costs. Its *factors* are the loops of the op; each dim of each operand and result is
// a list of factors, major to minor (most dims are one factor, a dim of size 1 none, a reshaped dim several). Its
// *choices* say what one piece of a mesh axis (an *atom*, a prime factor of the axis) may do at the op:
//
//   none          operands and results are replicated over the atom
//   cut f         factor f is cut; if f does not reach the results, they become partial (kind in `result`)
//   cut (f, g)    both are cut together: an exchange with neighbors, f of the operand, g of the result
//   partial {j}   operands j are partial over the atom, and so are the results: the op is linear in them
//
// Pure data without IR, so that deciding can be tested by itself. Source of the model: docs/sharding-model.md.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SHARDING_SHARDINGRULE_H
#define CLEAVE_SHARDING_SHARDINGRULE_H

#include "cleave/Sharding/Beyond.h"
#include "cleave/Sharding/Form.h"
#include "cleave/Sharding/ReductionKind.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>

namespace cleave::spmd {

/// See WindowMoves.h.
struct DimWindow;

/// Index of a factor in its rule.
using FactorId = int32_t;
/// Factors of one dim, major to minor; empty for a dim of size 1 or one that can never be split.
using DimFactors = llvm::SmallVector<FactorId, 2>;
/// Factors of one tensor, one entry per dim.
using TensorFactors = llvm::SmallVector<DimFactors, 4>;

/// What one atom of a mesh axis may do at an op.
struct Choice {
  /// Factors that the atom splits, all together; empty for `none` and for purely partial choices.
  llvm::SmallVector<FactorId, 2> factors;
  /// Operands that are partial over the atom.
  llvm::SmallVector<int32_t, 2> partialOperands;
  /// Set if the results are partial over the atom, with this kind; partial operands have it too.
  std::optional<ReductionKind> partial;

  bool isNone() const { return factors.empty() && partialOperands.empty(); }
  bool operator==(const Choice &other) const {
    return factors == other.factors && partialOperands == other.partialOperands && partial == other.partial;
  }
};

/// Dims of operand and result that are split together: of the input, a rank that has `n` positions of the result needs
/// [rank * s + low, (rank + 1) * s + high), where s = n * stride / share, which must be whole. Of a negative stride the ends are
/// [(rank + 1) * s + low, rank * s + high). Where the extents do not divide, n is rounded up: the last shards of both end in
/// padding, which has no positions in the input and of which nothing is needed for the result.
struct SlidingDim {
  FactorId input = -1, result = -1;
  int64_t stride = 1, share = 1;
  int64_t low = 0, high = 0;
  Beyond beyond = Beyond::Fill;
  /// If not 0, every `picks`-th position is wanted and no other: a rank drops those before it sends, where they lie alike in
  /// all shards, and sends what the result has of a dim that is not split.
  int64_t picks = 0;
  /// Ranks have tables of what their positions are made of: where s is not whole, an interval may then begin some positions before
  /// what is needed, so that all ranks' begin at one distance.
  bool isTabled = false;

  /// Who has what and who needs what, where both are split into `pieces`; nothing if s is not a whole number and has to be.
  std::optional<DimWindow> getWindow(int64_t inputSize, int64_t resultSize, int64_t pieces) const;

  bool operator==(const SlidingDim &other) const {
    return std::tie(input, result, stride, share, low, high, beyond, picks, isTabled) ==
           std::tie(other.input, other.result, other.stride, other.share, other.low, other.high, other.beyond,
                    other.picks, other.isTabled);
  }
};

/// Communication that an op does inside itself when `factors` are split (statistics of a softmax, halo rows, ...).
struct InnerCost {
  enum class Kind {
    AllReduce, ///< `times` all_reduces of `elements` over the ranks that split `factors`
    AllGather, ///< `times` all_gathers of `elements` from each of those ranks
    Exchange,  ///< each rank's own piece of the operand with edges of its neighbors, see `slides`
    Join,      ///< parts put one behind the other: `slides` has one entry per operand, `input` -1 for one position
    Split,     ///< parts that stood one behind the other: `slides` has one entry per result
  };
  Kind kind;
  /// The group: all atoms that split any of these.
  llvm::SmallVector<FactorId, 2> factors;
  int64_t times = 1;
  /// Local elements of one message: the product of the local extents of these factors times `elementScale`.
  llvm::SmallVector<FactorId, 4> elementFactors;
  int64_t elementScale = 1;
  int64_t elementBytes = 4;
  /// Of an exchange, the dims that slide, one or several of them split. Elements are then those of one position.
  llvm::SmallVector<SlidingDim, 2> slides = {};
  /// If this factor is split together with `factors`, by the same atoms, nothing is sent: there is an exchange for that.
  FactorId unless = -1;
};

/// A factor that is first of several in a dim on one side of a reshape, and alone in one on the other. Split into pieces that do
/// not divide it, shards of the one dim do not line up with those of the other: [640] on 4 ranks is 160 positions on each, [10, 64] 3
/// times 64. Then neighbors exchange what is missing, along the dim of several.
struct Regroup {
  FactorId factor;
  /// Whether the dim of several is operand 0's, or result 0's.
  bool isOperand = true;
  /// Positions of that dim for each of the factor's.
  int64_t grain = 1;
  /// Those that stand in other dims of its tensor: local elements of a position.
  llvm::SmallVector<FactorId, 4> elementFactors = {};
  int64_t elementBytes = 4;

  /// True if `pieces`, sizes of atoms major to minor, get stuck in `size` positions of the factor: else the minor factors of the
  /// dim are split as well, and all divides.
  static bool isNeeded(int64_t size, llvm::ArrayRef<int64_t> pieces);
  /// Who has what and who needs what along the dim, of `size` positions of the factor in `pieces`.
  DimWindow getWindow(int64_t size, int64_t pieces) const;

  bool operator==(const Regroup &other) const {
    return std::tie(factor, isOperand, grain, elementFactors, elementBytes) ==
           std::tie(other.factor, other.isOperand, other.grain, other.elementFactors, other.elementBytes);
  }
};

/// How one op may be split. `operands` and `results` index like the op's. What is long lies on the heap: rules are handed on far
/// more often than they are made.
struct ShardingRule {
  /// Extent of each factor, at least 2.
  llvm::SmallVector<int64_t, 6> factorSizes;
  llvm::SmallVector<TensorFactors, 0> operands;
  llvm::SmallVector<TensorFactors, 0> results;
  /// What an atom may do; the first is always `none`.
  llvm::SmallVector<Choice, 0> choices;
  llvm::SmallVector<InnerCost, 1> inner;
  /// What may be split unevenly though it shares a dim, one at a time.
  llvm::SmallVector<Regroup, 1> regroups;
  /// Floating-point operations of the whole (unsplit) op; 0 for anything but contractions, convolution, attention.
  double flops = 0;
  /// Factors over which `flops` shrink when split; empty = all of them.
  llvm::SmallVector<FactorId, 6> flopFactors;
  /// Factors along which propagation never flows because splitting them is impossible or costs communication inside the
  /// op although a choice for them may exist ("meets" in docs/sharding-model.md).
  llvm::SmallVector<FactorId, 2> orderedFactors;
  /// An axis that comes to the op along this factor may be told to stay there (`Problem::hold`): queries of attention, among whose
  /// ranks keys can go round. -1 if there is none.
  FactorId held = -1;
  /// What users call a dim whose split leaves the results partial.
  llvm::StringRef reducedDim = "reduced dim";
  /// How it reads its operands, and of Form::Row and Form::Scan the dims of operand 0 that make a row, ascending.
  Form form = Form::Data;
  llvm::SmallVector<int64_t, 2> rowDims;
  /// True for ops that move or rename data only, which never count as compute.
  bool isMovement = false;
  /// True for movement whose result lies where its operand does, all of it or one piece: another shape, some of the most major positions.
  bool isAlias = false;
  /// What a loop takes along or gives back: the kernels of its body are others than those around it.
  bool isLoop = false;
  /// Not empty if the op must be replicated: the reason shown to the user.
  std::string mustReplicate;

  /// The choice that splits just `factor`, if there is one; -1 otherwise.
  int findSingleSplit(FactorId factor) const;
  /// True if `factor` can be split alone and the results stay whole values (not partial).
  bool isParallel(FactorId factor) const;
  /// True if splitting `factor` alone makes the results partial.
  bool isReduction(FactorId factor) const;
  /// True if `factor` may be split into pieces that do not divide it: it has every dim in which it stands to itself, so that
  /// padding is behind the end of the dim; or neighbors exchange what does not line up.
  bool allowsUneven(FactorId factor) const;
  /// Null if there is none for the factor.
  const Regroup *findRegroup(FactorId factor) const;
};

/// How a rule is printed calls a factor: i, j, k, ...
std::string nameOfFactor(FactorId factor);

/// Prints `([b,i,k],[b,k,j])->([b,i,j]) {b=8,i=16,k=32,j=16} reduce={k}`; factors are named i, j, k, ... in order.
llvm::raw_ostream &operator<<(llvm::raw_ostream &os, const ShardingRule &rule);

/// Builds a rule step by step; the single splits and `none` come first, in factor order.
class RuleBuilder {
public:
  RuleBuilder(unsigned numOperands, unsigned numResults) {
    rule.operands.resize(numOperands);
    rule.results.resize(numResults);
    rule.choices.reserve(8);
    rule.choices.emplace_back();
  }

  /// Adds a factor of `size` that is not split by any choice yet. Precondition: size >= 2.
  FactorId addFactor(int64_t size);
  /// Adds a factor that each shard can compute on its own: the choice `cut f`. Returns nothing for size < 2.
  std::optional<FactorId> addParallel(int64_t size);
  /// Adds a factor whose split leaves the results partial; `partialOperands` (a bias) join in. Nothing for size < 2.
  std::optional<FactorId> addReduction(int64_t size, ReductionKind kind, llvm::ArrayRef<int32_t> partialOperands = {});
  /// Adds factors of a dim of an operand and of a dim of the result that are cut together, by the choice `cut (f, g)`:
  /// result first, then input. What that costs is the caller's business. Precondition: both extents >= 2.
  SlidingDim addSliding(int64_t inputSize, int64_t resultSize);
  /// Appends a dim to operand / result `index`: its factors major to minor (none: replicated).
  RuleBuilder &operandDim(unsigned index, llvm::ArrayRef<FactorId> factors);
  RuleBuilder &resultDim(unsigned index, llvm::ArrayRef<FactorId> factors);
  RuleBuilder &operandDim(unsigned index, std::optional<FactorId> factor);
  RuleBuilder &resultDim(unsigned index, std::optional<FactorId> factor);
  /// Adds a choice as is.
  RuleBuilder &addChoice(Choice choice);
  /// The op is linear in `operands` together: they may stay partial of `kind`.
  RuleBuilder &addLinear(llvm::ArrayRef<int32_t> operands, ReductionKind kind = ReductionKind::Sum);
  RuleBuilder &addInner(InnerCost cost);

  ShardingRule rule;
};

} // namespace cleave::spmd

#endif // CLEAVE_SHARDING_SHARDINGRULE_H
