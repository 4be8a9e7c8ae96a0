//===- Elementwise.cpp - ops that padding could stop ----------------------===//
//
// What an elementwise op makes of padding is padding. But integers are divided by what stands there, which may be 0: that
// would end the program. So padding of a divisor counts as 1.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"
#include "LocalBuilder.h"
#include "cleave/Dialect/Spmd/IR/Partition.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;
using namespace cleave::spmd;

/// The op on local types, with a divisor that may be divided by.
static LogicalResult partitionDivision(Operation *op, PartitionContext &context, SmallVectorImpl<Value> &results) {
  LocalBuilder build(context);
  Value &divisor = context.operands[1];
  auto dims = llvm::to_vector(llvm::seq<int64_t>(0, getShape(divisor).size()));
  if (isa<IntegerType>(getElementType(divisor)))
    divisor = build.maskOperand(divisor, 1, dims, ReduceKind::Prod);
  return partitionByCloning(op, context, results);
}

LogicalResult DivOp::partition(PartitionContext &context, SmallVectorImpl<Value> &results) {
  return partitionDivision(*this, context, results);
}

LogicalResult ModOp::partition(PartitionContext &context, SmallVectorImpl<Value> &results) {
  return partitionDivision(*this, context, results);
}
