//===- AttentionStatistics.cpp - what gradients know of rows --------------===//
//
// The forward becomes attention to one part, which is all keys. What it gives is not rounded, so that sums of gradients and results are those
// of the numbers that weights are made of. A forward that is somewhere else, or hides something else, is done again in front of gradients.
//
//===----------------------------------------------------------------------===//
#include "AttentionStatistics.h"

#include "cleave/Dialect/Nn/IR/Ops/Conversion.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "cleave/Dialect/Spmd/IR/TensorTypes.h"

#include <limits>

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

Value cleave::exec::countExcluded(nn::Composer &f, Value mask, const nn::KeyBand &band, Value logs, int64_t queries,
                                  int64_t keys, Type compute) {
  if (!mask || !isa<FloatType>(getElementType(mask)) || getShape(mask).empty())
    return {};
  mask = f.cast(mask, compute);
  double lowest = -std::numeric_limits<double>::infinity();
  if (!band.isEmpty())
    mask = f.select(nn::compareToBand(f.getOpBuilder(), f.getLoc(), f.iota({queries, 1}, 0, f.i64()),
                                      f.iota({1, keys}, 1, f.i64()), band),
                    mask, lowest);
  int64_t last = getShape(mask).size() - 1;
  Value isLargest = f.eq(mask, f.reduce(nn::ReduceKind::Max, mask, {last}, /*keepDims=*/true));
  Value count = f.sum(f.select(isLargest, f.scalar(compute, 1), f.scalar(compute, 0)), {last}, /*keepDims=*/true);
  if (getShape(mask)[last] != keys)
    count = f.mul(count, static_cast<double>(keys));
  return f.select(f.le(logs, kExcludedLog), count, f.scalar(compute, 1));
}

/// True if `value` is `from`, read again, or repeated for heads that share it.
static bool comesFrom(Value value, Value from) {
  from = skipAgain(from);
  for (value = skipAgain(value); value != from; value = skipAgain(value.getDefiningOp()->getOperand(0)))
    if (!isa_and_present<nn::ReshapeOp, nn::BroadcastOp>(value.getDefiningOp()))
      return false;
  return true;
}

bool cleave::exec::areOf(AttentionGradOp gradients, nn::AttentionOp attention) {
  return gradients->getBlock() == attention->getBlock() && attention->isBeforeInBlock(gradients) &&
         skipAgain(gradients.getQuery()) == skipAgain(attention.getQuery()) &&
         comesFrom(gradients.getKey(), attention.getKey()) && comesFrom(gradients.getValue(), attention.getValue()) &&
         gradients.getScale() == attention.getScale() && gradients.getSoftcap() == attention.getSoftcap();
}

void cleave::exec::giveStatistics(AttentionGradOp gradients, nn::AttentionOp attention,
                                  const std::optional<RowsBelow> &rows) {
  OpBuilder builder(gradients);
  if (attention)
    builder.setInsertionPoint(attention);
  else
    attention = gradients.createForward(builder);
  nn::Composer f(builder, attention.getLoc());
  Type compute = getElementType(attention.getQuery()).isF64() ? f.f64() : f.f32();
  SmallVector<int64_t> shape(getShape(attention.getResult())), ofRows(ArrayRef(shape).drop_back()), apart(shape);
  int64_t queries = shape[2], keys = attention.getKey().getType().getDimSize(2);
  apart.insert(apart.begin() + 3, 1);
  auto partial = PartialAttentionOp::create(
      builder, attention.getLoc(), RankedTensorType::get(apart, compute),
      RankedTensorType::get(ArrayRef(apart).drop_back(), compute), attention.getQuery(), attention.getKey(),
      attention.getValue(), attention.getMask(), attention.getScaleAttr(), attention.getCausalAttr(),
      attention.getCausalOffsetAttr(), attention.getSoftcapAttr(), attention.getLeftAttr(), attention.getRightAttr(),
      /*seen=*/Value(), builder.getI64IntegerAttr(keys));
  Value result = f.reshape(partial.getSums(), shape), logs = f.reshape(partial.getLogs(), ofRows);
  Value counts = countExcluded(f, attention.getMask(), attention.getBand(), partial.getLogs(), queries, keys, compute);
  attention.replaceAllUsesWith(f.cast(result, getElementType(attention.getResult())));
  attention.erase();
  builder.setInsertionPoint(gradients);
  Value gradient = gradients.getGradient(), means = f.sum(f.mul(f.cast(gradient, compute), result), {3});
  // Such weights are 1 each, as many times too large; gradients that are as many times too small make up for it.
  if (counts) {
    gradient = f.cast(f.div(f.cast(gradient, compute), counts), getElementType(gradient));
    means = f.div(means, f.reshape(f.broadcast(counts, ArrayRef(apart).drop_back()), ofRows));
  }
  // What is padding has weights of 0, whatever the forward has made of it.
  if (rows) {
    Value isThere = rows->test(builder, f.getLoc(), queries, 3, 2);
    logs = f.select(isThere, logs, std::numeric_limits<double>::infinity());
    means = f.select(isThere, means, 0);
  }
  auto wide = [&](Value like) { return RankedTensorType::get(getShape(like), compute); };
  auto made = AttentionGradOp::create(
      builder, gradients.getLoc(), wide(gradients.getQuery()), wide(gradients.getKey()), wide(gradients.getValue()),
      gradients.getQuery(), gradients.getKey(), gradients.getValue(), gradients.getMask(), gradients.getScaleAttr(),
      gradients.getCausalAttr(), gradients.getCausalOffsetAttr(), gradients.getSoftcapAttr(), gradients.getLeftAttr(),
      gradients.getRightAttr(), gradient, gradients.getShown(), logs, means, /*seen=*/Value());
  for (auto [before, now] : llvm::zip_equal(gradients.getResults(), made.getResults()))
    before.replaceAllUsesWith(f.cast(now, getElementType(before)));
  gradients.erase();
}
