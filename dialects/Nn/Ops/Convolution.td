//===- Convolution.td - windows over spatial dims ---------------*- tablegen -*-===//
//
// Tensors are [batch, channels, spatial...]. Window attributes have one entry per spatial dim; padding is never negative,
// and may differ before and after.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_NN_OPS_CONVOLUTION
#define CLEAVE_NN_OPS_CONVOLUTION

include "NnBase.td"

def Nn_ConvOp : Nn_Op<"conv", [Nn_Differentiable, Nn_SumForm<"Convolution">, Nn_ChannelsSecond, Nn_InferTypes, Nn_Laborious, Nn_OwnPartition]> {
  let summary = "convolution (cross-correlation) with optional bias";
  let description = [{
    `weight` is [channels out, channels in / groups, kernel...]; `bias` one number per output channel.

    Constraints: (C1) input and weight have one rank, at least 3; (C2) groups divides both channel counts, and dim 1 of
    the weight is channels in / groups; (C3) window attributes have one positive entry (paddings: not negative) per
    spatial dim; (C4) the window fits into the padded input; (C5) the bias is a vector of channels out;
    (C6) all operands have one element type.
    Example: `%y = nn.conv %x, %w strides [2, 2] pads_low [1, 1] pads_high [1, 1] dilations [1, 1] groups 1 : (...) -> tensor<2x8x16x16xf32>`
  }];
  let arguments = (ins Nn_NumberTensor:$input, Nn_NumberTensor:$weight, Optional<Nn_NumberTensor>:$bias, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$padsLow, DenseI64ArrayAttr:$padsHigh, DenseI64ArrayAttr:$dilations, I64Attr:$groups);
  let results = (outs Nn_NumberTensor:$result);
  let assemblyFormat = [{$input `,` $weight (`,` $bias^)? `strides` $strides `pads_low` $padsLow `pads_high` $padsHigh
                         `dilations` $dilations `groups` $groups attr-dict `:` functional-type(operands, results)}];
}

def Nn_ConvTransposeOp : Nn_Op<"conv_transpose", [Nn_Differentiable, Nn_SumForm<"Convolution">, Nn_ChannelsSecond, Nn_InferTypes, Nn_Laborious, Nn_OwnPartition]> {
  let summary = "transposed convolution with optional bias";
  let description = [{
    `weight` is [channels in, channels out / groups, kernel...]. Result extent = stride * (n - 1) + output padding +
    dilation * (kernel - 1) + 1 - pads.

    Constraints: as nn.conv, with the weight's dims as above and, for (C4), result extents positive.
    Example: `%y = nn.conv_transpose %x, %w strides [2] pads_low [0] pads_high [0] dilations [1] output_pads [0] groups 1 : (...) -> tensor<2x8x16xf32>`
  }];
  let arguments = (ins Nn_FloatTensor:$input, Nn_FloatTensor:$weight, Optional<Nn_FloatTensor>:$bias, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$padsLow, DenseI64ArrayAttr:$padsHigh, DenseI64ArrayAttr:$dilations,
                       DenseI64ArrayAttr:$outputPads, I64Attr:$groups);
  let results = (outs Nn_FloatTensor:$result);
  let assemblyFormat = [{$input `,` $weight (`,` $bias^)? `strides` $strides `pads_low` $padsLow `pads_high` $padsHigh
                         `dilations` $dilations `output_pads` $outputPads `groups` $groups attr-dict `:` functional-type(operands, results)}];
}

def Nn_PoolKind : I32EnumAttr<"PoolKind", "what a window computes", [
    I32EnumAttrCase<"Max", 0, "max">, I32EnumAttrCase<"Average", 1, "average">, I32EnumAttrCase<"Lp", 2, "lp">]> {
  let cppNamespace = "::cleave::nn";
  let genSpecializedAttr = 0;
}
def Nn_PoolKindAttr : EnumAttr<Nn_Dialect, Nn_PoolKind, "pool_kind"> { let assemblyFormat = "$value"; }

def Nn_PoolOp : Nn_Op<"pool", [Nn_Differentiable, Nn_Form<"Window">, Nn_ChannelsSecond, Nn_InferTypes, Nn_Laborious, Nn_OwnPartition]> {
  let summary = "maximum, average or p-norm over windows";
  let description = [{
    Padding is never the maximum and adds nothing; `count_pads` makes it count in an average. With `ceil` the last window
    may extend beyond the padded end, if it does not start beyond the input and its low padding.

    Constraints: (C1) the input has at least 3 dims; (C2) window attributes as nn.conv; (C3) the window fits into
    the padded input; (C4) `p` is positive.
    Example: `%y = nn.pool max %x kernel [2, 2] strides [2, 2] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] : (...) -> tensor<2x3x8x8xf32>`
  }];
  let arguments = (ins Nn_PoolKindAttr:$kind, Nn_NumberTensor:$input, DenseI64ArrayAttr:$kernel, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$padsLow, DenseI64ArrayAttr:$padsHigh, DenseI64ArrayAttr:$dilations,
                       UnitAttr:$countPads, UnitAttr:$ceil, DefaultValuedAttr<I64Attr, "2">:$p);
  let results = (outs Nn_NumberTensor:$result);
  let assemblyFormat = [{$kind $input `kernel` $kernel `strides` $strides `pads_low` $padsLow `pads_high` $padsHigh
                         `dilations` $dilations (`count_pads` $countPads^)? (`ceil` $ceil^)? attr-dict `:` functional-type(operands, results)}];
}

#endif // CLEAVE_NN_OPS_CONVOLUTION
