//===- Movement.td - elements change position, not value --------*- tablegen -*-===//
#ifndef CLEAVE_NN_OPS_MOVEMENT
#define CLEAVE_NN_OPS_MOVEMENT

include "NnBase.td"

def Nn_ReshapeOp : Nn_Op<"reshape", [Nn_Differentiable, Nn_Form<"Movement">, Nn_KeepsNumbers, Nn_MovesDims, Nn_Stack, Nn_Gentle, Nn_OwnPartition]> {
  let summary = "the same elements, in row-major order, in another shape";
  let description = [{
    Constraints: (C1) operand and result have one element type and number of elements.
    Example: `%y = nn.reshape %x : (tensor<8x4xf32>) -> tensor<2x16xf32>`
  }];
  let arguments = (ins Nn_Tensor:$input);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Nn_TransposeOp : Nn_Op<"transpose", [Nn_Differentiable, Nn_Form<"Movement">, Nn_InferTypes, Nn_KeepsNumbers, Nn_MovesDims, Nn_Stack, Nn_ClonePartition]> {
  let summary = "dims in another order";
  let description = [{
    Result dim i is operand dim `permutation[i]`.

    Constraints: (C1) `permutation` is one of the operand's dims.
    Example: `%y = nn.transpose %x [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>`
  }];
  let arguments = (ins Nn_Tensor:$input, DenseI64ArrayAttr:$permutation);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$input $permutation attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}

def Nn_BroadcastOp : Nn_Op<"broadcast", [Nn_Differentiable, Nn_Form<"Map">, Nn_KeepsNumbers, Nn_MovesDims, Nn_ReorderOpInterface, Nn_Stack, Nn_Gentle, Nn_ClonePartition]> {
  let summary = "repeated to the shape of the result";
  let description = [{
    As in numpy: aligned at the minor dim, dims of size 1 repeat, missing major dims are added.

    Constraints: (C1) one element type; (C2) the operand broadcasts to the result.
    Example: `%y = nn.broadcast %x : (tensor<4xf32>) -> tensor<8x4xf32>`
  }];
  let arguments = (ins Nn_Tensor:$input);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Nn_ConcatOp : Nn_Op<"concat", [Nn_Differentiable, Nn_Form<"Movement">, Nn_InferTypes, Nn_KeepsNumbers, Nn_Reorder, Nn_Gentle, Nn_OwnPartition]> {
  let summary = "operands one after the other along a dim";
  let description = [{
    Constraints: (C1) at least one operand; (C2) one rank and element type; (C3) `dim` is in [0, rank); (C4) all other
    dims agree.
    Example: `%z = nn.concat %x, %y dim 0 : (tensor<8x4xf32>, tensor<2x4xf32>) -> tensor<10x4xf32>`
  }];
  let arguments = (ins Variadic<Nn_Tensor>:$inputs, I64Attr:$dim);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$inputs `dim` $dim attr-dict `:` functional-type(operands, results)";
}

def Nn_SliceOp : Nn_Op<"slice", [Nn_Differentiable, Nn_Form<"Movement">, Nn_InferTypes, Nn_KeepsNumbers, Nn_MovesDims, Nn_Reorder, Nn_Stack, Nn_Gentle, Nn_OwnPartition]> {
  let summary = "every step-th element from start, size of them, per dim";
  let description = [{
    Result element i of a dim is operand element `start + i * step`; steps may be negative.

    Constraints: (C1) one start, size and step per dim; (C2) steps are not 0, sizes not negative; (C3) first and last
    element are inside.
    Example: `%y = nn.slice %x starts [0, 2] sizes [8, 2] steps [1, 1] : (tensor<8x4xf32>) -> tensor<8x2xf32>`
  }];
  let arguments = (ins Nn_Tensor:$input, DenseI64ArrayAttr:$starts, DenseI64ArrayAttr:$sizes, DenseI64ArrayAttr:$steps);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$input `starts` $starts `sizes` $sizes `steps` $steps attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}

def Nn_SplitOp : Nn_Op<"split", [Nn_Differentiable, Nn_Form<"Movement">, Nn_InferTypes, Nn_KeepsNumbers, Nn_OwnPartition]> {
  let summary = "consecutive parts of a value along a dim, all at once";
  let description = [{
    The results are slices of a value that together are all of it. As one op, ranks exchange the shards of all of them at once.
    The op exists only between annotation (`nn-group-slices`) and partition; the program of one device has slices instead.

    Constraints: (C1) `dim` is in [0, rank); (C2) no part is negative, and together they are the dim.
    Example: `%q:2 = nn.split %x dim 1 parts [1, 3] : (tensor<8x4xf32>) -> (tensor<8x1xf32>, tensor<8x3xf32>)`
  }];
  let arguments = (ins Nn_Tensor:$input, I64Attr:$dim, DenseI64ArrayAttr:$parts);
  let results = (outs Variadic<Nn_Tensor>:$results);
  let assemblyFormat = "$input `dim` $dim `parts` $parts attr-dict `:` functional-type(operands, results)";
}

def Nn_PadMode : I32EnumAttr<"PadMode", "what padding holds", [
    I32EnumAttrCase<"Constant", 0, "constant">, I32EnumAttrCase<"Edge", 1, "edge">,
    I32EnumAttrCase<"Reflect", 2, "reflect">, I32EnumAttrCase<"Wrap", 3, "wrap">]> {
  let cppNamespace = "::cleave::nn";
  let genSpecializedAttr = 0;
}
def Nn_PadModeAttr : EnumAttr<Nn_Dialect, Nn_PadMode, "pad_mode"> { let assemblyFormat = "$value"; }

def Nn_PadOp : Nn_Op<"pad", [Nn_Differentiable, Nn_Form<"Movement">, Nn_InferTypes, Nn_KeepsNumbers, Nn_Reorder, Nn_OwnPartition]> {
  let summary = "elements added before and after, per dim";
  let description = [{
    `value` (a scalar operand, zero where absent) fills in constant mode; edge repeats the border, reflect mirrors
    without it, wrap continues at the other end. Negative amounts (cropping) are imported as nn.slice.

    Constraints: (C1) one low and high amount per dim, not negative; (C2) reflect: amounts below the extent; edge and wrap:
    no padding of an empty dim; (C3) the value is a scalar of the input's element type.
    Example: `%y = nn.pad constant %x low [0, 1] high [0, 1] : (tensor<8x4xf32>) -> tensor<8x6xf32>`
  }];
  let arguments = (ins Nn_PadModeAttr:$mode, Nn_Tensor:$input, Optional<Nn_Tensor>:$value, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "`` $mode $input (`value` $value^)? `low` $low `high` $high attr-dict `:` functional-type(operands, results)";
}

def Nn_RotateOp : Nn_Op<"rotate", [Nn_Differentiable, Nn_Form<"Movement">, Nn_InferTypes, Nn_KeepsNumbers, Nn_OwnPartition]> {
  let summary = "elements shifted along a dim; those that leave come back at the other end";
  let description = [{
    Result element i is operand element `(i + amount) mod size`.

    Constraints: (C1) `dim` is in [0, rank); (C2) `amount` is in [0, size).
    Example: `%y = nn.rotate %x dim 0 by 1 : (tensor<8x4xf32>) -> tensor<8x4xf32>`
  }];
  let arguments = (ins Nn_Tensor:$input, I64Attr:$dim, I64Attr:$amount);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$input `dim` $dim `by` $amount attr-dict `:` functional-type(operands, results)";
}

def Nn_TriluOp : Nn_Op<"trilu", [Nn_Differentiable, Nn_Form<"Map">, Nn_Slope<"Constant">, Nn_InferTypes, Nn_OwnPartition]> {
  let summary = "upper or lower triangle of the last two dims, zeros elsewhere";
  let description = [{
    Keeps (i, j) with `j - i >= offset` (upper) or `j - i <= offset` (lower).

    Constraints: (C1) at least 2 dims.
    Example: `%y = nn.trilu %x offset 1 upper : (tensor<8x8xf32>) -> tensor<8x8xf32>`
  }];
  let arguments = (ins Nn_Tensor:$input, I64Attr:$offset, UnitAttr:$upper);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$input `offset` $offset (`upper` $upper^)? attr-dict `:` functional-type(operands, results)";
}

#endif // CLEAVE_NN_OPS_MOVEMENT
