//===- NnControl.td - loops -------------------------------------*- tablegen -*-===//
//
// These ops are not among the families of Ops/: an op with a body has no rule, kernel or importer of its own, the ops in the
// body have. The classes are in a header of their own (Control.h), which few files need.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_NN_CONTROL
#define CLEAVE_NN_CONTROL

include "NnBase.td"

def Nn_LoopOp : Nn_OpBase<"loop", [Pure, IsolatedFromAbove, SingleBlock, AttrSizedOperandSegments, LoopOpInterface]> {
  let summary = "a loop: a body that runs repeatedly";
  let description = [{
    The body takes the carried values, then the `captured` values. Carried values are `initial` in the first iteration, and
    what the previous iteration yielded in the others; captured values are the same in each. The results are the carried
    values at the end: `initial` where there is no iteration.

    There is another iteration while the condition holds and there were fewer than `count`. The condition of the first
    iteration is the operand, that of each other one the first value that the previous iteration yielded. Without a
    condition there are `count` iterations; without a count only the condition ends the loop.

    When sharded, the condition is replicated, so that all ranks continue or none does. `initial`, the argument, the yielded
    value and the result have one sharding, chosen by the cost of all iterations. `spmd-propagate` adds the attribute
    `spmd.times`: the number of iterations that the cost is for.

    Constraints: (C1) there is a condition or a count, and the count is not negative; (C2) the body takes the carried and the
    captured values, each in the shape and element type of its operand; (C3) it yields the carried values, in the same shapes
    and element types, which the results have, too; (C4) it yields a condition if and only if there is one; both are scalars.
    Example:
    ```mlir
    %y:2 = nn.loop count 8 while %go carries (%x, %n) captures (%w) : (tensor<i1>, tensor<4xf32>, tensor<i64>, tensor<4xf32>) -> (tensor<4xf32>, tensor<i64>) {
    ^bb0(%a: tensor<4xf32>, %i: tensor<i64>, %v: tensor<4xf32>):
      %b = nn.mul %a, %v : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %more = nn.lt %i, %i : (tensor<i64>, tensor<i64>) -> tensor<i1>
      nn.yield while %more next (%b, %i) : (tensor<i1>, tensor<4xf32>, tensor<i64>) -> ()
    }
    ```
  }];
  let arguments = (ins Optional<Nn_BoolTensor>:$condition, Variadic<Nn_Tensor>:$initial, Variadic<Nn_Tensor>:$captured,
                       OptionalAttr<I64Attr>:$count);
  let results = (outs Variadic<Nn_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "(`count` $count^)? (`while` $condition^)? (`carries` `(` $initial^ `)`)? (`captures` `(` $captured^ `)`)? attr-dict `:` functional-type(operands, results) $body";
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// Arguments of the body.
    ::llvm::MutableArrayRef<::mlir::BlockArgument> getCarried() { return getBody().getArguments().take_front(getInitial().size()); }
    ::llvm::MutableArrayRef<::mlir::BlockArgument> getTaken() { return getBody().getArguments().drop_front(getInitial().size()); }
    YieldOp getYield();
    ::mlir::OperandRange getNext();
    ::mlir::Value getNextCondition();
    ::mlir::Operation *makeLike(::mlir::OpBuilder &builder, ::mlir::TypeRange results, ::mlir::Value condition, ::mlir::ValueRange initial, ::mlir::ValueRange captured);
    void makeEnd(::mlir::OpBuilder &builder, ::mlir::Value condition, ::mlir::ValueRange next);
    /// The number of iterations that costs are multiplied by: all of them where that is known, else kAssumedTimes or the count,
    /// if that is less.
    int64_t getCountedTimes();
    /// The assumed number of iterations where it is not known.
    static constexpr int64_t kAssumedTimes = 16;
  }];
}

def Nn_YieldOp : Nn_OpBase<"yield", [Pure, Terminator, HasParent<"LoopOp">, AttrSizedOperandSegments]> {
  let summary = "the values that an iteration passes to the next one";
  let description = [{
    Constraints: those of nn.loop.
    Example: `nn.yield while %more next (%b) : (tensor<i1>, tensor<4xf32>) -> ()`
  }];
  let arguments = (ins Optional<Nn_BoolTensor>:$condition, Variadic<Nn_Tensor>:$next);
  let assemblyFormat = "(`while` $condition^)? (`next` `(` $next^ `)`)? attr-dict `:` functional-type(operands, results)";
}

#endif // CLEAVE_NN_CONTROL
