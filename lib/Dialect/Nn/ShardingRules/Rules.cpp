//===- Rules.cpp - what the families of sharding rules share --------------===//
//
// A factor of size 1 would be a choice that changes nothing: dims of fewer than 2 elements have none, here and in
// everything that is built on this.
//
//===----------------------------------------------------------------------===//
#include "Rules.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;
using namespace cleave::spmd;

/// A bool has one, too.
int64_t cleave::nn::bytesOf(Value value) { return spmd::getElementBytes(getElementType(value)); }

int64_t cleave::nn::statisticBytes(Value value) { return getElementType(value).isF64() ? 8 : 4; }

ReductionKind cleave::nn::getMaskKind(Type elementType) {
  // Of powers of two the least has the bits of 0.
  return elementType.isInteger(1) || isa<Float8E8M0FNUType>(elementType) ? ReductionKind::Max : ReductionKind::Sum;
}

FactorList OpRule::addParallelDims(ArrayRef<int64_t> shape) {
  return llvm::map_to_vector<4>(shape, [&](int64_t extent) { return addParallel(extent); });
}

MaybeFactor OpRule::addReplicated(int64_t size) {
  if (size < 2)
    return std::nullopt;
  return addFactor(size);
}

OpRule &OpRule::operandDims(unsigned index, ArrayRef<MaybeFactor> factors) {
  for (MaybeFactor factor : factors)
    operandDim(index, factor);
  return *this;
}

OpRule &OpRule::resultDims(unsigned index, ArrayRef<MaybeFactor> factors) {
  for (MaybeFactor factor : factors)
    resultDim(index, factor);
  return *this;
}

/// As operands broadcast: theirs are the last dims, and one of size 1 goes with no factor.
OpRule &OpRule::alignOperand(unsigned index, ArrayRef<MaybeFactor> factors) {
  ArrayRef<int64_t> shape = getShape(op->getOperand(index));
  for (auto [extent, factor] : llvm::zip_equal(shape, factors.take_back(shape.size())))
    operandDim(index, extent > 1 ? factor : std::nullopt);
  return *this;
}

SmallVector<FactorId, 4> OpRule::present(ArrayRef<MaybeFactor> factors) {
  SmallVector<FactorId, 4> list;
  for (MaybeFactor factor : factors)
    if (factor)
      list.push_back(*factor);
  return list;
}

/// Adds a cost inside the op. Factors that it is about are ordered: their shards are not alike to the op.
OpRule &OpRule::addOrdered(InnerCost cost) {
  for (FactorId factor : cost.factors)
    if (!llvm::is_contained(rule.orderedFactors, factor))
      rule.orderedFactors.push_back(factor);
  addInner(std::move(cost));
  return *this;
}

/// What is sent is a number for each element of what stays, however long the dims that are cut.
OpRule &OpRule::addStatistics(ArrayRef<MaybeFactor> split, int64_t times, ArrayRef<MaybeFactor> elements,
                              int64_t elementBytes) {
  SmallVector<FactorId, 4> group = present(split);
  if (group.empty())
    return *this;
  InnerCost cost;
  cost.kind = InnerCost::Kind::AllReduce;
  cost.factors.assign(group.begin(), group.end());
  cost.times = times;
  cost.elementFactors = present(elements);
  cost.elementBytes = elementBytes;
  return addOrdered(std::move(cost));
}

/// Every rank that holds a part of `cut` gives all others `scale` numbers for each element.
OpRule &OpRule::addGather(MaybeFactor split, ArrayRef<MaybeFactor> elements, int64_t scale, int64_t elementBytes) {
  if (!split)
    return *this;
  InnerCost cost;
  cost.kind = InnerCost::Kind::AllGather;
  cost.factors.push_back(*split);
  cost.elementFactors = present(elements);
  cost.elementScale = scale;
  cost.elementBytes = elementBytes;
  return addOrdered(std::move(cost));
}

OpRule::Spatial OpRule::addSpatialDim(bool isLocal, int64_t coarse, int64_t fine) {
  if (!isLocal)
    return {present(addReplicated(coarse)), present(addReplicated(fine))};
  MaybeFactor position = addParallel(coarse), inner = addReplicated(coarse ? fine / coarse : 0);
  return {present(position), present({position, inner})};
}

OpRule::Windowed OpRule::addWindowDim(int64_t input, int64_t result, SlidingDim window) {
  if (input < 2 || result < 2) {
    MaybeFactor made = addReplicated(result);
    return {present(addReplicated(input)), present(made)};
  }
  SlidingDim factors = addSliding(input, result);
  window.input = factors.input;
  window.result = factors.result;
  slides.push_back(window);
  return {{window.input}, {window.result}};
}

