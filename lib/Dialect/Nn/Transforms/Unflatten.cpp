//===- Unflatten.cpp - merging reshapes sink ------------------------------===//
//
// `op(reshape(x))`, where the reshape only merges neighboring dims (or adds none) and the op passes the merged dims
// through, becomes `reshape(op(x))`, with the op over the dims as they were. Sinking ends at the reshape that takes the
// dims apart again, where FuseMovement lets the pair vanish, or at an op that looks inside the merged dim.
//
//   einsum    one letter per part, where the letter's other operands are merged in the same way
//   unary     always
//   binary    the other operand does not vary along merged dims, goes through the same reshape, or is a constant
//   norms, softmax    over other dims than the merged ones
//
// A merge of several dims of which the op passes only some through sinks in part: what it looks inside stays merged above.
//
//   group norm        over groups flattened into one dim, as torch exports it: over the channels of each group instead
//
//===----------------------------------------------------------------------===//
#include "../Patterns/Matching.h"
#include "cleave/Dialect/Nn/IR/NodeLoc.h"
#include "cleave/Dialect/Nn/IR/Ops/Contraction.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "cleave/Dialect/Nn/IR/Ops/Normalization.h"
#include "cleave/Dialect/Nn/IR/Ops/Reduction.h"
#include "cleave/Dialect/Nn/Transforms/Passes.h"

namespace cleave::nn {
#define GEN_PASS_DEF_NNUNFLATTEN
#include "cleave/Dialect/Nn/IR/NnPasses.h.inc"
} // namespace cleave::nn

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;

namespace {

/// How a reshape merges: per result dim the operand dims [begin, end) that it holds.
struct Merge {
  Value input;
  SmallVector<std::pair<int64_t, int64_t>> groups;

  ArrayRef<int64_t> getParts(int64_t dim) const {
    auto [begin, end] = groups[dim];
    return getShape(input).slice(begin, end - begin);
  }
  bool isMerged(int64_t dim) const { return groups[dim].second - groups[dim].first != 1; }

  /// `shape` (a result's shape, aligned to the reshape's result from dim `offset` on) with the parts in place.
  SmallVector<int64_t> expand(ArrayRef<int64_t> shape) const {
    SmallVector<int64_t> expanded;
    for (auto [dim, extent] : llvm::enumerate(shape))
      if (isMerged(dim))
        llvm::append_range(expanded, getParts(dim));
      else
        expanded.push_back(extent);
    return expanded;
  }
};

/// `value` as a reshape that merges at least one group of dims and splits none.
std::optional<Merge> matchMerge(Value value) {
  auto reshape = value.getDefiningOp<ReshapeOp>();
  if (!reshape)
    return std::nullopt;
  ArrayRef<int64_t> from = getShape(reshape.getInput()), to = getShape(reshape);
  if (from.size() <= to.size() || llvm::is_contained(from, 0))
    return std::nullopt;
  Merge merge{reshape.getInput(), {}};
  size_t next = 0;
  for (auto [dim, extent] : llvm::enumerate(to)) {
    size_t begin = next;
    int64_t product = 1;
    while (next < from.size() && (product < extent || next == begin)) {
      product *= from[next++];
    }
    if (product != extent)
      return std::nullopt;
    bool isLast = dim + 1 == to.size();
    while (isLast && next < from.size() && from[next] == 1)
      ++next;
    merge.groups.push_back({begin, next});
  }
  return next == from.size() ? std::optional(merge) : std::nullopt;
}

/// `merge` in two steps: the dims `kept` are merged first, by a reshape, and the rest by what is returned.
Merge mergeFirst(const Merge &merge, function_ref<bool(int64_t)> kept, Value merged, OpBuilder &builder) {
  Merge rest;
  SmallVector<int64_t> shape;
  for (int64_t dim = 0, end = merge.groups.size(); dim < end; ++dim) {
    int64_t begin = shape.size();
    if (merge.isMerged(dim) && kept(dim))
      shape.push_back(getShape(merged)[dim]);
    else
      llvm::append_range(shape, merge.getParts(dim));
    rest.groups.push_back({begin, shape.size()});
  }
  rest.input = Composer(builder, merged.getLoc()).reshape(merge.input, shape);
  return rest;
}

/// Base of the sinking patterns: rebuilds the reshape below the new op.
template <typename Op> struct Sink : public OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;

