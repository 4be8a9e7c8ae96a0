//===- Movement.cpp - elements change place, not value --------------------===//
//
// Partial results of any kind pass through movement. Along a dim where elements move, a shard may keep its own (aligned
// strides, a triangle), or a rank fill in what it holds (a slice, as a masked sum). Else operand and result are cut together, and
// each rank gets the interval that its part is made of, where it is one: slices, pads, rotations, concatenations.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "Rules.h"
#include "cleave/Dialect/Nn/IR/SliceRange.h"

#include <numeric>

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;
using namespace cleave::spmd;

//===----------------------------------------------------------------------===//
// Reshape
//===----------------------------------------------------------------------===//

namespace {
/// Common refinement of two shapes with the same number of elements, walking both from the major end:
///
///   [12, 5] and [4, 15]    the majors share 4: both get factor i=4;  12 has 3 left
///                          3 and 15 share 3: factor j=3;  15 has 5 left
///                          5 and 5: factor k=5                          ->  [ij, k] and [i, jk]
///
/// Where two extents left over have no common divisor, the dims up to the next point where the products agree do not
/// nest; they get whole factors.
class Refinement {
public:
  Refinement(OpRule &rule, ArrayRef<int64_t> from, ArrayRef<int64_t> to) : rule(rule), sides{Side(from), Side(to)} {
    if (llvm::is_contained(from, 0))
      blockEmpty();
    else
      while (sides[0].advance() && sides[1].advance())
        step();
  }
  ArrayRef<DimFactors> getFrom() const { return sides[0].factors; }
  ArrayRef<DimFactors> getTo() const { return sides[1].factors; }

private:
  struct Side {
    explicit Side(ArrayRef<int64_t> shape) : shape(shape), factors(shape.size()) {
      left = shape.empty() ? 1 : shape.front();
    }
    /// Moves on to the next dim with elements left; false at the end.
    bool advance() {
      while (left == 1 && dim + 1 < shape.size())
        left = shape[++dim];
      return left != 1;
    }
    void take(std::optional<FactorId> factor, int64_t size) {
      if (factor)
        factors[dim].push_back(*factor);
      left /= size;
    }
    ArrayRef<int64_t> shape;
    SmallVector<DimFactors, 4> factors;
    size_t dim = 0;
    int64_t left = 1;
  };

  void step() {
    int64_t shared = std::gcd(sides[0].left, sides[1].left);
    bool nests = shared == sides[0].left || shared == sides[1].left;
    if (shared > 1) {
      std::optional<FactorId> factor = rule.addParallel(shared);
      sides[0].take(factor, shared);
      sides[1].take(factor, shared);
    }
    if (!nests)
      skipGroup();
  }

  /// Gives whole factors to what is left of the dims on both sides, until their products agree.
  void skipGroup() {
    int64_t products[2] = {1, 1};
    do {
      int side = products[0] <= products[1] ? 0 : 1;
      if (!sides[side].advance())
        return;
      int64_t size = sides[side].left;
      products[side] *= size;
      sides[side].take(rule.addReplicated(size), size);
    } while (products[0] != products[1]);
  }

  /// A tensor without elements: nothing to split.
  void blockEmpty() {
    for (Side &side : sides)
      for (auto [extent, factors] : llvm::zip_equal(side.shape, side.factors))
        if (MaybeFactor factor = rule.addReplicated(extent))
          factors.push_back(*factor);
  }

  OpRule &rule;
  Side sides[2];
};
} // namespace

/// Factors of all dims of a tensor but one.
static SmallVector<FactorId, 4> getOthers(const TensorFactors &dims, size_t dim) {
  SmallVector<FactorId, 4> others;
  for (auto [index, factors] : llvm::enumerate(dims))
    if (index != dim)
      llvm::append_range(others, factors);
  return others;
}

/// Factors that are first of several in a dim of one side, and alone in one of the other.
static void addRegroups(ShardingRule &rule, int64_t elementBytes) {
  auto isAlone = [](const TensorFactors &dims, FactorId factor) {
    return llvm::any_of(dims, [&](const DimFactors &dim) { return dim.size() == 1 && dim.front() == factor; });
  };
  for (bool isOperand : {true, false}) {
    const TensorFactors &mine = isOperand ? rule.operands[0] : rule.results[0];
    const TensorFactors &theirs = isOperand ? rule.results[0] : rule.operands[0];
    for (auto [dim, factors] : llvm::enumerate(mine)) {
      if (factors.size() < 2 || !rule.isParallel(factors.front()) || !isAlone(theirs, factors.front()))
        continue;
      Regroup regroup{factors.front(), isOperand, /*grain=*/1, getOthers(mine, dim), elementBytes};
      for (FactorId factor : ArrayRef(factors).drop_front())
        regroup.grain *= rule.factorSizes[factor];
      rule.regroups.push_back(std::move(regroup));
    }
  }
}

