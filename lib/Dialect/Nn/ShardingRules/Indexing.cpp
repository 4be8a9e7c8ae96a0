//===- Indexing.cpp - reads and writes at computed places -----------------===//
//
// A table cut along an indexed dim: each rank looks up what it holds, zero elsewhere, and the results add up (bool:
// or). A scatter into a cut dim: each rank applies the updates that fall into its shard. A scatter that adds may also
// split the updates; then the results, and with them the input, are partial.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Indexing.h"
#include "Rules.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;
using namespace cleave::spmd;

//===----------------------------------------------------------------------===//
// Gather
//===----------------------------------------------------------------------===//

ShardingRule GatherOp::getShardingRule() {
  OpRule rule(*this);
  ArrayRef<int64_t> input = getShape(getInput());
  size_t dim = getDim();
  FactorList before = rule.addParallelDims(input.take_front(dim));
  FactorList ids = rule.addParallelDims(getShape(getIndices()));
  FactorList after = rule.addParallelDims(input.drop_front(dim + 1));
  MaybeFactor looked = rule.addReduction(input[dim], getMaskKind(getElementType(getInput())));
  rule.operandDims(0, before).operandDims(0, looked).operandDims(0, after);
  rule.operandDims(1, ids);
  rule.resultDims(0, before).resultDims(0, ids).resultDims(0, after);
  rule.rule.reducedDim = "indexed dim";
  rule.addMovement(0);
  return rule.finish();
}

ShardingRule GatherElementsOp::getShardingRule() {
  OpRule rule(*this);
  ArrayRef<int64_t> input = getShape(getInput());
  for (auto [dim, extent] : llvm::enumerate(getShape(getIndices()))) {
    bool isLooked = static_cast<int64_t>(dim) == static_cast<int64_t>(getDim());
    // Indices that cover just the first elements of a dim do not line up with its shards.
    bool isPaired = isLooked || extent == input[dim];
    MaybeFactor id = isPaired ? rule.addParallel(extent) : rule.addReplicated(extent);
    MaybeFactor table = isLooked   ? rule.addReduction(input[dim], getMaskKind(getElementType(getInput())))
                        : isPaired ? id
                                   : rule.addReplicated(input[dim]);
    rule.operandDim(0, table).operandDim(1, id).resultDim(0, id);
  }
  rule.rule.reducedDim = "indexed dim";
  rule.addMovement(0);
  return rule.finish();
}

ShardingRule GatherNdOp::getShardingRule() {
  OpRule rule(*this);
  ArrayRef<int64_t> input = getShape(getInput()), indices = getShape(getIndices());
  size_t numBatch = getBatchDims(), numLooked = indices.back();
  ReductionKind mask = getMaskKind(getElementType(getInput()));
  FactorList tuples = rule.addParallelDims(indices.drop_back());
  FactorList rest = rule.addParallelDims(input.drop_front(numBatch + numLooked));
  rule.operandDims(0, ArrayRef(tuples).take_front(numBatch));
  for (int64_t extent : input.slice(numBatch, numLooked))
    rule.operandDim(0, rule.addReduction(extent, mask));
  rule.operandDims(0, rest);
  rule.operandDims(1, tuples).operandDims(1, rule.addReplicated(indices.back()));
  rule.resultDims(0, tuples).resultDims(0, rest);
  rule.rule.reducedDim = "indexed dim";
  rule.addMovement(0);
  return rule.finish();
}

//===----------------------------------------------------------------------===//
// Scatter
//===----------------------------------------------------------------------===//

/// A dim of updates that no dim of the input is paired with: it may be split where updates add up.
static MaybeFactor addUpdates(OpRule &rule, int64_t extent, ScatterKind kind) {
  return kind == ScatterKind::Add ? rule.addReduction(extent, ReductionKind::Sum, 0) : rule.addReplicated(extent);
}

/// Every element of the result is an element of the input, an update, or a sum of them.
static void addScatterLinear(OpRule &rule, ScatterKind kind, Type elementType) {
  if ((kind == ScatterKind::Add || kind == ScatterKind::Set) && !elementType.isInteger(1))
    rule.addLinear({0, 2});
}

ShardingRule ScatterElementsOp::getShardingRule() {
  OpRule rule(*this);
  ArrayRef<int64_t> input = getShape(getInput());
  for (auto [dim, extent] : llvm::enumerate(getShape(getIndices()))) {
    bool isScattered = static_cast<int64_t>(dim) == static_cast<int64_t>(getDim());
    bool isPaired = !isScattered && extent == input[dim];
    MaybeFactor held = isScattered || isPaired ? rule.addParallel(input[dim]) : rule.addReplicated(input[dim]);
    MaybeFactor update = isPaired      ? held
                         : isScattered ? addUpdates(rule, extent, getKind())
                                       : rule.addReplicated(extent);
    rule.operandDim(0, held).operandDim(1, update).operandDim(2, update).resultDim(0, held);
  }
  addScatterLinear(rule, getKind(), getElementType(getInput()));
  return rule.finish("the indices cover only the first elements of every dim");
}

ShardingRule ScatterNdOp::getShardingRule() {
  OpRule rule(*this);
  ArrayRef<int64_t> input = getShape(getInput()), indices = getShape(getIndices());
  size_t numScattered = indices.back();
  FactorList held = rule.addParallelDims(input);
  ArrayRef<MaybeFactor> window = ArrayRef(held).drop_front(numScattered);
  FactorList updates =
      llvm::map_to_vector<4>(indices.drop_back(), [&](int64_t extent) { return addUpdates(rule, extent, getKind()); });
  rule.operandDims(0, held).resultDims(0, held);
  rule.operandDims(1, updates).operandDims(1, rule.addReplicated(indices.back()));
  rule.operandDims(2, updates).operandDims(2, window);
  addScatterLinear(rule, getKind(), getElementType(getInput()));
  return rule.finish("a scatter into a scalar");
}

//===----------------------------------------------------------------------===//
// One-hot
//===----------------------------------------------------------------------===//

ShardingRule OneHotOp::getShardingRule() {
  OpRule rule(*this);
  FactorList dims = rule.addParallelDims(getShape(getResult()));
  FactorList ids = dims;
  ids.erase(ids.begin() + getDim());
  rule.operandDims(0, ids).operandDims(1, rule.addReplicated(2)).resultDims(0, dims);
  return rule.finish();
}
