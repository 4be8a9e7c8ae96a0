//===- Conversion.td - between element types --------------------*- tablegen -*-===//
#ifndef CLEAVE_NN_OPS_CONVERSION
#define CLEAVE_NN_OPS_CONVERSION

include "NnBase.td"

def Nn_Rounding : I32EnumAttr<"Rounding", "to which neighbor a number is rounded", [
    I32EnumAttrCase<"Nearest", 0, "nearest">, I32EnumAttrCase<"Up", 1, "up">, I32EnumAttrCase<"Down", 2, "down">]> {
  let cppNamespace = "::cleave::nn";
  let genSpecializedAttr = 0;
}
def Nn_RoundingAttr : EnumAttr<Nn_Dialect, Nn_Rounding, "rounding"> { let assemblyFormat = "$value"; }

def Nn_CastOp : Nn_Op<"cast", [Nn_Differentiable, Nn_Elementwise, Nn_KeepsNumbers, Nn_ConvertsNumbers, Nn_MovesDims, Nn_Gentle, Nn_ClonePartition]> {
  let summary = "conversion to the element type of the result";
  let description = [{
    Floats round to nearest even, floats to integers truncate toward zero, numbers to bool test for zero. With
    `saturate`, a number out of range becomes the nearest value in range; so does infinity where the result is a float of
    8 bits. Without it, an integer keeps its low bits, and a float becomes infinite, or NaN in types without infinities. A
    float of 4 bits, which has neither, always saturates, and its NaN is -0.
    `f8E8M0FNU` has only powers of two: numbers lose their sign, and `rounding` says to which neighbor they round, the larger
    (`up`), the smaller (`down`) or the nearest; 0 becomes the least.
    With `bits`, the result is the operand's low bits, unchanged.

    Constraints: (C1) operand and result have one shape; (C2) only a result of `f8E8M0FNU` has a rounding; (C3) `bits` needs an
    operand of `ui8` and result elements of at most 8 bits.
    Example: `%y = nn.cast %x : (tensor<8xi64>) -> tensor<8xf32>`
  }];
  let arguments = (ins Nn_Tensor:$input, UnitAttr:$saturate, DefaultValuedAttr<Nn_RoundingAttr, "::cleave::nn::Rounding::Nearest">:$rounding, UnitAttr:$bits);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$input (`rounding` $rounding^)? (`bits` $bits^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Nn_BitcastOp : Nn_Op<"bitcast", [Nn_NotDifferentiable<"it reads the bits of a number">, Nn_Elementwise, Nn_ClonePartition]> {
  let summary = "the bits of each element as an element of another type";
  let description = [{
    No number is converted: the bits of `f32` 1.0 are `i32` 0x3f800000. A bool is a byte here, 0 or 1; a byte other than 0
    becomes true.

    Constraints: (C1) operand and result have one shape; (C2) their elements are equally wide, and a multiple of 8 bits.
    Example: `%y = nn.bitcast %x : (tensor<8xf32>) -> tensor<8xi32>`
  }];
  let arguments = (ins Nn_Tensor:$input);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Nn_QuantizeOp : Nn_Op<"quantize", [Nn_NoGradient, Nn_Form<"Map">, Nn_ClonePartition]> {
  let summary = "`saturate(round(x / scale) + zero_point)`";
  let description = [{
    `scale` and `zero_point` are scalars, vectors along `dim`, or, with `block`, tensors with one element for `block` elements
    along `dim`; the last block may have fewer. Halves round to even. Floats of 8 and 4 bits are rounded to directly. With
    `overflow` a number beyond their range becomes infinite or NaN, as in nn.cast without `saturate`.

    Constraints: (C1) the scale is a scalar, as long as dim `dim`, or has one element per block; (C2) the zero point, where
    given, has the scale's shape and the result's element type; (C3) operand and result have one shape.
    Example: `%q = nn.quantize %x, %s dim 1 : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xi8>`
  }];
  let arguments = (ins Nn_NumberTensor:$input, Nn_FloatTensor:$scale, Optional<Nn_QuantizedTensor>:$zeroPoint, I64Attr:$dim,
    DefaultValuedAttr<I64Attr, "0">:$block, UnitAttr:$overflow);
  let results = (outs Nn_QuantizedTensor:$result);
  let assemblyFormat = "$input `,` $scale (`,` $zeroPoint^)? `dim` $dim (`block` $block^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Nn_DequantizeOp : Nn_Op<"dequantize", [Nn_Differentiable, Nn_Form<"Map">, Nn_ConvertsNumbers, Nn_Stack, Nn_ClonePartition]> {
  let summary = "`(x - zero_point) * scale`";
  let description = [{
    `scale` and `zero_point` are as those of nn.quantize.

    Constraints: as nn.quantize, with the zero point of the operand's element type.
    Example: `%x = nn.dequantize %q, %s dim 1 : (tensor<8x4xi8>, tensor<4xf32>) -> tensor<8x4xf32>`
  }];
  let arguments = (ins Nn_QuantizedTensor:$input, Nn_FloatTensor:$scale, Optional<Nn_QuantizedTensor>:$zeroPoint, I64Attr:$dim,
    DefaultValuedAttr<I64Attr, "0">:$block);
  let results = (outs Nn_FloatTensor:$result);
  let assemblyFormat = "$input `,` $scale (`,` $zeroPoint^)? `dim` $dim (`block` $block^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

#endif // CLEAVE_NN_OPS_CONVERSION
