//===- Recurrence.td - recurrent nets, each as one op -----------*- tablegen -*-===//
#ifndef CLEAVE_NN_OPS_RECURRENCE
#define CLEAVE_NN_OPS_RECURRENCE

include "NnBase.td"

def Nn_RecurrenceKind : I32EnumAttr<"RecurrenceKind", "what a recurrence does in a step", [
    I32EnumAttrCase<"Lstm", 0, "lstm">, I32EnumAttrCase<"Gru", 1, "gru">, I32EnumAttrCase<"Rnn", 2, "rnn">]> {
  let cppNamespace = "::cleave::nn";
  let genSpecializedAttr = 0;
}
def Nn_RecurrenceKindAttr : EnumAttr<Nn_Dialect, Nn_RecurrenceKind, "recurrence_kind"> { let assemblyFormat = "$value"; }

def Nn_RecurrenceOp : Nn_Op<"recurrence", [Nn_Differentiable, Nn_Form<"Recurrence">, AttrSizedOperandSegments, Nn_InferTypes, Nn_Laborious, Nn_OwnPartition]> {
  let summary = "the steps of an LSTM, GRU or simple recurrent net";
  let description = [{
    The projection of the input is computed before, for all steps at once: `projected` [steps, directions, batch, gates, hidden]
    is `W x + b` of each gate. `weight` [directions, gates, hidden, hidden] is the weight of each gate for the state h of the
    previous step:

        p_g = projected[t]_g + weight_g h     (each gate)
        lstm   gates i, o, f, c:   i = a0(p_i + peep_i c)   f = a0(p_f + peep_f c)   c' = f c + i a1(p_c)
                                   o = a0(p_o + peep_o c')  h' = o a2(c')            inputForget: f = 1 - i
        gru    gates z, r, h:      z = a0(p_z)   r = a0(p_r)   n = a1(projected_h + weight_h (r h))   h' = (1 - z) n + z h
                                   linearBeforeReset: n = a1(projected_h + r (weight_h h + bias))
        rnn    one gate:           h' = a0(p)

    All directions run from step 0 on; for a direction that runs from the end, the importer reverses its input and its results.
    `initial`: h, and of an lstm c, [directions, batch, hidden]. `peepholes` [directions, 3, hidden] for i, o, f. `lengths`
    [batch]: steps of each sample; after them results are 0 and states stay. `clip`, where positive, bounds the inputs of the
    gates' activations. `alphas` and `betas` are the parameters of activations, 0 for those without. `startsFromZeros` says that
    the first h is zeros, so that an lstm of one step multiplies nothing; canonicalization sets it.

    Results: h of all steps, [steps, directions, batch, hidden]; then h, and of an lstm c, after the last step.

    Constraints: (C1) shapes as above, with at least one step, and floats of one type; (C2) `initial` has as many tensors as the
    kind has states; (C3) `bias` is given if and only if linearBeforeReset is, `peepholes` for an lstm only; (C4) one known
    activation, alpha and beta for each that the formula names; (C5) with `startsFromZeros`, if the initial h is a constant of
    one number, that number is zero.
    Where the hidden dim is sharded, states are gathered in each step.
    Example: `%y:2 = nn.recurrence rnn %p, %w initial (%h) activations ["tanh"] alphas [0.0] betas [0.0] : (...) -> (tensor<5x1x2x8xf32>, tensor<1x2x8xf32>)`
  }];
  let arguments = (ins Nn_RecurrenceKindAttr:$kind, Nn_FloatTensor:$projected, Nn_FloatTensor:$weight, Variadic<Nn_FloatTensor>:$initial,
                       Optional<Nn_FloatTensor>:$bias, Optional<Nn_FloatTensor>:$peepholes, Optional<Nn_IndexTensor>:$lengths,
                       StrArrayAttr:$activations, DenseF64ArrayAttr:$alphas, DenseF64ArrayAttr:$betas,
                       DefaultValuedAttr<F64Attr, "0.0">:$clip, UnitAttr:$inputForget, UnitAttr:$linearBeforeReset,
                       UnitAttr:$startsFromZeros);
  let results = (outs Nn_FloatTensor:$sequence, Variadic<Nn_FloatTensor>:$last);
  let assemblyFormat = "$kind $projected `,` $weight `initial` `(` $initial `)` (`bias` $bias^)? (`peepholes` $peepholes^)? (`lengths` $lengths^)? `activations` $activations `alphas` custom<Reals>($alphas) `betas` custom<Reals>($betas) attr-dict `:` functional-type(operands, results)";
  let hasCanonicalizeMethod = 1;
  let extraClassDeclaration = [{
    /// True for an lstm of one step from a hidden state of zeros: nothing is multiplied. So ops that multiply in a way of their own use the
    /// gates of a step.
    bool multipliesNothing() { return getStartsFromZeros() && getKind() == RecurrenceKind::Lstm && getSteps() == 1; }
    /// Extents, by name.
    int64_t getSteps() { return getProjected().getType().getDimSize(0); }
    int64_t getDirections() { return getProjected().getType().getDimSize(1); }
    int64_t getBatch() { return getProjected().getType().getDimSize(2); }
    int64_t getGates() { return getProjected().getType().getDimSize(3); }
    int64_t getHidden() { return getProjected().getType().getDimSize(4); }
  }];
}

#endif // CLEAVE_NN_OPS_RECURRENCE
