//===- NnPasses.td - recomposition and canonical form -----------*- tablegen -*-===//
//
// The passes are in the order in which the pipeline runs them. They run before sharding annotations are in types. A value that a
// plan names has an `spmd.pin`, and no pass here looks through one.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_NN_PASSES
#define CLEAVE_NN_PASSES

include "mlir/Pass/PassBase.td"

def NnInlineCalls : Pass<"nn-inline-calls", "::mlir::ModuleOp"> {
  let summary = "puts the bodies of functions where they are called";
  let description = [{
    Shardings are decided for one function at a time, so this pass removes calls first: every `func.call` becomes the body of
    its callee, with its types, sharding annotations and locations, and private functions that were called are removed. A
    name inside of a function that is called twice then means two tensors. Recursion, a callee without a body or with control
    flow, and more than a million ops are errors.

    Before: `%y = func.call @f(%x)` with `func.func private @f(%a) { return nn.exp %a }`. After: `%y = nn.exp %x`.
  }];
}

def NnRestoreNodes : Pass<"nn-restore-nodes", "::mlir::ModuleOp"> {
  let summary = "gives ops without a location the one of their node";
  let description = [{
    Rewrites keep the names of nodes and tensors in locations. Where locations have been lost (`-strip-debuginfo`), the pass
    restores them from the attributes `nn.node`.

    Before: `nn.exp %x {nn.node = #n} loc(unknown)`. After: `nn.exp %x {nn.node = #n} loc(#n)`.
  }];
}

def NnStoreNodes : Pass<"nn-store-nodes", "::mlir::ModuleOp"> {
  let summary = "keeps the node of each op in an attribute";
  let description = [{
    The pass is the last step of rewriting: it stores the names of nodes and tensors in locations as the attribute `nn.node`.
    A plan refers to these names.

    Before: `nn.exp %x loc(#n)`. After: `nn.exp %x {nn.node = #n} loc(#n)`.
  }];
}

def NnRecompose : Pass<"nn-recompose", "::mlir::ModuleOp"> {
  let summary = "puts together what exporters take apart";
  let description = [{
    Layer and RMS normalization written as means and square roots, Gelu (erf and tanh form) and SiLU become one op each,
    so that each can be sharded and lowered as one op.

    Before: `%y = nn.mul %x, %s` with `%s = nn.sigmoid %x`. After: `%y = nn.silu %x`.
  }];
  let dependentDialects = ["::cleave::nn::NnDialect"];
}

def NnMergeEqual : Pass<"nn-merge-equal", "::mlir::ModuleOp"> {
  let summary = "merges equal ops and removes unused ones";
  let description = [{
    Exporters compute the mean of a norm twice and repeat constants; the solver would count, and shard, each of them.
    Locations are not compared: the first op's names stay.

    Before: `%a = nn.exp %x; %b = nn.exp %x; nn.add %a, %b`. After: `%a = nn.exp %x; nn.add %a, %a`.
  }];
}

def NnFoldPads : Pass<"nn-fold-pads", "::mlir::ModuleOp"> {
  let summary = "zeros padded before a convolution become its padding; pad and crop become nn.rotate";
  let description = [{
    Exporters write padding that differs between the two sides, and layers for padding, as an op of its own. A shift by a step in
    time is padded at one end and cropped at the other.

    Before: `nn.pad constant %x low [0, 0, 0, 0] high [0, 0, 1, 1]` and `nn.conv %p, %w .. pads_low [0, 0] pads_high [0, 0]`.
    After: `nn.conv %x, %w .. pads_low [0, 0] pads_high [1, 1]`.

    Before: the first 7 of 8 positions, and `nn.pad constant %s low [1] high [0]`. After: `nn.rotate %x dim 0 by 7`, and an `nn.select` of
    zero for the first position.
  }];
  let dependentDialects = ["::cleave::nn::NnDialect"];
}

