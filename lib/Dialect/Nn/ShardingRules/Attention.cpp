//===- Attention.cpp - attention and rotary embedding ---------------------===//
//
//   query [b, k g, s, d], key [b, k, t, d], value [b, k, t, v], mask [b, k g, s, t] -> [b, k g, s, v]
//
// The head dim is [key/value head k, query head of the group g]. Cutting the key sequence t leaves each rank with a
// part of every softmax: its maximum, its sum and the weighted values are all-reduced. Where a query sees a window of keys, s and t may be
// cut together: a rank needs the keys and values of its own queries, and those of neighbors that its first and last queries see.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Attention.h"
#include "Rules.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;
using namespace cleave::spmd;

/// The dim of the mask that has the keys, if there is one.
static std::optional<unsigned> getMaskDim(AttentionOp op, unsigned fromEnd) {
  ArrayRef<int64_t> shape = op.getMask() ? getShape(op.getMask()) : ArrayRef<int64_t>();
  if (shape.size() < fromEnd || shape[shape.size() - fromEnd] < 2)
    return std::nullopt;
  return shape.size() - fromEnd;
}

/// Lets queries and keys be cut together where each query sees a window of keys. A mask of queries by keys would have to be cut by both
/// over one axis, which no tensor can be.
static void addBand(OpRule &rule, AttentionOp op, MaybeFactor queries, MaybeFactor keys) {
  KeyBand band = op.getBand();
  bool hasBoth = getMaskDim(op, 1) && getMaskDim(op, 2);
  if (!queries || !keys || hasBoth || !band.isBounded() || *band.high - *band.low + 1 >= getShape(op.getKey())[2])
    return;
  SlidingDim slide;
  slide.input = *keys;
  slide.result = *queries;
  slide.low = *band.low;
  slide.high = *band.high;
  rule.addSlide(slide);
  for (unsigned operand : {1u, 2u})
    rule.addExchangeOf(operand, slide);
  if (getMaskDim(op, 1))
    rule.addExchangeOf(3, slide);
  for (InnerCost &cost : rule.rule.inner)
    if (cost.kind == InnerCost::Kind::AllReduce)
      cost.unless = *queries;
}

/// Keys that a query sees at most: others are not computed.
static int64_t countSeen(AttentionOp op) {
  KeyBand band = op.getBand();
  int64_t keys = getShape(op.getKey())[2];
  return band.isBounded() ? std::clamp<int64_t>(*band.high - *band.low + 1, 0, keys) : keys;
}

ShardingRule AttentionOp::getShardingRule() {
  OpRule rule(*this);
  ArrayRef<int64_t> query = getShape(getQuery()), key = getShape(getKey()), value = getShape(getValue());
  int64_t group = query[1] / key[1];
  MaybeFactor b = rule.addParallel(query[0]), k = rule.addParallel(key[1]), g = rule.addParallel(group),
              s = rule.addParallel(query[2]), t = rule.addParallel(key[2]), v = rule.addParallel(value[3]),
              d = rule.addReplicated(query[3]);
  SmallVector<FactorId, 4> heads = OpRule::present({k, g});
  rule.operandDim(0, b).operandDim(0, heads).operandDim(0, s).operandDim(0, d);
  rule.operandDims(1, {b, k, t, d}).operandDims(2, {b, k, t, v});
  rule.resultDim(0, b).resultDim(0, heads).resultDim(0, s).resultDim(0, v);
  if (getMask()) {
    ArrayRef<int64_t> mask = getShape(getMask());
    SmallVector<SmallVector<FactorId, 4>, 4> dims = {OpRule::present(b), heads, OpRule::present(s), OpRule::present(t)};
    for (auto [extent, factors] : llvm::zip_equal(mask, ArrayRef(dims).take_back(mask.size())))
      rule.operandDim(3, extent > 1 ? ArrayRef<FactorId>(factors) : ArrayRef<FactorId>());
  }
  int64_t bytes = statisticBytes(getQuery());
  rule.addStatistics(t, 2, {b, k, g, s}, bytes);
  rule.addStatistics(t, 1, {b, k, g, s, v}, bytes);
  addBand(rule, *this, s, t);
  rule.rule.held = s.value_or(-1);
  rule.rule.flops = 2.0 * query[0] * query[1] * query[2] * countSeen(*this) * (query[3] + value[3]);
  rule.rule.flopFactors.assign(OpRule::present({b, k, g, s, t})); // Cutting v repeats the scores.
  return rule.finish();
}

// Elements of the last dim are rotated in pairs, so it stays whole.
ShardingRule RotaryEmbeddingOp::getShardingRule() {
  OpRule rule(*this);
  ArrayRef<int64_t> shape = getShape(getInput());
  FactorList dims = rule.addParallelDims(shape.drop_back());
  dims.push_back(rule.addReplicated(shape.back()));
  rule.operandDims(0, dims).resultDims(0, dims);
  MaybeFactor half = rule.addReplicated(getRotated() / 2);
  for (unsigned index : {1u, 2u}) {
    MaybeFactor batch = getShape(getOperand(index))[0] > 1 ? dims[0] : std::nullopt;
    rule.operandDims(index, {batch, dims[2], half});
  }
  return rule.finish("the elements of the last dim are rotated in pairs");
}
