//===- Indexing.td - reads and writes at computed positions -----*- tablegen -*-===//
//
// Indices may be negative, counting from the end. An index out of range is an error when the program runs.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_NN_OPS_INDEXING
#define CLEAVE_NN_OPS_INDEXING

include "NnBase.td"

def Nn_GatherOp : Nn_Op<"gather", [Nn_Differentiable, Nn_Form<"Movement">, Nn_Slope<"Constant">, Nn_InferTypes, Nn_Lookup, Nn_Stack, Nn_GentleInSome, Nn_OwnPartition]> {
  let summary = "slices of a table along a dim, by index";
  let description = [{
    Result dims: those of `input` before `dim`, those of `indices`, those of `input` after.

    Constraints: (C1) `dim` is in [0, rank of the input).
    Where the table is sharded, each rank looks up in its shard (zero elsewhere), and the results are summed.
    Example: `%y = nn.gather %table, %ids dim 0 : (tensor<100x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>`
  }];
  let arguments = (ins Nn_Tensor:$input, Nn_IndexTensor:$indices, I64Attr:$dim);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$input `,` $indices `dim` $dim attr-dict `:` functional-type(operands, results)";
}

def Nn_GatherElementsOp : Nn_Op<"gather_elements", [Nn_Differentiable, Nn_Form<"Movement">, Nn_Slope<"Constant">, Nn_InferTypes, Nn_Lookup, Nn_OwnPartition]> {
  let summary = "one element per index, along a dim";
  let description = [{
    Result element (.., i, ..) is `input[.., indices[.., i, ..], ..]` with the index at `dim`.

    Constraints: (C1) input and indices have one rank; (C2) `dim` is in [0, rank); (C3) other dims of the indices are
    not larger than the input's.
    Example: `%y = nn.gather_elements %x, %i dim 1 : (tensor<8x100xf32>, tensor<8x1xi64>) -> tensor<8x1xf32>`
  }];
  let arguments = (ins Nn_Tensor:$input, Nn_IndexTensor:$indices, I64Attr:$dim);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$input `,` $indices `dim` $dim attr-dict `:` functional-type(operands, results)";
}

def Nn_GatherNdOp : Nn_Op<"gather_nd", [Nn_Differentiable, Nn_Form<"Movement">, Nn_Slope<"Constant">, Nn_InferTypes, Nn_Lookup, Nn_OwnPartition]> {
  let summary = "slices by index tuples";
  let description = [{
    The last dim of `indices` is a tuple for the dims of `input` from `batchDims` on; the first `batchDims` dims of both
    agree and are paired.

    Constraints: (C1) 0 <= batchDims < both ranks; (C2) batch dims agree; (C3) tuples are not longer than the dims left.
    Example: `%y = nn.gather_nd %x, %i batch_dims 0 : (tensor<8x4xf32>, tensor<3x1xi64>) -> tensor<3x4xf32>`
  }];
  let arguments = (ins Nn_Tensor:$input, Nn_IndexTensor:$indices, I64Attr:$batchDims);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$input `,` $indices `batch_dims` $batchDims attr-dict `:` functional-type(operands, results)";
}

def Nn_ScatterKind : I32EnumAttr<"ScatterKind", "how an update joins what is there", [
    I32EnumAttrCase<"Set", 0, "set">, I32EnumAttrCase<"Add", 1, "add">, I32EnumAttrCase<"Mul", 2, "mul">,
    I32EnumAttrCase<"Max", 3, "max">, I32EnumAttrCase<"Min", 4, "min">]> {
  let cppNamespace = "::cleave::nn";
  let genSpecializedAttr = 0;
}
def Nn_ScatterKindAttr : EnumAttr<Nn_Dialect, Nn_ScatterKind, "scatter_kind"> { let assemblyFormat = "$value"; }

def Nn_ScatterElementsOp : Nn_Op<"scatter_elements", [Nn_Differentiable, Nn_Form<"Scatter">, Nn_InferTypes, Nn_Lookup, Nn_OwnPartition]> {
  let summary = "a copy of the input with single elements updated";
  let description = [{
    The inverse of nn.gather_elements. Updates are applied in row-major order.

    Constraints: (C1) all three have one rank; (C2) `dim` is in [0, rank); (C3) updates have the indices' shape and the
    input's element type; (C4) other dims of the indices are not larger than the input's.
    Example: `%y = nn.scatter_elements set %x, %i, %u dim 1 : (...) -> tensor<8x100xf32>`
  }];
  let arguments = (ins Nn_ScatterKindAttr:$kind, Nn_PlainTensor:$input, Nn_IndexTensor:$indices, Nn_PlainTensor:$updates, I64Attr:$dim);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "`` $kind $input `,` $indices `,` $updates `dim` $dim attr-dict `:` functional-type(operands, results)";
}

def Nn_ScatterNdOp : Nn_Op<"scatter_nd", [Nn_Differentiable, Nn_Form<"Scatter">, Nn_InferTypes, Nn_Lookup, Nn_OwnPartition]> {
  let summary = "a copy of the input with slices updated";
  let description = [{
    The last dim of `indices` is a tuple for the major dims of `input`. Updates are applied in row-major order.

    Constraints: (C1) tuples are not longer than the input's rank; (C2) updates are [tuples..., dims left...] of the
    input's element type.
    Example: `%y = nn.scatter_nd add %x, %i, %u : (...) -> tensor<8x4xf32>`
  }];
  let arguments = (ins Nn_ScatterKindAttr:$kind, Nn_PlainTensor:$input, Nn_IndexTensor:$indices, Nn_PlainTensor:$updates);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "`` $kind $input `,` $indices `,` $updates attr-dict `:` functional-type(operands, results)";
}

def Nn_OneHotOp : Nn_Op<"one_hot", [Nn_Differentiable, Nn_Form<"Movement">, Nn_InferTypes, Nn_Lookup, Nn_OwnPartition]> {
  let summary = "on-value at the index, off-value elsewhere, along a new dim";
  let description = [{
    `values` is [off, on]. Indices outside [-depth, depth) give off everywhere.

    Constraints: (C1) `dim` is in [0, rank of the indices]; (C2) `depth` is positive; (C3) values has shape [2].
    Example: `%y = nn.one_hot %i, %v depth 10 dim 1 : (tensor<8xi64>, tensor<2xf32>) -> tensor<8x10xf32>`
  }];
  let arguments = (ins Nn_NumberTensor:$indices, Nn_PlainTensor:$values, I64Attr:$depth, I64Attr:$dim);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$indices `,` $values `depth` $depth `dim` $dim attr-dict `:` functional-type(operands, results)";
}

#endif // CLEAVE_NN_OPS_INDEXING
