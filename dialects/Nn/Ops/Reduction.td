//===- Reduction.td - along one or more dims --------------------*- tablegen -*-===//
#ifndef CLEAVE_NN_OPS_REDUCTION
#define CLEAVE_NN_OPS_REDUCTION

include "NnBase.td"

def Nn_ReduceKind : I32EnumAttr<"ReduceKind", "what a reduction computes", [
    I32EnumAttrCase<"Sum", 0, "sum">, I32EnumAttrCase<"Mean", 1, "mean">, I32EnumAttrCase<"Prod", 2, "prod">,
    I32EnumAttrCase<"Max", 3, "max">, I32EnumAttrCase<"Min", 4, "min">]> {
  let cppNamespace = "::cleave::nn";
  let genSpecializedAttr = 0;
}
def Nn_ReduceKindAttr : EnumAttr<Nn_Dialect, Nn_ReduceKind, "reduce_kind"> { let assemblyFormat = "$value"; }

def Nn_ReduceOp : Nn_Op<"reduce", [Nn_Differentiable, Nn_RowForm<"::llvm::to_vector(getDims())">, Nn_OwnSlope, Nn_InferTypes, Nn_ReorderSome, Nn_Stack, Nn_GentleInSome, Nn_OwnPartition]> {
  let summary = "sum, mean, product, maximum or minimum over dims";
  let description = [{
    The reduced dims stay with size 1 where `keep_dims`, else they are removed. Over no elements: 0, NaN, 1, -inf, inf.

    Constraints: (C1) `dims` are distinct, ascending, in [0, rank); (C2) bool only with max and min.
    Example: `%s = nn.reduce sum %x dims [1] : (tensor<8x4xf32>) -> tensor<8xf32>`
  }];
  let arguments = (ins Nn_ReduceKindAttr:$kind, Nn_PlainTensor:$input, DenseI64ArrayAttr:$dims, UnitAttr:$keepDims);
  let results = (outs Nn_PlainTensor:$result);
  let assemblyFormat = "`` $kind $input `dims` $dims (`keep_dims` $keepDims^)? attr-dict `:` functional-type(operands, results)";
}

def Nn_ArgReduceOp : Nn_Op<"arg_reduce", [Nn_NoGradient, Nn_RowForm<"{int64_t(getDim())}">, Nn_InferTypes, Nn_OwnPartition]> {
  let summary = "index of the maximum or minimum along a dim";
  let description = [{
    The first such index, or the last where `last`.

    Constraints: (C1) `dim` is in [0, rank) and not empty; (C2) the kind is max or min.
    Example: `%i = nn.arg_reduce max %x dim 1 : (tensor<8x4xf32>) -> tensor<8xi64>`
  }];
  let arguments = (ins Nn_ReduceKindAttr:$kind, Nn_NumberTensor:$input, I64Attr:$dim, UnitAttr:$keepDims, UnitAttr:$last);
  let results = (outs Nn_IndexTensor:$result);
  let assemblyFormat = "`` $kind $input `dim` $dim (`keep_dims` $keepDims^)? (`last` $last^)? attr-dict `:` functional-type(operands, results)";
}

class Nn_SoftmaxLike<string mnemonic, string formula, list<Trait> traits = []>
    : Nn_Op<mnemonic, !listconcat(traits, [Nn_Differentiable, Nn_RowForm<"{int64_t(getDim())}">, Nn_Slope<"OfResult">, Nn_InferTypes, Nn_Reorder, Nn_OwnPartition])> {
  let summary = formula;
  let description = formula # [{ along one dim, computed with the maximum subtracted.

    Constraints: (C1) `dim` is in [0, rank).
    Where `dim` is sharded, the local maximum and the local sum are all-reduced; the data stays where it is.
    Example: `%y = nn.}] # mnemonic # " %x dim 1 : (tensor<8x128xf32>) -> tensor<8x128xf32>`";
  let arguments = (ins Nn_FloatTensor:$input, I64Attr:$dim);
  let results = (outs Nn_FloatTensor:$result);
  let assemblyFormat = "$input `dim` $dim attr-dict `:` functional-type(operands, results)";
}
def Nn_SoftmaxOp : Nn_SoftmaxLike<"softmax", "`e^x / sum(e^x)`", [Nn_Stack]>;
def Nn_LogSoftmaxOp : Nn_SoftmaxLike<"log_softmax", "`x - log(sum(e^x))`">;

def Nn_CumsumOp : Nn_Op<"cumsum", [Nn_Differentiable, Nn_RowForm<"{int64_t(getDim())}", "Scan">, Nn_Slope<"Constant">, Nn_InferTypes, Nn_OwnPartition]> {
  let summary = "running sum along a dim";
  let description = [{
    Element i is the sum of elements 0 to i, or of those before i where `exclusive`; from the end where `reverse`.

    Constraints: (C1) `dim` is in [0, rank).
    Example: `%y = nn.cumsum %x dim 1 : (tensor<8x4xf32>) -> tensor<8x4xf32>`
  }];
  let arguments = (ins Nn_NumberTensor:$input, I64Attr:$dim, UnitAttr:$exclusive, UnitAttr:$reverse);
  let results = (outs Nn_NumberTensor:$result);
  let assemblyFormat = "$input `dim` $dim (`exclusive` $exclusive^)? (`reverse` $reverse^)? attr-dict `:` functional-type(operands, results)";
}

def Nn_TopKOp : Nn_Op<"top_k", [Nn_Differentiable, Nn_Form<"Sort">, Nn_InferTypes, Nn_OwnPartition]> {
  let summary = "the k largest (or smallest) elements along a dim, and their indices";
  let description = [{
    In order; of equal elements the one with the lower index comes first.

    Constraints: (C1) `dim` is in [0, rank); (C2) `k` is in [0, size of the dim].
    Example: `%v, %i = nn.top_k %x k 2 dim 1 : (tensor<8x4xf32>) -> (tensor<8x2xf32>, tensor<8x2xi64>)`
  }];
  let arguments = (ins Nn_NumberTensor:$input, I64Attr:$k, I64Attr:$dim, UnitAttr:$smallest);
  let results = (outs Nn_NumberTensor:$values, Nn_IndexTensor:$indices);
  let assemblyFormat = "$input `k` $k `dim` $dim (`smallest` $smallest^)? attr-dict `:` functional-type(operands, results)";
}

#endif // CLEAVE_NN_OPS_REDUCTION
