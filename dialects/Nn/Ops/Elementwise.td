//===- Elementwise.td - one element at a time -------------------*- tablegen -*-===//
//
// Operands broadcast against each other as in numpy: aligned at the minor dim, a dim of size 1 repeats.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_NN_OPS_ELEMENTWISE
#define CLEAVE_NN_OPS_ELEMENTWISE

include "NnBase.td"

class Nn_Unary<string mnemonic, Type type, string formula, Trait infer = Nn_InferElementwise, Trait kind = Nn_Pointwise, list<Trait> traits = [], Trait gradient = Nn_Differentiable>
    : Nn_Op<mnemonic, !listconcat(traits, [kind, infer, Nn_ClonePartition, gradient])> {
  let summary = formula;
  let description = formula # ", per element.\n\nExample: `%y = nn." # mnemonic # " %x : (tensor<8xf32>) -> tensor<8xf32>`";
  let arguments = (ins type:$input);
  let results = (outs type:$result);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
}
// Elementwise tests of numbers.
class Nn_UnaryTest<string mnemonic, Type type, string formula> : Nn_Unary<mnemonic, type, formula, Nn_InferElementwiseTest, gradient=Nn_NoGradient> {
  let results = (outs Nn_BoolTensor:$result);
}
class Nn_Binary<string mnemonic, Type type, string formula, list<Trait> traits = [], Trait kind = Nn_Pointwise, Trait infer = Nn_InferElementwise, Trait partition = Nn_ClonePartition, Trait gradient = Nn_Differentiable>
    : Nn_Op<mnemonic, !listconcat(traits, [kind, infer, partition, gradient])> {
  let summary = formula;
  let description = formula # ", per element, with numpy broadcasting.\n\nConstraints: (C1) operands broadcast together; (C2) they have one element type.\nExample: `%z = nn." # mnemonic # " %x, %y : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>`";
  let arguments = (ins type:$lhs, type:$rhs);
  let results = (outs type:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
}
class Nn_Compare<string mnemonic, Type type, string formula> : Nn_Binary<mnemonic, type, formula, infer=Nn_InferElementwiseTest, gradient=Nn_NoGradient> {
  let results = (outs Nn_BoolTensor:$result);
}

//===----------------------------------------------------------------------===//
// Unary
//===----------------------------------------------------------------------===//

def Nn_NegOp : Nn_Unary<"neg", Nn_NumberTensor, "`-x`", kind=Nn_Elementwise, traits=[Nn_Slope<"Constant">]>;
def Nn_AbsOp : Nn_Unary<"abs", Nn_NumberTensor, "`|x|`">;
def Nn_SignOp : Nn_Unary<"sign", Nn_NumberTensor, "-1, 0 or 1 by the sign of `x`", gradient=Nn_NoGradient>;
def Nn_SqrtOp : Nn_Unary<"sqrt", Nn_FloatTensor, "square root", traits=[Nn_Slope<"OfResult">]>;
def Nn_ReciprocalOp : Nn_Unary<"reciprocal", Nn_FloatTensor, "`1 / x`", traits=[Nn_Slope<"OfResult">]>;
def Nn_ExpOp : Nn_Unary<"exp", Nn_FloatTensor, "`e^x`", traits=[Nn_Slope<"OfResult">]>;
def Nn_LogOp : Nn_Unary<"log", Nn_FloatTensor, "natural logarithm">;
def Nn_ErfOp : Nn_Unary<"erf", Nn_FloatTensor, "error function">;
def Nn_SinOp : Nn_Unary<"sin", Nn_FloatTensor, "sin">;
def Nn_CosOp : Nn_Unary<"cos", Nn_FloatTensor, "cos">;
def Nn_TanOp : Nn_Unary<"tan", Nn_FloatTensor, "tan">;
def Nn_AsinOp : Nn_Unary<"asin", Nn_FloatTensor, "asin">;
def Nn_AcosOp : Nn_Unary<"acos", Nn_FloatTensor, "acos">;
def Nn_AtanOp : Nn_Unary<"atan", Nn_FloatTensor, "atan">;
def Nn_SinhOp : Nn_Unary<"sinh", Nn_FloatTensor, "sinh">;
def Nn_CoshOp : Nn_Unary<"cosh", Nn_FloatTensor, "cosh">;
def Nn_TanhOp : Nn_Unary<"tanh", Nn_FloatTensor, "tanh", traits=[Nn_Slope<"OfResult">]>;
def Nn_AsinhOp : Nn_Unary<"asinh", Nn_FloatTensor, "asinh">;
def Nn_AcoshOp : Nn_Unary<"acosh", Nn_FloatTensor, "acosh">;
def Nn_AtanhOp : Nn_Unary<"atanh", Nn_FloatTensor, "atanh">;
def Nn_FloorOp : Nn_Unary<"floor", Nn_FloatTensor, "largest integer not above `x`", gradient=Nn_NoGradient>;
def Nn_CeilOp : Nn_Unary<"ceil", Nn_FloatTensor, "smallest integer not below `x`", gradient=Nn_NoGradient>;
def Nn_RoundOp : Nn_Unary<"round", Nn_FloatTensor, "nearest integer, halves to even", gradient=Nn_NoGradient>;
def Nn_ReluOp : Nn_Unary<"relu", Nn_NumberTensor, "`max(x, 0)`", traits=[Nn_OneInstruction, Nn_Slope<"OfResult">]>;
def Nn_SigmoidOp : Nn_Unary<"sigmoid", Nn_FloatTensor, "`1 / (1 + e^-x)`", traits=[Nn_Slope<"OfResult">]>;
def Nn_SiluOp : Nn_Unary<"silu", Nn_FloatTensor, "`x * sigmoid(x)`">;
def Nn_SoftplusOp : Nn_Unary<"softplus", Nn_FloatTensor, "`log(1 + e^x)`">;
def Nn_BitwiseNotOp : Nn_Unary<"bitwise_not", Nn_IntegerTensor, "all bits inverted", gradient=Nn_NoGradient>;
def Nn_NotOp : Nn_Unary<"not", Nn_BoolTensor, "logical not", gradient=Nn_NoGradient>;
def Nn_IsNanOp : Nn_UnaryTest<"is_nan", Nn_FloatTensor, "true where `x` is not a number">;
def Nn_IsInfOp : Nn_UnaryTest<"is_inf", Nn_FloatTensor, "true where `x` is infinite, of the signs asked for"> {
  let arguments = (ins Nn_FloatTensor:$input, DefaultValuedAttr<BoolAttr, "true">:$positive, DefaultValuedAttr<BoolAttr, "true">:$negative);
}
def Nn_GeluOp : Nn_Unary<"gelu", Nn_FloatTensor, "`x * (1 + erf(x / sqrt 2)) / 2`, or its tanh form"> {
  let arguments = (ins Nn_FloatTensor:$input, DefaultValuedAttr<BoolAttr, "false">:$tanh);
}
def Nn_LeakyReluOp : Nn_Unary<"leaky_relu", Nn_FloatTensor, "`x` where positive, else `alpha * x`"> {
  let arguments = (ins Nn_FloatTensor:$input, F64Attr:$alpha);
}
def Nn_EluOp : Nn_Unary<"elu", Nn_FloatTensor, "`x` where positive, else `alpha * (e^x - 1)`"> {
  let arguments = (ins Nn_FloatTensor:$input, F64Attr:$alpha);
}
def Nn_HardSigmoidOp : Nn_Unary<"hard_sigmoid", Nn_FloatTensor, "`alpha * x + beta`, clamped to [0, 1]"> {
  let arguments = (ins Nn_FloatTensor:$input, F64Attr:$alpha, F64Attr:$beta);
}
def Nn_HardSwishOp : Nn_Unary<"hard_swish", Nn_FloatTensor, "`x * hard_sigmoid(x)` with alpha 1/6 and beta 1/2">;

//===----------------------------------------------------------------------===//
// Binary
//===----------------------------------------------------------------------===//

def Nn_AddOp : Nn_Binary<"add", Nn_NumberTensor, "`x + y`", [Commutative, Nn_OneInstruction, Nn_GentleInSome, Nn_Slope<"Constant">], kind=Nn_Elementwise>;
def Nn_SubOp : Nn_Binary<"sub", Nn_NumberTensor, "`x - y`", [Nn_OneInstruction, Nn_GentleInSome, Nn_Slope<"Constant">], kind=Nn_Elementwise>;
def Nn_MulOp : Nn_Binary<"mul", Nn_NumberTensor, "`x * y`", [Commutative, Nn_OneInstruction, Nn_OwnGradientReads], kind=Nn_Elementwise>;
def Nn_DivOp : Nn_Binary<"div", Nn_NumberTensor, "`x / y`, toward zero for integers", [Nn_OwnGradientReads], kind=Nn_Elementwise, partition=Nn_OwnPartition>;
def Nn_PowOp : Nn_Binary<"pow", Nn_NumberTensor, "`x ^ y`">;
def Nn_MinOp : Nn_Binary<"min", Nn_NumberTensor, "the smaller one; NaN wins", [Commutative, Nn_OneInstruction, Nn_Gentle], kind=Nn_Elementwise>;
def Nn_MaxOp : Nn_Binary<"max", Nn_NumberTensor, "the larger one; NaN wins", [Commutative, Nn_OneInstruction, Nn_Gentle], kind=Nn_Elementwise>;
def Nn_PreluOp : Nn_Binary<"prelu", Nn_NumberTensor, "`x` where not negative, else `x * y`">;
def Nn_BitwiseAndOp : Nn_Binary<"bitwise_and", Nn_IntegerTensor, "bitwise and", [Commutative], gradient=Nn_NoGradient>;
def Nn_BitwiseOrOp : Nn_Binary<"bitwise_or", Nn_IntegerTensor, "bitwise or", [Commutative], gradient=Nn_NoGradient>;
def Nn_BitwiseXorOp : Nn_Binary<"bitwise_xor", Nn_IntegerTensor, "bitwise exclusive or", [Commutative], gradient=Nn_NoGradient>;
def Nn_AndOp : Nn_Binary<"and", Nn_BoolTensor, "logical and", [Commutative], gradient=Nn_NoGradient>;
def Nn_OrOp : Nn_Binary<"or", Nn_BoolTensor, "logical or", [Commutative], gradient=Nn_NoGradient>;
def Nn_XorOp : Nn_Binary<"xor", Nn_BoolTensor, "logical exclusive or", [Commutative], gradient=Nn_NoGradient>;
def Nn_EqOp : Nn_Compare<"eq", Nn_PlainTensor, "`x == y`">;
def Nn_LtOp : Nn_Compare<"lt", Nn_NumberTensor, "`x < y`">;
def Nn_LeOp : Nn_Compare<"le", Nn_NumberTensor, "`x <= y`">;
def Nn_GtOp : Nn_Compare<"gt", Nn_NumberTensor, "`x > y`">;
def Nn_GeOp : Nn_Compare<"ge", Nn_NumberTensor, "`x >= y`">;
def Nn_ModOp : Nn_Binary<"mod", Nn_NumberTensor, "remainder of `x / y`, with the sign of `y`, or of `x` where `truncated` (C fmod)", partition=Nn_OwnPartition> {
  let arguments = (ins Nn_NumberTensor:$lhs, Nn_NumberTensor:$rhs, UnitAttr:$truncated);
}
def Nn_ShiftOp : Nn_Binary<"shift", Nn_IntegerTensor, "`x` shifted by `y` bits to the left, or to the right where `right`", gradient=Nn_NoGradient> {
  let arguments = (ins Nn_IntegerTensor:$lhs, Nn_IntegerTensor:$rhs, UnitAttr:$right);
}

//===----------------------------------------------------------------------===//
// Others
//===----------------------------------------------------------------------===//

def Nn_SelectOp : Nn_Op<"select", [Nn_Differentiable, Nn_Elementwise, Nn_InferSelect, Nn_KeepsNumbers, Nn_ClonePartition]> {
  let summary = "`x` where the condition holds, else `y`";
  let description = [{
    Per element, with numpy broadcasting of all three.

    Constraints: (C1) operands broadcast together; (C2) `x` and `y` have one element type.
    Example: `%z = nn.select %c, %x, %y : (tensor<8xi1>, tensor<8xf32>, tensor<f32>) -> tensor<8xf32>`
  }];
  let arguments = (ins Nn_BoolTensor:$condition, Nn_Tensor:$lhs, Nn_Tensor:$rhs);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$condition `,` $lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
}

#endif // CLEAVE_NN_OPS_ELEMENTWISE
