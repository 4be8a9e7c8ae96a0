//===- Contraction.cpp - sums of products of shards -----------------------===//
//
// The same op on local shapes. Where a letter that is summed over does not divide, the padding of every operand that has it
// counts as 0: of one alone would not do, as 0 times NaN is NaN.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Contraction.h"
#include "LocalBuilder.h"
#include "cleave/Dialect/Spmd/IR/Partition.h"

using namespace mlir;
using namespace cleave::nn;
using namespace cleave::spmd;

LogicalResult EinsumOp::partition(PartitionContext &context, SmallVectorImpl<Value> &results) {
  LocalBuilder build(context);
  for (unsigned operand = 0; operand < context.operands.size(); ++operand)
    for (auto [dim, factors] : llvm::enumerate(context.rule.operands[operand]))
      if (!factors.empty() && context.rule.isReduction(factors.front()))
        context.operands[operand] =
            build.maskOperand(context.operands[operand], operand, int64_t(dim), ReduceKind::Sum);
  return partitionByCloning(*this, context, results);
}