ShardingRule ReshapeOp::getShardingRule() {
  OpRule rule(*this);
  Refinement refinement(rule, getShape(getInput()), getShape(getResult()));
  rule.rule.operands[0].assign(refinement.getFrom().begin(), refinement.getFrom().end());
  rule.rule.results[0].assign(refinement.getTo().begin(), refinement.getTo().end());
  addRegroups(rule.rule, bytesOf(getInput()));
  rule.addMovement(0).rule.isAlias = true;
  return rule.finish();
}

//===----------------------------------------------------------------------===//
// Every dim on its own
//===----------------------------------------------------------------------===//

ShardingRule TransposeOp::getShardingRule() {
  OpRule rule(*this);
  FactorList dims = rule.addParallelDims(getShape(getInput()));
  rule.operandDims(0, dims);
  for (int64_t dim : getPermutation())
    rule.resultDim(0, dims[dim]);
  rule.addMovement(0);
  return rule.finish();
}

ShardingRule BroadcastOp::getShardingRule() {
  OpRule rule = alignedRule(*this);
  rule.addMovement(0);
  return rule.finish();
}

// Zeros stay zeros under every kind of reduction.
ShardingRule TriluOp::getShardingRule() {
  OpRule rule = alignedRule(*this);
  rule.addMovement(0);
  return rule.finish();
}

/// Along the dim of the concatenation all parts and the result are cut together: of all parts a rank gets what falls into its
/// interval. A part of one position is on all ranks, and counts as what the first one has.
static void addConcatenatedDim(OpRule &rule, ConcatOp op, unsigned dim) {
  int64_t extent = getShape(op.getResult())[dim];
  auto isLonger = [&](int64_t than) { return [=](Value input) { return getShape(input)[dim] > than; }; };
  bool isSplit = llvm::all_of(op.getInputs(), isLonger(0)) && llvm::any_of(op.getInputs(), isLonger(1));
  MaybeFactor result = rule.addReplicated(extent);
  rule.resultDim(0, result);
  Choice together;
  for (auto [index, input] : llvm::enumerate(op.getInputs())) {
    MaybeFactor factor = rule.addReplicated(getShape(input)[dim]);
    rule.operandDim(index, factor);
    if (isSplit && factor)
      together.factors.push_back(*factor);
  }
  if (!isSplit)
    return;
  together.factors.push_back(*result);
  rule.addChoice(together);
}

/// What is sent of all parts together, once all dims are there.
static void addConcatenatedParts(OpRule &rule, ConcatOp op) {
  const Choice *together =
      llvm::find_if(rule.rule.choices, [](const Choice &choice) { return choice.factors.size() > 1; });
  if (together == rule.rule.choices.end())
    return;
  ArrayRef<FactorId> parts = ArrayRef(together->factors).drop_back();
  int64_t offset = 0;
  SmallVector<SlidingDim> slides;
  for (Value input : op.getInputs()) {
    SlidingDim slide;
    if (getShape(input)[op.getDim()] > 1) {
      slide.input = parts.front();
      parts = parts.drop_front();
    }
    slide.result = together->factors.back();
    slide.low = slide.high = -offset;
    slides.push_back(slide);
    offset += getShape(input)[op.getDim()];
  }
  rule.addExchangeOf(0, slides);
  rule.rule.inner.back().kind = InnerCost::Kind::Join;
  rule.rule.inner.back().factors = {together->factors.back()};
}

ShardingRule ConcatOp::getShardingRule() {
  OpRule rule(*this);
  SmallVector<int32_t> all = llvm::to_vector(llvm::seq<int32_t>(0, getInputs().size()));
  for (auto [dim, extent] : llvm::enumerate(getShape(getResult()))) {
    if (dim == getDim() && getInputs().size() > 1) {
      addConcatenatedDim(rule, *this, dim);
      continue;
    }
    MaybeFactor factor = rule.addParallel(extent);
    for (int32_t index : all)
      rule.operandDim(index, factor);
    rule.resultDim(0, factor);
  }
  addConcatenatedParts(rule, *this);
  rule.addMovement(all);
  return rule.finish();
}

// Along the dim the operand and all parts are cut together: of its shard of all of them, a rank gets its shard of each.
ShardingRule cleave::nn::SplitOp::getShardingRule() {
  OpRule rule(*this);
  size_t at = getDim();
  Choice together;
  SmallVector<SlidingDim> slides;
  for (auto [dim, extent] : llvm::enumerate(getShape(getInput()))) {
    bool isApart = dim == at && getParts().size() > 1;
    MaybeFactor all = isApart ? rule.addReplicated(extent) : rule.addParallel(extent);
    rule.operandDim(0, all);
    int64_t offset = 0;
    for (auto [index, part] : llvm::enumerate(getParts())) {
      MaybeFactor made = isApart ? rule.addReplicated(part) : all;
      rule.resultDim(index, made);
      SlidingDim slide;
      slide.input = all.value_or(-1);
      slide.result = made.value_or(-1);
      slide.low = slide.high = offset;
      offset += part;
      if (isApart)
        slides.push_back(slide);
    }
  }
  if (!slides.empty() && llvm::all_of(getParts(), [](int64_t part) { return part > 1; })) {
    together.factors.push_back(slides.front().input);
    for (const SlidingDim &slide : slides)
      together.factors.push_back(slide.result);
    rule.addChoice(together);
    rule.addExchangeOf(0, slides);
    rule.rule.inner.back().kind = InnerCost::Kind::Split;
    rule.rule.inner.back().factors = {slides.front().input};
  }
  rule.addMovement(0);
  return rule.finish();
}