  LogicalResult finish(Op op, Value value, PatternRewriter &rewriter) const {
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op->getResult(0).getType(), value);
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Einsum
//===----------------------------------------------------------------------===//

/// Letters that an equation does not use.
class FreshLetters {
public:
  explicit FreshLetters(StringRef equation) : equation(equation) {}
  /// The next one, or 0 when all 52 are taken.
  char take() {
    for (; position < 52; ++position) {
      char letter = position < 26 ? 'a' + position : 'A' + position - 26;
      if (!equation.contains(letter))
        return ++position, letter;
    }
    return 0;
  }

private:
  StringRef equation;
  int position = 0;
};

/// What letters of an equation become where operands are taken apart.
struct Split {
  /// Per split letter: the letters and extents of its parts.
  llvm::SmallDenseMap<char, std::pair<std::string, SmallVector<int64_t>>> letters;
  /// The operands that are taken apart, by index.
  llvm::SmallDenseMap<unsigned, Merge> operands;

  /// Gives each part of `letter` a letter of its own; false where none are left.
  bool add(char letter, ArrayRef<int64_t> parts, FreshLetters &fresh) {
    auto &[names, extents] = letters[letter];
    for (int64_t extent : parts) {
      char part = fresh.take();
      if (!part)
        return false;
      names += part;
      extents.push_back(extent);
    }
    return true;
  }
  std::string rewrite(StringRef term) const {
    std::string text;
    for (char letter : term)
      if (auto it = letters.find(letter); it != letters.end())
        text += it->second.first;
      else
        text += letter;
    return text;
  }
  SmallVector<int64_t> expand(StringRef term, ArrayRef<int64_t> shape) const {
    SmallVector<int64_t> expanded;
    for (auto [letter, extent] : llvm::zip_equal(term, shape))
      if (auto it = letters.find(letter); it != letters.end())
        llvm::append_range(expanded, it->second.second);
      else
        expanded.push_back(extent);
    return expanded;
  }
};

struct SinkBelowEinsum : public Sink<EinsumOp> {
  using Sink::Sink;

  LogicalResult matchAndRewrite(EinsumOp op, PatternRewriter &rewriter) const override {
    EinsumTerms terms = *parseEinsum(op.getEquation());
    SmallVector<std::optional<Merge>> merges = llvm::map_to_vector(op.getInputs(), matchMerge);
    Split split;
    FreshLetters fresh(op.getEquation());
    for (auto [term, merge] : llvm::zip_equal(terms.inputs, merges))
      for (auto [dim, letter] : llvm::enumerate(term))
        if (merge && merge->isMerged(dim) && !split.letters.contains(letter) &&
            isMergedAlike(letter, merge->getParts(dim), terms, merges) &&
            !split.add(letter, merge->getParts(dim), fresh))
          return failure();
    if (split.letters.empty())
      return failure();
    for (auto [index, merge] : llvm::enumerate(merges)) {
      StringRef term = terms.inputs[index];
      if (merge && llvm::any_of(term, [&](char letter) { return split.letters.contains(letter); }))
        split.operands[index] = mergeFirst(
            *merge, [&](int64_t dim) { return !split.letters.contains(term[dim]); }, op.getInputs()[index], rewriter);
    }
    return sink(op, split, rewriter);
  }

private:
  /// True if every operand that has the letter merges these parts to it.
  static bool isMergedAlike(char letter, ArrayRef<int64_t> parts, const EinsumTerms &terms,
                            ArrayRef<std::optional<Merge>> merges) {
    for (auto [term, merge] : llvm::zip_equal(terms.inputs, merges))
      for (auto [dim, other] : llvm::enumerate(term))
        if (other == letter && (!merge || !merge->isMerged(dim) || merge->getParts(dim) != parts))
          return false;
    return true;
  }