def NnFuseRotations : Pass<"nn-fuse-rotations", "::mlir::ModuleOp"> {
  let summary = "slice + slice + concat of one value becomes nn.rotate";
  let description = [{
    Windowed attention and rolled inputs are exported as the concatenation of a tail and a head.

    Before: `nn.concat %tail, %head dim 0`, both slices of `%x` at 1. After: `nn.rotate %x dim 0 by 1`.
  }];
  let dependentDialects = ["::cleave::nn::NnDialect"];
}

def NnFoldIotaGathers : Pass<"nn-fold-iota-gathers", "::mlir::ModuleOp"> {
  let summary = "lookups with constant indices in steps become slices and broadcasts";
  let description = [{
    Exporters build attention masks by gathering with ranges. A lookup whose constant indices have a constant step along at
    most one result dim each is a slice of the table, with its dims put in order and broadcast. Then there is no lookup, and
    no all_gather when the table is sharded.

    Before: `nn.gather %x, %range dim 0`. After: `nn.slice %x ...`.
  }];
  let dependentDialects = ["::cleave::nn::NnDialect"];
}

def NnLookUpFirst : Pass<"nn-look-up-first", "::mlir::ModuleOp"> {
  let summary = "tables are looked up before they are dequantized";
  let description = [{
    Exporters dequantize the full table of an embedding, and look up in the result. A lookup moves up through ops that compute
    element by element (dequantization, casts, arithmetic, scales by row, column or block) and through movement that keeps the
    looked-up dim, where the tables that it then reads take fewer bytes and it reads no more elements than the table has.
    So only these rows are computed, and where the table is sharded, they are sent in the narrow type. A product that reads
    the same table (tied weights) dequantizes it for itself.

    Before: `nn.gather (nn.dequantize %q, %scale), %i dim 0`. After: `nn.dequantize (nn.gather %q, %i dim 0), %scale`.
  }];
  let dependentDialects = ["::cleave::nn::NnDialect"];
}

def NnStackExperts : Pass<"nn-stack-experts", "::mlir::ModuleOp"> {
  let summary = "weights of experts that a plan annotates as a stack become one";
  let description = [{
    A mixture of experts that was exported as a loop has a product for each expert, with its own weight. If the sharding
    annotation of a weight has one additional major dim, it is for the stack of all these weights. Values that the same ops
    make of different weights, constants and neighboring slices, and that are summed, concatenated (`nn.concat`) or added to
    rows (`nn.scatter_nd add`), become one value with that dim. The weights become an `nn.param` that is an array of
    references. Without such an annotation nothing changes; an annotation that no values can follow is an error.

    Before: `nn.add (nn.einsum %x, %w0), (nn.einsum %x, %w1)`. After: `nn.reduce sum (nn.einsum %x, %w) dims [0]`, `%w` a stack.
  }];
  let dependentDialects = ["::cleave::nn::NnDialect", "::cleave::spmd::SpmdDialect"];
}

def NnFoldWindows : Pass<"nn-fold-windows", "::mlir::ModuleOp"> {
  let summary = "a mask that hides distant keys becomes `left` of attention";
  let description = [{
    Models with sliding windows are exported with masks: comparisons of counts, joined by `and`, as bools or as a select of 0 or a
    large negative number, or constants of that kind. The part of a mask that depends on positions only becomes `causal`,
    `causalOffset` and `left`; the rest (padding) stays. Windows can be sharded along the sequence with keys of neighbors only.

    Before: `nn.attention %q, %k, %v mask %m scale 1.0`, `%m` true where i - 4 < j <= i.
    After: `nn.attention %q, %k, %v scale 1.0 causal {left = 3}`.
  }];
  let dependentDialects = ["::cleave::nn::NnDialect"];
}

def NnUnflatten : Pass<"nn-unflatten", "::mlir::ModuleOp"> {
  let summary = "keeps apart dims that exporters flatten around a contraction";
  let description = [{
    `[batch, sequence, h] -> [batch * sequence, h] -> dot -> [batch, sequence, k]` cannot be sharded over the sequence
    in the middle. A reshape that merges dims moves down through einsums and elementwise ops that only pass the merged dim
    through, until it meets the reshape that splits the dim again.

    Before: `%f = nn.reshape %x; nn.einsum %f, %w "ab,bc->ac"`. After: `nn.einsum %x, %w "abc,cd->abd"`, then the reshape.
  }];
  let dependentDialects = ["::cleave::nn::NnDialect"];
}

