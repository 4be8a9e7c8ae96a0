//===- Normalization.td - norms, each as one op -----------------*- tablegen -*-===//
#ifndef CLEAVE_NN_OPS_NORMALIZATION
#define CLEAVE_NN_OPS_NORMALIZATION

include "NnBase.td"

def Nn_LayerNormOp : Nn_Op<"layer_norm", [Nn_Differentiable, Nn_RowForm<"::cleave::nn::getDimsFrom(getInput(), getDim())">, AttrSizedOperandSegments, Nn_InferTypes, Nn_OwnPartition]> {
  let summary = "`(x - mean) / sqrt(variance + epsilon) * scale + bias` over the dims from `dim` on";
  let description = [{
    Mean and (biased) variance are over all dims from `dim` to the last, computed in f32 (f64 for f64).

    Constraints: (C1) `dim` is in [0, rank); (C2) scale and bias broadcast to the dims from `dim` on.
    Sharded over normalized dims: the two moments are all-reduced.
    Example: `%y = nn.layer_norm %x, %s, %b dim 1 epsilon 1.0e-5 : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<8x4xf32>`
  }];
  let arguments = (ins Nn_FloatTensor:$input, Optional<Nn_FloatTensor>:$scale, Optional<Nn_FloatTensor>:$bias, I64Attr:$dim, F64Attr:$epsilon);
  let results = (outs Nn_FloatTensor:$result);
  let assemblyFormat = "$input (`,` $scale^)? (`bias` $bias^)? `dim` $dim `epsilon` $epsilon attr-dict `:` functional-type(operands, results)";
}

def Nn_RmsNormOp : Nn_Op<"rms_norm", [Nn_Differentiable, Nn_RowForm<"::cleave::nn::getDimsFrom(getInput(), getDim())">, Nn_InferTypes, Nn_OwnPartition]> {
  let summary = "`x / sqrt(mean(x^2) + epsilon) * scale` over the dims from `dim` on";
  let description = [{
    Constraints: as nn.layer_norm.
    Sharded over normalized dims: the sum of squares is all-reduced.
    Example: `%y = nn.rms_norm %x, %s dim 1 epsilon 1.0e-5 : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>`
  }];
  let arguments = (ins Nn_FloatTensor:$input, Optional<Nn_FloatTensor>:$scale, I64Attr:$dim, F64Attr:$epsilon);
  let results = (outs Nn_FloatTensor:$result);
  let assemblyFormat = "$input (`,` $scale^)? `dim` $dim `epsilon` $epsilon attr-dict `:` functional-type(operands, results)";
}

def Nn_BatchNormOp : Nn_Op<"batch_norm", [Nn_Differentiable, Nn_Form<"Map">, Nn_ChannelsSecond, Nn_InferTypes, Nn_ClonePartition]> {
  let summary = "`(x - mean) / sqrt(variance + epsilon) * scale + bias` with given statistics per channel (dim 1)";
  let description = [{
    Constraints: (C1) the input has at least 2 dims; (C2) scale, bias, mean and variance are vectors as long as dim 1.
    Example: `%y = nn.batch_norm %x, %s, %b, %m, %v epsilon 1.0e-5 : (...) -> tensor<2x3x8x8xf32>`
  }];
  let arguments = (ins Nn_FloatTensor:$input, Nn_FloatTensor:$scale, Nn_FloatTensor:$bias, Nn_FloatTensor:$mean,
                       Nn_FloatTensor:$variance, F64Attr:$epsilon);
  let results = (outs Nn_FloatTensor:$result);
  let assemblyFormat = "$input `,` $scale `,` $bias `,` $mean `,` $variance `epsilon` $epsilon attr-dict `:` functional-type(operands, results)";
}

def Nn_GroupNormOp : Nn_Op<"group_norm", [Nn_Differentiable, Nn_RowForm<"::cleave::nn::getDimsFrom(getInput(), 1)">, Nn_ChannelsSecond, Nn_InferTypes, Nn_OwnPartition]> {
  let summary = "normalized per sample and group of channels (dim 1)";
  let description = [{
    Mean and (biased) variance over the channels of a group and all spatial dims; scale and bias are per channel.
    One channel a group is instance normalization.

    Constraints: (C1) the input has at least 3 dims; (C2) `groups` divides dim 1; (C3) scale and bias are vectors as
    long as dim 1.
    Example: `%y = nn.group_norm %x, %s, %b groups 2 epsilon 1.0e-5 : (...) -> tensor<2x4x8x8xf32>`
  }];
  let arguments = (ins Nn_FloatTensor:$input, Nn_FloatTensor:$scale, Nn_FloatTensor:$bias, I64Attr:$groups, F64Attr:$epsilon);
  let results = (outs Nn_FloatTensor:$result);
  let extraClassDeclaration = "int64_t getNumRows() { return getInput().getType().getDimSize(0) * getGroups(); }";
  let assemblyFormat = "$input `,` $scale `,` $bias `groups` $groups `epsilon` $epsilon attr-dict `:` functional-type(operands, results)";
}

def Nn_LrnOp : Nn_Op<"lrn", [Nn_Differentiable, Nn_Form<"Window">, Nn_ChannelsSecond, Nn_InferTypes, Nn_Laborious, Nn_OwnPartition]> {
  let summary = "local response normalization over neighboring channels (dim 1)";
  let description = [{
    `x / (k + alpha / size * sum of squares of the size channels around)^beta`.

    Constraints: (C1) the input has at least 2 dims; (C2) `size` is positive.
    Example: `%y = nn.lrn %x size 5 alpha 1.0e-4 beta 0.75 k 1.0 : (tensor<2x8x4x4xf32>) -> tensor<2x8x4x4xf32>`
  }];
  let arguments = (ins Nn_FloatTensor:$input, I64Attr:$size, F64Attr:$alpha, F64Attr:$beta, F64Attr:$k);
  let results = (outs Nn_FloatTensor:$result);
  let assemblyFormat = "$input `size` $size `alpha` $alpha `beta` $beta `k` $k attr-dict `:` functional-type(operands, results)";
}

#endif // CLEAVE_NN_OPS_NORMALIZATION