  LogicalResult sink(EinsumOp op, const Split &split, PatternRewriter &rewriter) const {
    EinsumTerms terms = *parseEinsum(op.getEquation());
    SmallVector<Value> operands(op.getInputs());
    std::string equation;
    for (auto [index, term] : llvm::enumerate(terms.inputs)) {
      equation += (index ? "," : "") + split.rewrite(term);
      if (auto it = split.operands.find(index); it != split.operands.end())
        operands[index] = it->second.input;
    }
    equation += "->" + split.rewrite(terms.result);
    return finish(op, Composer(rewriter, getInnerLoc(op.getLoc())).einsum(operands, equation), rewriter);
  }
};

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

/// The operand of an elementwise op for its result over dims taken apart: the reshape's input, or the operand with
/// parts of size 1 where it does not vary; null where it varies along a merged dim in another way, and is computed.
Value expandOperand(Value operand, const Merge &merge, int64_t resultRank, PatternRewriter &rewriter) {
  std::optional<Merge> own = matchMerge(operand);
  if (own && own->groups == merge.groups && getShape(own->input) == getShape(merge.input))
    return own->input;
  ArrayRef<int64_t> shape = getShape(operand);
  int64_t missing = resultRank - shape.size();
  bool isGiven = operand.getDefiningOp<ConstantOp>() || operand.getDefiningOp<LoadOp>();
  SmallVector<int64_t> expanded;
  for (auto [index, extent] : llvm::enumerate(shape)) {
    int64_t dim = index + missing;
    if (!merge.isMerged(dim))
      expanded.push_back(extent);
    else if (extent == 1)
      expanded.append(merge.getParts(dim).size(), 1);
    else if (isGiven)
      llvm::append_range(expanded, merge.getParts(dim));
    else
      return {};
  }
  // A leading operand dim may only be left out where the result's dims before it keep their number.
  return Composer(rewriter, operand.getLoc()).reshape(operand, expanded);
}

struct SinkBelowElementwise : public RewritePattern {
  SinkBelowElementwise(MLIRContext *context) : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    if (!op->hasTrait<Elementwise>())
      return failure();
    ArrayRef<int64_t> shape = getShape(op->getResult(0));
    for (Value operand : op->getOperands()) {
      std::optional<Merge> merge = matchMerge(operand);
      if (!merge || getShape(operand) != shape)
        continue;
      SmallVector<Value> operands;
      for (Value other : op->getOperands())
        operands.push_back(expandOperand(other, *merge, shape.size(), rewriter));
      if (llvm::is_contained(operands, Value()))
        continue;
      auto resultType = cast<RankedTensorType>(op->getResult(0).getType());
      auto type = RankedTensorType::get(merge->expand(shape), resultType.getElementType());
      OperationState state(getInnerLoc(op->getLoc()), op->getName(), ValueRange(operands), TypeRange(type));
      state.propertiesAttr = op->getPropertiesAsAttribute();
      Operation *moved = rewriter.create(state);
      rewriter.replaceOpWithNewOp<ReshapeOp>(op, resultType, moved->getResult(0));
      return success();
    }
    return failure();
  }
};

//===----------------------------------------------------------------------===//
// Along other dims
//===----------------------------------------------------------------------===//