OpRule &OpRule::addSlide(const SlidingDim &slide) {
  addChoice({{slide.input, slide.result}, {}, std::nullopt});
  slides.push_back(slide);
  return *this;
}

/// What is sent for each position of the dims that slide: all that the operand has there.
OpRule &OpRule::addExchangeOf(unsigned operand, ArrayRef<SlidingDim> slides) {
  InnerCost cost;
  cost.kind = InnerCost::Kind::Exchange;
  cost.elementBytes = bytesOf(op->getOperand(operand));
  cost.slides.assign(slides.begin(), slides.end());
  for (const SlidingDim &slide : slides)
    cost.factors.push_back(slide.result);
  auto isOther = [&](FactorId factor) {
    return llvm::none_of(slides, [&](const SlidingDim &slide) { return slide.input == factor; });
  };
  for (const DimFactors &dim : rule.operands[operand])
    llvm::copy_if(dim, std::back_inserter(cost.elementFactors), isOther);
  addInner(std::move(cost));
  return *this;
}

/// A cut of the input is one of the result, by which alone compute shrinks.
OpRule &OpRule::addExchange() {
  if (slides.empty())
    return *this;
  addExchangeOf(0, slides);
  for (FactorId factor = 0; factor < static_cast<FactorId>(rule.factorSizes.size()); ++factor)
    if (llvm::none_of(slides, [&](const SlidingDim &slide) { return slide.input == factor; }))
      rule.flopFactors.push_back(factor);
  return *this;
}

/// Moving terms and combining them commute, whatever they are combined by.
OpRule &OpRule::addMovement(ArrayRef<int32_t> operands) {
  rule.isMovement = true;
  // Bool has neither sums nor products.
  if (!getElementType(op->getOperand(operands.front())).isInteger(1)) {
    addLinear(operands, ReductionKind::Sum);
    addLinear(operands, ReductionKind::Prod);
  }
  addLinear(operands, ReductionKind::Max);
  addLinear(operands, ReductionKind::Min);
  return *this;
}

/// A rule whose one choice is "none" must say why: users see it where an annotation ends.
ShardingRule OpRule::finish(StringRef reason) {
  // A dim of size 0 has no factor, as one of size 1. What is told of results that have no elements has none, and what neighbors send of
  // the operand has as many as that.
  auto isEmpty = [](Value value) { return llvm::is_contained(getShape(value), 0); };
  bool makesNothing = op->getNumResults() != 0 && llvm::all_of(op->getResults(), isEmpty);
  bool readsNothing = op->getNumOperands() != 0 && isEmpty(op->getOperand(0));
  for (InnerCost &cost : rule.inner) {
    bool isOfOperand = cost.kind == InnerCost::Kind::Exchange || cost.kind == InnerCost::Kind::Split;
    if (isOfOperand ? readsNothing : makesNothing)
      cost.elementScale = 0;
  }
  if (rule.choices.size() == 1 && !rule.factorSizes.empty())
    rule.mustReplicate = reason.empty() ? "no dim of the op can be split" : reason.str();
  auto formed = cast<FormOpInterface>(op);
  rule.form = formed.getForm();
  llvm::append_range(rule.rowDims, formed.getRowDims());
  return std::move(rule);
}

ReductionKind cleave::nn::getReductionKind(ReduceKind kind) {
  switch (kind) {
  case ReduceKind::Prod:
    return ReductionKind::Prod;
  case ReduceKind::Max:
    return ReductionKind::Max;
  case ReduceKind::Min:
    return ReductionKind::Min;
  case ReduceKind::Sum:
  case ReduceKind::Mean:
    break;
  }
  return ReductionKind::Sum;
}

/// Every dim of the result is parallel, and each operand goes along as it broadcasts.
OpRule cleave::nn::alignedRule(Operation *op) {
  OpRule rule(op);
  FactorList dims = rule.addParallelDims(getShape(op->getResult(0)));
  for (unsigned index = 0; index < op->getNumOperands(); ++index)
    rule.alignOperand(index, dims);
  rule.resultDims(0, dims);
  return rule;
}

ShardingRule cleave::nn::getPointwiseRule(Operation *op, ArrayRef<SmallVector<int32_t, 2>> operandSets,
                                          ReductionKind kind) {
  OpRule rule = alignedRule(op);
  for (const SmallVector<int32_t, 2> &operands : operandSets)
    rule.addLinear(operands, kind);
  return rule.finish();
}

bool cleave::nn::isPatchwise(int64_t inputExtent, int64_t resultExtent, int64_t kernel, int64_t stride,
                             int64_t dilation, int64_t padLow, int64_t padHigh) {
  // Two windows never touch one element, and every element belongs to a step.
  int64_t span = (kernel - 1) * dilation + 1;
  return padLow == 0 && padHigh == 0 && span <= stride && inputExtent == resultExtent * stride;
}
