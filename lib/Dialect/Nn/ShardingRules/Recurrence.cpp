//===- Recurrence.cpp - recurrent nets ------------------------------------===//
//
//   projected [t, d, b, g, h], weight [d, g, h, k], states [d, b, h], bias [d, h], peepholes [d, p, h], lengths [b]
//   -> [t, d, b, h], states [d, b, h]
//
// Directions and samples know nothing of each other. A rank that has some of h has the rows of all gates that make them, and
// needs the whole state k in each step: an all_gather of it, or two in a gru that resets the state before the product. The
// other way, all of the weight on each rank, is the choice `none` with a gather of the weight in front: the cost decides.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Recurrence.h"
#include "Rules.h"
#include "cleave/Dialect/Nn/IR/Ops/Recurrence.h"

using namespace mlir;
using namespace cleave::nn;
using namespace cleave::spmd;

ShardingRule RecurrenceOp::getShardingRule() {
  OpRule rule(*this);
  MaybeFactor t = rule.addReplicated(getSteps()), d = rule.addParallel(getDirections()),
              b = rule.addParallel(getBatch()), g = rule.addReplicated(getGates()), h = rule.addParallel(getHidden()),
              k = rule.addReplicated(getHidden());
  rule.operandDims(0, {t, d, b, g, h}).operandDims(1, {d, g, h, k});
  unsigned index = 2;
  for (size_t i = 0; i < getInitial().size(); ++i)
    rule.operandDims(index++, {d, b, h});
  if (getBias())
    rule.operandDims(index++, {d, h});
  if (getPeepholes())
    rule.operandDims(index++, {d, rule.addReplicated(3), h});
  if (getLengths())
    rule.operandDims(index++, {b});
  rule.resultDims(0, {t, d, b, h});
  for (unsigned result = 1; result < getNumResults(); ++result)
    rule.resultDims(result, {d, b, h});
  bool multiplies = !multipliesNothing();
  if (h && multiplies) {
    InnerCost cost;
    cost.kind = InnerCost::Kind::AllGather;
    cost.factors.push_back(*h);
    cost.times = getSteps() * (getKind() == RecurrenceKind::Gru && !getLinearBeforeReset() ? 2 : 1);
    cost.elementFactors = OpRule::present({d, b, h});
    cost.elementBytes = bytesOf(getProjected());
    rule.addInner(std::move(cost));
  }
  if (multiplies)
    rule.rule.flops = 2.0 * getSteps() * getDirections() * getBatch() * getGates() * getHidden() * getHidden();
  return rule.finish("each step needs the one before it");
}
