//===- Conversion.td - between element types --------------------*- tablegen -*-===//
#ifndef CLEAVE_NN_OPS_CONVERSION
#define CLEAVE_NN_OPS_CONVERSION

include "NnBase.td"

def Nn_CastOp : Nn_Op<"cast", [Nn_Elementwise, Nn_KeepsNumbers, Nn_ClonePartition]> {
  let summary = "conversion to the element type of the result";
  let description = [{
    Floats round to nearest even, floats to integers truncate toward zero, numbers to bool test for zero. With
    `saturate`, what is out of range takes the nearest value in range.

    Constraints: (C1) operand and result have one shape.
    Example: `%y = nn.cast %x : (tensor<8xi64>) -> tensor<8xf32>`
  }];
  let arguments = (ins Nn_Tensor:$input, UnitAttr:$saturate);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Nn_QuantizeOp : Nn_Op<"quantize", [Nn_Form<"Map">, Nn_ClonePartition]> {
  let summary = "`saturate(round(x / scale) + zero_point)`";
  let description = [{
    `scale` and `zero_point` are scalars, or vectors along `dim`. Halves round to even.

    Constraints: (C1) the scale is a scalar or as long as dim `dim`; (C2) the zero point, where given, has the scale's
    shape and the result's element type; (C3) operand and result have one shape.
    Example: `%q = nn.quantize %x, %s dim 1 : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xi8>`
  }];
  let arguments = (ins Nn_NumberTensor:$input, Nn_FloatTensor:$scale, Optional<Nn_IntegerTensor>:$zeroPoint, I64Attr:$dim);
  let results = (outs Nn_IntegerTensor:$result);
  let assemblyFormat = "$input `,` $scale (`,` $zeroPoint^)? `dim` $dim attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Nn_DequantizeOp : Nn_Op<"dequantize", [Nn_Form<"Map">, Nn_ClonePartition]> {
  let summary = "`(x - zero_point) * scale`";
  let description = [{
    `scale` and `zero_point` are scalars, or vectors along `dim`.

    Constraints: as nn.quantize, with the zero point of the operand's element type.
    Example: `%x = nn.dequantize %q, %s dim 1 : (tensor<8x4xi8>, tensor<4xf32>) -> tensor<8x4xf32>`
  }];
  let arguments = (ins Nn_IntegerTensor:$input, Nn_FloatTensor:$scale, Optional<Nn_IntegerTensor>:$zeroPoint, I64Attr:$dim);
  let results = (outs Nn_FloatTensor:$result);
  let assemblyFormat = "$input `,` $scale (`,` $zeroPoint^)? `dim` $dim attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

#endif // CLEAVE_NN_OPS_CONVERSION
