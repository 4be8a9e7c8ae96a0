//===- SpmdInterfaces.td - what an op says about being split ----*- tablegen -*-===//
#ifndef CLEAVE_SPMD_INTERFACES
#define CLEAVE_SPMD_INTERFACES

include "mlir/IR/OpBase.td"

def ShardingRuleOpInterface : OpInterface<"ShardingRuleOpInterface"> {
  let cppNamespace = "::cleave::spmd";
  let description = [{
    Says how an op may be sharded: its factors, the dims of operands and results that they are in, and what sharding each
    one costs. See `ShardingRule.h`.
  }];
  let methods = [InterfaceMethod<"The op's sharding rule, from its (global) types and attributes.",
                                 "::cleave::spmd::ShardingRule", "getShardingRule">];
}

def PartitionOpInterface : OpInterface<"PartitionOpInterface"> {
  let cppNamespace = "::cleave::spmd";
  let description = [{
    Says how an op becomes its per-device op, once operands and results agree with its rule. The default clones the op
    with local operands and local result types.
  }];
  let methods = [InterfaceMethod<[{
      Builds the per-device op with `context.builder` and returns, through `results`, one local value per result.
      A failure has emitted an error on the op.
    }], "::llvm::LogicalResult", "partition",
    (ins "::cleave::spmd::PartitionContext &":$context, "::llvm::SmallVectorImpl<::mlir::Value> &":$results), "", [{
      return ::cleave::spmd::partitionByCloning($_op, context, results);
    }]>];
}

def LoopOpInterface : OpInterface<"LoopOpInterface"> {
  let cppNamespace = "::cleave::spmd";
  let description = [{
    An op whose body runs repeatedly. The body is one block, which sees no value outside of it. Its arguments are the values that
    the loop carries, then the values that it captures. Carried values are `initial` in the first iteration, and `next` of the
    previous iteration in the others. The results are the carried values at the end. With a condition, `next_condition` of an
    iteration says whether there is another one.
  }];
  let methods = [
    InterfaceMethod<"The body.", "::mlir::Region &", "getBody">,
    InterfaceMethod<"The carried values before the first iteration.", "::mlir::OperandRange", "getInitial">,
    InterfaceMethod<"The captured values.", "::mlir::OperandRange", "getCaptured">,
    InterfaceMethod<"Arguments of the body: the carried values.", "::llvm::MutableArrayRef<::mlir::BlockArgument>", "getCarried">,
    InterfaceMethod<"Arguments of the body: the captured values.", "::llvm::MutableArrayRef<::mlir::BlockArgument>", "getTaken">,
    InterfaceMethod<"The values that an iteration passes to the next one.", "::mlir::OperandRange", "getNext">,
    InterfaceMethod<"The condition of the first iteration; null if there is none.", "::mlir::Value", "getCondition">,
    InterfaceMethod<"The condition of the next iteration.", "::mlir::Value", "getNextCondition">,
    InterfaceMethod<[{
      The number of iterations that costs are multiplied by: all of them where that is known.
    }], "int64_t", "getCountedTimes">,
    InterfaceMethod<"The same loop on other values; its body is an empty block, which the caller fills.", "::mlir::Operation *", "makeLike",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::TypeRange":$results, "::mlir::Value":$condition,
           "::mlir::ValueRange":$initial, "::mlir::ValueRange":$captured)>,
    InterfaceMethod<"Makes the end of a body of such a loop, at the builder's insertion point.", "void", "makeEnd",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Value":$condition, "::mlir::ValueRange":$next)>,
  ];
}

def CollectiveOpInterface : OpInterface<"CollectiveOpInterface"> {
  let cppNamespace = "::cleave::spmd";
  let description = [{
    An op of a partitioned program whose result depends on the rank: on the operands of the other ranks of its group, or
    only on its own coordinates on the mesh. Every other op does the same on every rank.

    Constraints, checked here for all of them: there is a mesh; the axes are of it and do not overlap; the kind is legal
    for the element type, as in (S6) of a sharding.
  }];
  let methods = [
    InterfaceMethod<"The axes along which the ranks of a group differ, major to minor.",
                    "::llvm::SmallVector<::cleave::spmd::AxisAttr>", "getGroupAxes">,
    InterfaceMethod<"How the operands of a group combine; nothing if they do not.",
                    "std::optional<::cleave::spmd::ReductionKind>", "getReductionKind", (ins), "", "return std::nullopt;">,
    InterfaceMethod<"True if ranks send something to each other; else each knows what it keeps or is.",
                    "bool", "communicates", (ins), "", "return true;">,
    InterfaceMethod<"Bytes that the busiest rank sends, rounded up.", "int64_t", "getWireBytes">,
    InterfaceMethod<"Ranks that one sends to, or gets from, at most: of what goes point to point. By itself all others of its group.",
                    "int64_t", "getNumPeers", (ins), "", "return ::cleave::spmd::countOthersInGroup($_op);">,
    InterfaceMethod<"What the op is for, a sentence for people; null if that is not known. It does not change what the op computes.",
                    "::mlir::StringAttr", "getCauseAttr", (ins), "", "return {};">,
    InterfaceMethod<"Sets what the op is for; does nothing where `communicates` is false.",
                    "void", "setCauseAttr", (ins "::mlir::StringAttr":$cause), "", "return;">,
  ];
  let verify = "return ::cleave::spmd::verifyCollective($_op);";
}

#endif // CLEAVE_SPMD_INTERFACES
