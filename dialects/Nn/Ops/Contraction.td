//===- Contraction.td - the one contraction ---------------------*- tablegen -*-===//
#ifndef CLEAVE_NN_OPS_CONTRACTION
#define CLEAVE_NN_OPS_CONTRACTION

include "NnBase.td"

def Nn_EinsumOp : Nn_Op<"einsum", [Nn_Differentiable, Nn_SumForm<"Contraction">, Nn_Slope<"Constant">, Nn_InferTypes, Nn_Laborious, Nn_Stack, Nn_OwnPartition]> {
  let summary = "sum of products over named dims";
  let description = [{
    One letter per dim; letters that the result lacks are summed over. The equation is the op's sharding rule.
    f16 and bf16 are summed in f32, integers in their own type (or in `i32`/`i64` where operands were cast before).

    Constraints: (C1) one comma-separated term of ASCII letters per operand, `->`, one term for the result; (C2) a term
    has as many letters as its tensor has dims; (C3) dims of one letter have one size, or size 1, which repeats; (C4)
    every result letter occurs in an operand, once in the result; (C5) no letter twice in one operand; (C6) one element type.
    Example: `%c = nn.einsum %a, %b "bik,bkj->bij" : (tensor<2x4x8xf32>, tensor<2x8x4xf32>) -> tensor<2x4x4xf32>`
  }];
  let arguments = (ins Variadic<Nn_NumberTensor>:$inputs, StrAttr:$equation);
  let results = (outs Nn_NumberTensor:$result);
  let assemblyFormat = "$inputs $equation attr-dict `:` functional-type(operands, results)";
}

#endif // CLEAVE_NN_OPS_CONTRACTION
