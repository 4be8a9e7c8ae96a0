//===- Convolution.cpp - windows over spatial dims ------------------------===//
//
// Batch and channels can be cut, and so can spatial dims. Where every window lies in one step (patches, 1x1), input dim =
// [result position, position in the step], and the first is parallel. Elsewhere windows of neighboring shards overlap:
// input and result are cut together, and a rank gets the edges that it needs, with what is padded.
//
//   result       |0 0 0 0|1 1 1 1|
//   stride 1     [. 0 0 0 0 1]             window of 3, padded by 1:  low = -padding
//                        [0 1 1 1 1 .]     high = span - stride - padding, both beyond a step
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Convolution.h"
#include "Rules.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;
using namespace cleave::spmd;

/// In floats, as what is counted may not fit 64 bits.
static double product(ArrayRef<int64_t> extents) {
  double result = 1;
  for (int64_t extent : extents)
    result *= static_cast<double>(extent);
  return result;
}

/// The op is linear in the input and in the weight; a bias joins in, so that it is added once.
static void addLinearInInputs(OpRule &rule, bool hasBias) {
  for (int32_t operand : {0, 1})
    hasBias ? rule.addLinear({operand, 2}) : rule.addLinear(operand);
}

/// A cut of the channels in leaves terms, of which one alone may have the bias.
static MaybeFactor addChannelsIn(OpRule &rule, int64_t size, bool hasBias) {
  return rule.addReduction(size, ReductionKind::Sum, hasBias ? ArrayRef<int32_t>{2} : ArrayRef<int32_t>{});
}

namespace {
/// One spatial dim of a window.
struct WindowDim {
  int64_t kernel, stride, dilation, padLow, padHigh;

  int64_t getSpan() const { return (kernel - 1) * dilation + 1; }
  bool isPatchwise(int64_t input, int64_t result) const {
    return cleave::nn::isPatchwise(input, result, kernel, stride, dilation, padLow, padHigh);
  }
};
} // namespace

/// A dim of operand 0 that the window slides over, and the result's.
static void addSlidDim(OpRule &rule, int64_t input, int64_t result, const WindowDim &window) {
  if (window.isPatchwise(input, result)) {
    OpRule::Spatial spatial = rule.addSpatialDim(/*isLocal=*/true, result, input);
    rule.operandDim(0, spatial.fine).resultDim(0, spatial.coarse);
    return;
  }
  SlidingDim slide;
  slide.stride = window.stride;
  slide.low = -window.padLow;
  slide.high = window.getSpan() - window.stride - window.padLow;
  OpRule::Windowed factors = rule.addWindowDim(input, result, slide);
  rule.operandDim(0, factors.input).resultDim(0, factors.result);
}

/// A dim of operand 0, each position of which the window spreads over the result: position o of the result comes from
/// those of the input from (o + padding - span + 1) / stride up to (o + padding) / stride.
static void addSpreadDim(OpRule &rule, int64_t input, int64_t result, const WindowDim &window) {
  SlidingDim slide;
  slide.share = window.stride;
  slide.low = -llvm::divideFloorSigned(window.getSpan() - 1 - window.padLow, window.stride);
  slide.high = (window.padLow + window.stride - 1) / window.stride;
  // The local op crops what its first position adds in front of the shard; it cannot add.
  bool crops = window.padLow >= slide.low * window.stride;
  if (window.isPatchwise(result, input) || !crops) {
    OpRule::Spatial spatial = rule.addSpatialDim(window.isPatchwise(result, input), input, result);
    rule.operandDim(0, spatial.coarse).resultDim(0, spatial.fine);
    return;
  }
  OpRule::Windowed factors = rule.addWindowDim(input, result, slide);
  rule.operandDim(0, factors.input).resultDim(0, factors.result);
}

ShardingRule ConvOp::getShardingRule() {
  OpRule rule(*this);
  ArrayRef<int64_t> input = getShape(getInput()), weight = getShape(getWeight()), result = getShape(getResult());
  int64_t groups = getGroups();
  bool hasBias = static_cast<bool>(getBias());
  MaybeFactor batch = rule.addParallel(result[0]), group = rule.addParallel(groups),
              out = rule.addParallel(result[1] / groups), in = addChannelsIn(rule, weight[1], hasBias);
  SmallVector<FactorId, 4> channelsOut = OpRule::present({group, out});
  rule.operandDim(0, batch).operandDim(0, OpRule::present({group, in}));
  rule.operandDim(1, channelsOut).operandDim(1, in);
  rule.resultDim(0, batch).resultDim(0, channelsOut);
  if (hasBias)
    rule.operandDim(2, channelsOut);
  for (size_t dim = 2; dim < input.size(); ++dim) {
    size_t i = dim - 2;
    addSlidDim(rule, input[dim], result[dim],
               {weight[dim], getStrides()[i], getDilations()[i], getPadsLow()[i], getPadsHigh()[i]});
    rule.operandDim(1, rule.addReplicated(weight[dim]));
  }
  addLinearInInputs(rule, hasBias);
  rule.addExchange();
  rule.rule.reducedDim = "channel dim";
  rule.rule.flops = 2 * product(result) * product(weight.drop_front());
  return rule.finish("windows over the spatial dims overlap");
}

/// The convolution seen from behind: operand and result change places in each spatial dim.
ShardingRule ConvTransposeOp::getShardingRule() {
  OpRule rule(*this);
  ArrayRef<int64_t> input = getShape(getInput()), weight = getShape(getWeight()), result = getShape(getResult());
  int64_t groups = getGroups();
  bool hasBias = static_cast<bool>(getBias());
  MaybeFactor batch = rule.addParallel(result[0]), group = rule.addParallel(groups), out = rule.addParallel(weight[1]),
              in = addChannelsIn(rule, input[1] / groups, hasBias);
  SmallVector<FactorId, 4> channelsIn = OpRule::present({group, in}), channelsOut = OpRule::present({group, out});
  rule.operandDim(0, batch).operandDim(0, channelsIn);
  rule.operandDim(1, channelsIn).operandDim(1, out);
  rule.resultDim(0, batch).resultDim(0, channelsOut);
  if (hasBias)
    rule.operandDim(2, channelsOut);
  for (size_t dim = 2; dim < input.size(); ++dim) {
    size_t i = dim - 2;
    addSpreadDim(rule, input[dim], result[dim],
                 {weight[dim], getStrides()[i], getDilations()[i], getPadsLow()[i], getPadsHigh()[i]});
    rule.operandDim(1, rule.addReplicated(weight[dim]));
  }
  addLinearInInputs(rule, hasBias);
  rule.addExchange();
  rule.rule.flops = 2 * product(input) * product(weight.drop_front());
  return rule.finish("windows over the spatial dims overlap");
}

/// Channels do not meet in a pool, so that they are parallel like the batch.
ShardingRule PoolOp::getShardingRule() {
  OpRule rule(*this);
  ArrayRef<int64_t> input = getShape(getInput()), result = getShape(getResult());
  FactorList outer = rule.addParallelDims(input.take_front(2));
  rule.operandDims(0, outer).resultDims(0, outer);
  for (size_t dim = 2; dim < input.size(); ++dim) {
    size_t i = dim - 2;
    addSlidDim(rule, input[dim], result[dim],
               {getKernel()[i], getStrides()[i], getDilations()[i], getPadsLow()[i], getPadsHigh()[i]});
  }
  rule.addExchange();
  return rule.finish("windows over the spatial dims overlap");
}