/// A dim of operand 0 of which a rank gets the positions of its part of the result, `by` further on.
static void addShiftedDim(OpRule &rule, int64_t extent, int64_t result, int64_t by, Beyond beyond) {
  SlidingDim slide;
  slide.low = slide.high = by;
  slide.beyond = beyond;
  OpRule::Windowed factors = rule.addWindowDim(extent, result, slide);
  rule.operandDim(0, factors.input).resultDim(0, factors.result);
}

ShardingRule RotateOp::getShardingRule() {
  OpRule rule(*this);
  for (auto [dim, extent] : llvm::enumerate(getShape(getInput()))) {
    if (dim == getDim() && getAmount() != 0) {
      addShiftedDim(rule, extent, extent, getAmount(), Beyond::Wrap);
      continue;
    }
    MaybeFactor factor = rule.addParallel(extent);
    rule.operandDim(0, factor).resultDim(0, factor);
  }
  rule.addExchange().addMovement(0);
  return rule.finish();
}

/// What the positions of padding are.
static Beyond getBeyond(PadMode mode) {
  switch (mode) {
  case PadMode::Constant:
    return Beyond::Fill;
  case PadMode::Edge:
    return Beyond::Nearest;
  case PadMode::Wrap:
    return Beyond::Wrap;
  case PadMode::Reflect:
    return Beyond::Reflect;
  }
  return Beyond::Fill;
}

// Constant padding is linear like the data: with a value, both are partial; without one, zeros add up to zero.
ShardingRule PadOp::getShardingRule() {
  OpRule rule(*this);
  ArrayRef<int64_t> result = getShape(getResult());
  for (auto [dim, extent] : llvm::enumerate(getShape(getInput()))) {
    if (getLow()[dim] != 0 || getHigh()[dim] != 0) {
      addShiftedDim(rule, extent, result[dim], -getLow()[dim], getBeyond(getMode()));
      continue;
    }
    MaybeFactor factor = rule.addParallel(extent);
    rule.operandDim(0, factor).resultDim(0, factor);
  }
  rule.addExchange();
  getValue() ? rule.addMovement({0, 1}) : rule.addMovement(0);
  return rule.finish();
}

//===----------------------------------------------------------------------===//
// Slice
//===----------------------------------------------------------------------===//

/// Factors of one dim of a slice: untouched; one element of every step, shard by shard; or filled in by each rank, or cut
/// together with the result.
static void addSlicedDim(OpRule &rule, int64_t extent, int64_t start, int64_t size, int64_t step, ReductionKind mask) {
  bool isFull = start == 0 && step == 1 && size == extent;
  bool isAligned = step > 0 && start < step && size > 0 && extent == size * step;
  if (isFull || isAligned) {
    MaybeFactor position = rule.addParallel(size), skipped = rule.addReplicated(isFull ? 1 : step);
    rule.operandDim(0, OpRule::present({position, skipped})).resultDim(0, position);
    return;
  }
  MaybeFactor held = rule.addReduction(extent, mask), kept = rule.addReplicated(size);
  rule.operandDim(0, held).resultDim(0, kept);
  if (!held || !kept)
    return;
  SlidingDim slide;
  slide.input = *held;
  slide.result = *kept;
  slide.stride = step;
  slide.low = step > 0 ? start : start - step;
  slide.high = (step > 0 ? start - step : start) + 1;
  slide.beyond = Beyond::Nearest;
  slide.picks = std::abs(step);
  rule.addSlide(slide);
}

ShardingRule SliceOp::getShardingRule() {
  OpRule rule(*this);
  rule.rule.isAlias = getRangeStart(*this).has_value();
  ReductionKind mask = getMaskKind(getElementType(getInput()));
  for (auto [dim, extent] : llvm::enumerate(getShape(getInput())))
    addSlicedDim(rule, extent, getStarts()[dim], getSizes()[dim], getSteps()[dim], mask);
  rule.addExchange().addMovement(0);
  // What no rank wants of the other dims is dropped before anything is sent.
  for (InnerCost &cost : rule.rule.inner) {
    cost.elementScale = llvm::is_contained(getShape(getResult()), 0) ? 0 : 1;
    cost.elementFactors.clear();
    for (const DimFactors &dim : rule.rule.results[0])
      llvm::copy_if(dim, std::back_inserter(cost.elementFactors),
                    [&](FactorId factor) { return !llvm::is_contained(cost.factors, factor); });
  }
  return rule.finish();
}
