//===- Attention.td - attention as one op -----------------------*- tablegen -*-===//
#ifndef CLEAVE_NN_OPS_ATTENTION
#define CLEAVE_NN_OPS_ATTENTION

include "NnBase.td"

def Nn_AttentionOp : Nn_Op<"attention", [Nn_Differentiable, Nn_Form<"Attention">, Nn_InferTypes, Nn_Laborious, Nn_OwnPartition]> {
  let summary = "`softmax(q k^T * scale + mask) v` per head";
  let description = [{
    `query` [batch, heads, sequence, size], `key` [batch, kvHeads, keySequence, size], `value` [batch, kvHeads,
    keySequence, valueSize]; heads are `kvHeads` groups of equal size (grouped-query attention). `mask` broadcasts to
    [batch, heads, sequence, keySequence]: bool (false = excluded) or added as a number. `causal`: query position i
    sees key positions up to i + causalOffset. `left` and `right`, where given: it sees key positions from
    i + causalOffset - left on, and up to i + causalOffset + right. So a window of w, where a token sees itself and w - 1
    before it, is `causal {left = w - 1}`.

    `softcap`, where positive: scores become `softcap * tanh(s / softcap)`. A query that sees nothing gives zeros. Scores and
    softmax are computed in f32 (f64 for f64).

    Constraints: (C1) ranks and sizes as above; (C2) kvHeads divides heads; (C3) the mask broadcasts; (C4) query, key and
    value have one element type; (C5) `left` and `right` are not negative, and `right` is not given with `causal`, which is
    a `right` of 0.
    Example: `%y = nn.attention %q, %k, %v scale 0.125 causal : (...) -> tensor<2x8x16x64xf32>`
  }];
  let arguments = (ins Nn_FloatTensor:$query, Nn_FloatTensor:$key, Nn_FloatTensor:$value, Optional<Nn_PlainTensor>:$mask,
                       F64Attr:$scale, UnitAttr:$causal, DefaultValuedAttr<I64Attr, "0">:$causalOffset,
                       DefaultValuedAttr<F64Attr, "0.0">:$softcap, OptionalAttr<I64Attr>:$left, OptionalAttr<I64Attr>:$right);
  let results = (outs Nn_FloatTensor:$result);
  let assemblyFormat = "$query `,` $key `,` $value (`mask` $mask^)? `scale` $scale (`causal` $causal^)? attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = [{
    /// The keys that each query sees of those that the mask leaves.
    KeyBand getBand();
  }];
}

def Nn_RotaryEmbeddingOp : Nn_Op<"rotary_embedding", [Nn_Differentiable, Nn_Form<"Movement">, Nn_OwnGradientReads, Nn_InferTypes, Nn_ClonePartition]> {
  let summary = "rotary position embedding of the last dim";
  let description = [{
    `input` [batch, heads, sequence, size]; `cos` and `sin` [batch or 1, sequence, rotated / 2]. The first `rotated` elements
    of the last dim are rotated in pairs: (i, i + rotated/2), or (2i, 2i + 1) where `interleaved`; the others stay.

    Constraints: (C1) ranks and sizes as above; (C2) `rotated` is even and at most size.
    Example: `%y = nn.rotary_embedding %x, %c, %s rotated 64 : (...) -> tensor<2x8x16x64xf32>`
  }];
  let arguments = (ins Nn_FloatTensor:$input, Nn_FloatTensor:$cos, Nn_FloatTensor:$sin, I64Attr:$rotated, UnitAttr:$interleaved);
  let results = (outs Nn_FloatTensor:$result);
  let assemblyFormat = "$input `,` $cos `,` $sin `rotated` $rotated (`interleaved` $interleaved^)? attr-dict `:` functional-type(operands, results)";
}

#endif // CLEAVE_NN_OPS_ATTENTION
