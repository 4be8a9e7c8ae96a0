//===- NnControl.td - loops -------------------------------------*- tablegen -*-===//
//
// Not among the families of Ops/: an op with a body has no rule, kernel or importer of its own, its ops have. The classes are
// in a header of their own (Control.h), which few files need.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_NN_CONTROL
#define CLEAVE_NN_CONTROL

include "NnBase.td"

def Nn_LoopOp : Nn_OpBase<"loop", [Pure, IsolatedFromAbove, SingleBlock, AttrSizedOperandSegments, LoopOpInterface]> {
  let summary = "a body that runs again and again";
  let description = [{
    The body takes what the loop carries, which is `initial` in the first iteration and what the iteration before yielded in
    the others, and then `captured` values, the same ones in each. Results are what the loop carries in the end: `initial`
    where there is no iteration.

    There is another iteration while the condition holds and there were fewer than `count`. The condition of the first one is the
    operand, that of each other one the first value that the iteration before yielded. Without a condition there are
    `count` iterations, without a count the condition alone ends the loop.

    Sharded, the condition is whole on every rank, so that all ranks go on or none does; `initial`, the argument, what is yielded
    and the result lie in one sharding, chosen by price for the whole loop. `spmd.times`, an attribute that `spmd-propagate` adds, says for how many iterations it was priced.

    Constraints: (C1) there is a condition or a count, and the count is not negative; (C2) the body takes what is carried and what is
    captured, each in the shape and element type of its operand; (C3) it yields what is carried, in the same ones, and so are the results; (C4) it
    yields a condition just where there is one; both are scalars.
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
    /// The iterations for which decisions are made: all of them where that is known, else kAssumedTimes or the count, if that is less.
    int64_t getPricedTimes();
    /// How often the body runs where nobody knows.
    static constexpr int64_t kAssumedTimes = 16;
  }];
}

def Nn_YieldOp : Nn_OpBase<"yield", [Pure, Terminator, HasParent<"LoopOp">, AttrSizedOperandSegments]> {
  let summary = "what an iteration hands to the next one";
  let description = [{
    Constraints: those of nn.loop.
    Example: `nn.yield while %more next (%b) : (tensor<i1>, tensor<4xf32>) -> ()`
  }];
  let arguments = (ins Optional<Nn_BoolTensor>:$condition, Variadic<Nn_Tensor>:$next);
  let assemblyFormat = "(`while` $condition^)? (`next` `(` $next^ `)`)? attr-dict `:` functional-type(operands, results)";
}

#endif // CLEAVE_NN_CONTROL