def NnFuseMovement : Pass<"nn-fuse-movement", "::mlir::ModuleOp"> {
  let summary = "a chain of reshapes and transposes becomes one split, transpose, merge";
  let description = [{
    A chain hides dims where a middle step merges them (K^T through a [batch * heads] flatten). All dims of the chain are
    refined to common factors: one reshape splits, one transpose orders, one reshape merges. Steps that are not needed are
    left out.

    Before: reshape, transpose, reshape, transpose. After: at most reshape, transpose, reshape.
  }];
  let dependentDialects = ["::cleave::nn::NnDialect"];
}

def NnSplitWeights : Pass<"nn-split-weights", "::mlir::ModuleOp"> {
  let summary = "the split of a dot with a constant weight becomes dots with parts of the weight";
  let description = [{
    Fused query-key-value and gate-up projections compute one wide dot and slice it. If that is sharded over the wide dim,
    each slice would need communication. The slices move up through bias additions and reshapes onto the weight.

    Before: `nn.slice (nn.einsum %x, %w)`, several times. After: `nn.einsum %x, (nn.slice %w)`, several times.
  }];
  let dependentDialects = ["::cleave::nn::NnDialect"];
}

def NnGroupSlices : Pass<"nn-group-slices", "::mlir::ModuleOp"> {
  let summary = "slices that are all parts of a value become one op";
  let description = [{
    Where slices of a value along one dim are disjoint and together all of it (queries, keys and values of one product), they
    become one `nn.split` before the first of them. If the dim is sharded, and the parts are to be, all parts are then one
    exchange, with the cost of one. Types of results, sharding annotations included, stay; so do their names. Parts of one
    position stay slices.

    Before: `nn.slice %x [0, 2)`, `nn.slice %x [2, 8)`. After: `%r:2 = nn.split %x dim 0 parts [2, 6]`.
  }];
  let dependentDialects = ["::cleave::nn::NnDialect"];
}

def NnAddAdapters : Pass<"nn-add-adapters", "::mlir::ModuleOp"> {
  let summary = "puts low-rank adapters beside weights";
  let description = [{
    Where the plan's `train` has `lora`, each product with a weight that it names gets a second one beside it, of two thin
    weights of its own, which alone are trained (LoRA).

    Before: `%y = nn.einsum %x, %w "bi,io->bo"`. After: `%s = nn.add %y, %b` with `%b = nn.einsum %t, %B "br,ro->bo"` and `%t` of
    `nn.einsum %x, %A "bi,ir->br"`.
  }];
  let options = [Option<"plan", "plan", "std::string", "\"\"", "the plan, which has a section train">,
                 Option<"train", "train", "std::string", "\"\"", "that section by itself">];
  let dependentDialects = ["::cleave::nn::NnDialect"];
}

def NnOutlineStep : Pass<"nn-outline-step", "::mlir::ModuleOp"> {
  let summary = "makes a function of weights and a loss of a model";
  let description = [{
    The first of the passes that make a step of training of a model (docs/training.md). The results of the function become one, the loss
    that the plan's `train` describes; its labels become an argument. Parameters with floats on a path to the loss, which the
    plan does not freeze, become arguments, each part of a fused weight one of its own; what the plan wants of them (pins) they
    take along. All arguments say what they are for (`nn.role`). So far as the plan asks for it, parameters are kept in other floats
    (`precision`), the loss has a product with a scale beside it, pins of `nn.dropout` pass over elements, and batch norms take statistics of
    the batch, whose running ones are arguments, too.
    With `eval` the model stays in inference, with the arguments of a training: nothing is dropped, and batch norms take the statistics
    that the step keeps.

    Before: `func @main(%x) { %w = nn.load @w  %y = nn.einsum %x, %w ..  return %y }`. After: `func @main(%x {nn.role = "batch"},
    %labels {nn.role = "batch"}, %w {nn.role = "parameter", nn.begins = @w}) -> (f32 {nn.name = "loss"})`.
  }];
  let options = [Option<"plan", "plan", "std::string", "\"\"", "the plan, which has a section train">,
                 Option<"train", "train", "std::string", "\"\"", "that section by itself">,
                 Option<"eval", "eval", "bool", "false", "the model stays in inference">];
  let dependentDialects = ["::cleave::nn::NnDialect"];
}

