//===- SpmdInterfaces.td - what an op says about being split ----*- tablegen -*-===//
#ifndef CLEAVE_SPMD_INTERFACES
#define CLEAVE_SPMD_INTERFACES

include "mlir/IR/OpBase.td"

def ShardingRuleOpInterface : OpInterface<"ShardingRuleOpInterface"> {
  let cppNamespace = "::cleave::spmd";
  let description = [{
    How an op may be split: its factors, where they stand in operands and results, and what cutting each one costs.
    See `ShardingRule.h`.
  }];
  let methods = [InterfaceMethod<"The op's sharding rule, from its (global) types and attributes.",
                                 "::cleave::spmd::ShardingRule", "getShardingRule">];
}

def PartitionOpInterface : OpInterface<"PartitionOpInterface"> {
  let cppNamespace = "::cleave::spmd";
  let description = [{
    How one op becomes its per-device form once operands and results agree with its rule. The default clones the op
    with local operands and local result types.
  }];
  let methods = [InterfaceMethod<[{
      Builds the per-device form with `context.builder` and returns, through `results`, one local value per result.
      A failure has emitted an error on the op.
    }], "::llvm::LogicalResult", "partition",
    (ins "::cleave::spmd::PartitionContext &":$context, "::llvm::SmallVectorImpl<::mlir::Value> &":$results), "", [{
      return ::cleave::spmd::partitionByCloning($_op, context, results);
    }]>];
}

#endif // CLEAVE_SPMD_INTERFACES