/// Ops with one data operand and a `dim` that is not merged: softmax, and norms with all dims from `dim` on.
template <typename Op> struct SinkBelowAlong : public Sink<Op> {
  using Sink<Op>::Sink;

  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    std::optional<Merge> merge = matchMerge(op.getInput());
    if (!merge)
      return failure();
    constexpr bool isNorm = std::is_same_v<Op, LayerNormOp> || std::is_same_v<Op, RmsNormOp>;
    int64_t dim = op.getDim(), rank = getShape(op).size(), end = isNorm ? rank : dim + 1;
    auto isAlong = [&](int64_t other) { return other >= dim && other < end; };
    if (llvm::none_of(llvm::seq<int64_t>(rank),
                      [&](int64_t other) { return merge->isMerged(other) && !isAlong(other); }))
      return failure();
    merge = mergeFirst(*merge, isAlong, op.getInput(), rewriter);
    auto type = cast<RankedTensorType>(op.getType());
    auto *moved = rewriter.clone(*op);
    moved->setLoc(getInnerLoc(op->getLoc()));
    moved->setOperand(0, merge->input);
    moved->getResult(0).setType(RankedTensorType::get(merge->expand(type.getShape()), type.getElementType()));
    cast<Op>(moved).setDim(merge->groups[dim].first);
    return this->finish(op, moved->getResult(0), rewriter);
  }
};

//===----------------------------------------------------------------------===//
// Group norm
//===----------------------------------------------------------------------===//

/// A number per group as one per channel of the group: [g] -> [g, 1] -> [g, each] -> [g * each].
Value repeatPerChannel(Value perGroup, int64_t each, PatternRewriter &rewriter) {
  int64_t groups = getShape(perGroup)[0];
  Composer f(rewriter, perGroup.getLoc());
  return f.reshape(f.broadcast(f.reshape(perGroup, {groups, 1}), {groups, each}), groups * each);
}

/// `group_norm(reshape(x))`, x [n, c, h, w] and the reshape [n, g, c/g * h * w] with a channel for each group, is the group
/// norm of x itself with g groups. Flattened, h and w would stand behind a part of c, and could not be cut.
struct SinkBelowGroupNorm : public Sink<GroupNormOp> {
  using Sink::Sink;

  LogicalResult matchAndRewrite(GroupNormOp op, PatternRewriter &rewriter) const override {
    auto reshape = op.getInput().getDefiningOp<ReshapeOp>();
    if (!reshape)
      return failure();
    Value input = reshape.getInput();
    ArrayRef<int64_t> from = getShape(input), to = getShape(op);
    int64_t groups = op.getGroups();
    if (from.size() < 3 || from[0] != to[0] || groups != to[1] || from[1] % groups != 0)
      return failure();
    int64_t each = from[1] / groups;
    Value scale = repeatPerChannel(op.getScale(), each, rewriter),
          bias = repeatPerChannel(op.getBias(), each, rewriter);
    Location loc = getInnerLoc(op.getLoc());
    return finish(op, GroupNormOp::create(rewriter, loc, input, scale, bias, groups, op.getEpsilon()), rewriter);
  }
};

bool readsReshape(Operation *op) {
  return llvm::any_of(op->getOperands(), [](Value value) { return value.getDefiningOp<ReshapeOp>() != nullptr; });
}

/// The pass has run, and none has changed anything since.
struct IsUnflattened {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(IsUnflattened)
  explicit IsUnflattened(Operation *) {}
};

struct Unflatten : public cleave::nn::impl::NnUnflattenBase<Unflatten> {
  void runOnOperation() override {
    if (getCachedAnalysis<IsUnflattened>())
      return markAllAnalysesPreserved();
    RewritePatternSet patterns(&getContext());
    patterns.add<SinkBelowEinsum, SinkBelowElementwise, SinkBelowAlong<SoftmaxOp>, SinkBelowAlong<LogSoftmaxOp>,
                 SinkBelowAlong<LayerNormOp>, SinkBelowAlong<RmsNormOp>, SinkBelowGroupNorm>(&getContext());
    if (failed(applyPatterns(getOperation(), std::move(patterns), readsReshape)))
      return signalPassFailure();
    getAnalysis<IsUnflattened>();
    markAnalysesPreserved<IsUnflattened>();
  }
};
} // namespace