def NnDifferentiate : Pass<"nn-differentiate", "::mlir::ModuleOp"> {
  let summary = "adds the gradients of a loss";
  let description = [{
    Differentiates one result in reverse, by the rules of the ops (lib/Dialect/Nn/Gradients). Each argument that is a parameter,
    or that `by` names, gets a further result, its gradient; zeros where the loss does not depend on it. Ops that are added
    have the node of the op that they are of, `grad(NODE)`, and the gradient of a tensor `h` is called `grad(h)`. A value that a
    plan pins has a gradient that is pinned alike. An op without a gradient is an error.

    Before: `return %loss` with `%loss = nn.einsum %w, %x "i,i->"`. After: `return %loss, %dw` with `%dw = nn.einsum %one, %x ",i->i"`.
  }];
  let options = [Option<"of", "of", "std::string", "\"loss\"", "the result that is differentiated">,
                 ListOption<"by", "by", "std::string", "arguments that it is differentiated by, in place of the parameters">];
  let dependentDialects = ["::cleave::nn::NnDialect"];
}

def NnAttachUpdate : Pass<"nn-attach-update", "::mlir::ModuleOp"> {
  let summary = "makes new weights of gradients";
  let description = [{
    The last pass of three that make a step of training. Each gradient of a parameter becomes the parameter's next value, as the
    optimizer of the plan's `train` has it, with moments and a count of steps that are states too. `zero` shards these, and
    parameters, along its axes. With `gradients`, they stay results beside. Gradients of a scaled loss are divided by the scale; where
    they are not finite, all states stay.

    Before: `return %loss, %dw`. After: `return %loss, %w1 {nn.name = "next(w)", spmd.state = "w"}` with `%w1 = nn.sub %w, %u` and
    `%u = nn.mul %rate, %dw`.
  }];
  let options = [Option<"plan", "plan", "std::string", "\"\"", "the plan, which has a section train">,
                 Option<"train", "train", "std::string", "\"\"", "that section by itself">,
                 Option<"gradients", "gradients", "bool", "false", "gradients are results, too">];
  let dependentDialects = ["::cleave::nn::NnDialect"];
}

def NnKeepLoss : Pass<"nn-keep-loss", "::mlir::ModuleOp"> {
  let summary = "leaves of a step its loss alone";
  let description = [{
    Makes of a step the function that evaluates: the loss is its one result, what led to other results is gone. Arguments stay as they
    are and where they are; states among them are `spmd.kept`: the step, which is another entry of the program, makes their next values.

    Before: `return %loss, %w1 {spmd.state = "w"}`. After: `return %loss`, and `%w: .. {spmd.kept}`.
  }];
  let dependentDialects = ["::cleave::nn::NnDialect"];
}

def NnVerifyForm : Pass<"nn-verify-form", "::mlir::ModuleOp"> {
  let summary = "checks what must hold after import, canonicalization and differentiation";
  let description = [{
    * `imported`: functions hold one block of nn ops (and sharding annotations written by hand, `spmd.constrain`); no other
      result carries a sharding.
    * `canonical`: in addition, no reshape or transpose merely follows another one, and no two ops compute the same.
    * `differentiated`: as `imported`, and of a step each argument has a role, each parameter a next value or `spmd.kept`, and the loss rank 0.

    The attribute `spmd.phase` of the module then names the phase. Nothing else changes: the program is the same before
    and after.
  }];
  let options = [Option<"form", "form", "::cleave::Phase", "::cleave::Phase::Imported", "the phase just done: imported, canonical or differentiated",
                        "::cleave::PhaseWords{::cleave::Phase::Imported, ::cleave::Phase::Differentiated}">];
}

#endif // CLEAVE_NN_PASSES
