//===- ExecOps.td - kernels, layouts, states --------------------*- tablegen -*-===//
#ifndef CLEAVE_EXEC_OPS
#define CLEAVE_EXEC_OPS

include "ExecCommands.td"
include "ExecInterfaces.td"
include "ExecMemory.td"
include "Nn/NnOps.td"

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

def Exec_YieldOp : Exec_Op<"yield", [Pure, Terminator, ParentOneOf<["FusedOp", "KernelOp"]>]> {
  let summary = "the results of a kernel";
  let description = [{
    Constraints: (C1) it ends the body of an exec.fused or exec.kernel.
    Example: `exec.yield %y : tensor<8xf32>`
  }];
  let arguments = (ins Variadic<Nn_Tensor>:$values);
  let assemblyFormat = "$values attr-dict `:` type($values)";
}

def Exec_FusedOp : Exec_Op<"fused", [Pure, IsolatedFromAbove, SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "ops that run as one kernel";
  let description = [{
    The body reads its arguments, which are the operands, and nothing else. `exec-fuse-kernels` says which ops it fuses into
    a body; the op itself accepts any.

    Constraints: (C1) one argument of the same type for each operand; (C2) the body holds ops of nn, but no nn.load,
    exec.unpack of arguments, exec.partial_attention, exec.attention_grad, and `exec.yield`; (C3) it yields values of the result types; (C4) each
    of them is the result of an op of the body, and none is yielded twice.
    Example:
    ```mlir
    %y = exec.fused (%a = %x, %b = %z) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> {
      %s = nn.add %a, %b : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
      %r = nn.relu %s : (tensor<8xf32>) -> tensor<8xf32>
      exec.yield %r : tensor<8xf32>
    }
    ```
  }];
  let arguments = (ins Variadic<Nn_Tensor>:$inputs);
  let results = (outs Variadic<Nn_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1;
}

def Exec_KernelOp : Exec_Op<"kernel", [Symbol, IsolatedFromAbove, SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "the body of an exec.fused, by name";
  let description = [{
    After buffer assignment, `in_place` says per result in which argument's bytes it may be; -1 is none.

    Constraints: (C1) the body is as that of an exec.fused (C2, C4).
    Example:
    ```mlir
    exec.kernel @add_relu_0(%a: tensor<8xf32>, %b: tensor<8xf32>) {
      %s = nn.add %a, %b : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
      %r = nn.relu %s : (tensor<8xf32>) -> tensor<8xf32>
      exec.yield %r : tensor<8xf32>
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, OptionalAttr<StrAttr>:$sym_visibility,
                       OptionalAttr<DenseI64ArrayAttr>:$in_place);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::TypeRange getResultTypes() { return getBody().front().getTerminator()->getOperandTypes(); }
  }];
}

def Exec_LaunchOp : Exec_Op<"launch", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "runs a kernel";
  let description = [{
    Constraints: (C1) the symbol is an exec.kernel; (C2) operands have the types of its arguments; (C3) results have the
    types that it yields.
    Example: `%y = exec.launch @add_relu_0(%x, %z) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>`
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<Nn_Tensor>:$inputs);
  let results = (outs Variadic<Nn_Tensor>:$results);
  let assemblyFormat = "$kernel `(` $inputs `)` attr-dict `:` functional-type(operands, results)";
}

//===----------------------------------------------------------------------===//
// Layouts of weights
//===----------------------------------------------------------------------===//

// As `Layout` of a program file says it (docs/program-file.md).
class Exec_LayoutOp<string mnemonic, list<Trait> traits = []> : Exec_Op<mnemonic, [Pure] # traits> {
  let arguments = (ins Nn_Tensor:$input, DenseI64ArrayAttr:$order, I64Attr:$batch, I64Attr:$width, I64Attr:$interleave);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = [{
    $input `order` $order `batch` $batch `width` $width `interleave` $interleave attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    Layout getLayout() {
      return {::llvm::SmallVector<int64_t>(getOrder()), int64_t(getBatch()), int64_t(getWidth()), int64_t(getInterleave())};
    }
  }];
}

def Exec_PackOp : Exec_LayoutOp<"pack"> {
  let summary = "a weight in the layout that a kernel reads";
  let description = [{
    The result has the dims in `order`. With a `width`, the last one, n, is split into panels, with k in pairs (or groups of
    `interleave`): `[batch.., n / width, k.., k last / interleave, width, interleave]`. Both divisions round up, and zeros are
    the padding; `batch` counts the major dims that stay as they are. Without a width `batch` is 0 and `interleave` 1. Floats
    are cast to the floats of the result.

    Constraints: (C1) `order` is one of the operand's dims; (C2) batch, width and interleave are not negative, interleave
    is not 0, and with a width there are a k and an n after the batch; (C3) one element type or floats, and the result has
    the shape above.
    Example: `%p = exec.pack %w order [0, 1] batch 0 width 16 interleave 1 : (tensor<64x40xf32>) -> tensor<3x64x16x1xf32>`
  }];
}

def Exec_UnpackOp : Exec_LayoutOp<"unpack", [Nn_FormOpInterface, Nn_Form<"Movement">]> {
  let summary = "the operand of exec.pack";
  let description = [{
    It is first in the body of a kernel, on an argument that is packed. Code that has a template for panels reads them; all
    other code sees the tensor as it was.

    Constraints: (C1) to (C3) as exec.pack, with operand and result exchanged, and of one element type.
    Example: `%w = exec.unpack %p order [0, 1] batch 0 width 16 interleave 1 : (tensor<3x64x16x1xf32>) -> tensor<64x40xf32>`
  }];
}

//===----------------------------------------------------------------------===//
// Stages of kernels of devices
//===----------------------------------------------------------------------===//

def Exec_PartialAttentionOp
    : Exec_Op<"partial_attention", [Pure, AttrSizedOperandSegments, DeclareOpInterfaceMethods<ShardingRuleOpInterface>,
                                    Nn_ClonePartition, Nn_FormOpInterface, Nn_Form<"Attention">]> {
  let summary = "attention to each part of the keys separately";
  let description = [{
    The op is in the body of a kernel, or, with one part, a step of ring attention (`exec-form-rings`). Keys and values are split
    into parts of `part` positions; the last one has the rest. `sums` [batch, heads, sequence, parts, valueSize] is the result of
    `nn.attention` to each part, `logs` [batch, heads, sequence, parts] the logarithm of the sum of the exponentials of its
    scores. Where a query sees nothing of a part, they are zeros and -inf. So attention to the parts, with `logs` as scores, is
    attention to all keys. Results are not rounded: f32, or f64 for f64.

    Where `seen` is false, no query sees any of the keys, regardless of masks, and nothing is computed: causal attention hides a
    block from the ranks before the block's own.

    Its rule is that of nn.attention, except that keys stay replicated: after partitioning, only the batch is split, into
    microbatches.

    Constraints: (C1) operands and attributes are those of an nn.attention; (C2) there are keys, and `part` is positive; (C3)
    results have the shapes and elements above; (C4) `seen` is one element.
    Example: `%s, %l = exec.partial_attention %q, %k, %v part 512 scale 0.125 : (...) -> (tensor<1x8x1x4x64xf32>, tensor<1x8x1x4xf32>)`
  }];
  let arguments = !con(Nn_AttentionOp.arguments, (ins Optional<Nn_BoolTensor>:$seen, I64Attr:$part));
  let results = (outs Nn_FloatTensor:$sums, Nn_FloatTensor:$logs);
  let assemblyFormat = [{
    $query `,` $key `,` $value (`mask` $mask^)? (`seen` $seen^)? `part` $part `scale` $scale (`causal` $causal^)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::cleave::nn::KeyBand getBand();
    /// Attention to all keys at once, as an op at the builder's insertion point, or in no block.
    ::cleave::nn::AttentionOp createFull(::mlir::OpBuilder &builder);
  }];
}

//===----------------------------------------------------------------------===//
// Gradients of attention
//===----------------------------------------------------------------------===//

def Exec_AttentionGradOp
    : Exec_Op<"attention_grad", [Pure, AttrSizedOperandSegments, DeclareOpInterfaceMethods<ShardingRuleOpInterface>, Nn_FormOpInterface,
                                 Nn_Form<"Attention">]> {
  let summary = "the gradients of attention, its scores not stored";
  let description = [{
    `gradient` is that of the result of an `nn.attention` of the other operands and attributes; results are the gradients of its
    query, key and value. With p the weights of the values, which are computed again of queries and keys (Dao et al. 2022):

        dValue = p^T gradient     dp = gradient value^T     ds = p (dp - sum(dp p)) scale     dQuery = ds key     dKey = ds^T query

    and ds times 1 - tanh^2 under a `softcap`. A query that sees nothing gives zeros. Where `shown` is false, a score got a number in
    place of its own, and passes no gradient on: a row of nothing else has weights all the same. Computed in f32 (f64 for f64).

    With statistics of the rows, keys and values may be some of those that the queries see: a block of a ring (`exec-form-rings`).
    `logs` [batch, heads, sequence] are the logarithms of the sums of the exponentials of all scores of a query, `means` its sums of
    dp p, which are those of gradient times result. Then p is exp(score - logs) without another walk over the scores, dKey and dValue are
    those of the block, dQuery is its share, and results are not rounded: f32, or f64 for f64. Where `seen` is false, no query sees any of
    the keys, regardless of masks, and nothing but zeros is stored.

    The op is made of its parts once shardings are decided (`exec-recognize-attention`, and `exec-form-rings` where keys go round), for
    the host. Its rule tells its flops; batch and key heads are all that splits without sums.

    Constraints: (C1) operands and attributes but those named here are those of an nn.attention; (C2) `gradient` has the type
    of its result; (C3) `shown` broadcasts as a mask does; (C4) results have the shapes of query, key and value, and their elements, or with
    statistics those above; (C5) `logs` and `means` come together, with the shape above and the elements of such results; (C6) `seen` is one
    element, and comes with statistics.
    Example: `%dq, %dk, %dv = exec.attention_grad %q, %k, %v of %dy scale 0.125 causal : (...) -> (...)`
  }];
  let arguments = !con(Nn_AttentionOp.arguments, (ins Nn_FloatTensor:$gradient, Optional<Nn_BoolTensor>:$shown,
                                                  Optional<Nn_FloatTensor>:$logs, Optional<Nn_FloatTensor>:$means,
                                                  Optional<Nn_BoolTensor>:$seen));
  let results = (outs Nn_FloatTensor:$dQuery, Nn_FloatTensor:$dKey, Nn_FloatTensor:$dValue);
  let assemblyFormat = [{
    $query `,` $key `,` $value `of` $gradient (`mask` $mask^)? (`shown` $shown^)? (`logs` $logs^)? (`means` $means^)? (`seen` $seen^)?
    `scale` $scale (`causal` $causal^)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The attention that it is the gradient of, as an op at the builder's insertion point, or in no block.
    ::cleave::nn::AttentionOp createForward(::mlir::OpBuilder &builder);
  }];
}

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

def Exec_AppendOp : Exec_Op<"append", [Pure]> {
  let summary = "appends new positions to existing ones";
  let description = [{
    It is a concat without a kernel: each operand is copied to its part of the result. If the first operand is a state that
    grows, in the bytes of the result, this moves it towards the beginning, and the other operands come after it.

    Constraints: (C1) as nn.concat.
    Example: `%y = exec.append %past, %new dim 2 : (tensor<1x4x24x16xf32>, tensor<1x4x1x16xf32>) -> tensor<1x4x25x16xf32>`
  }];
  let arguments = Nn_ConcatOp.arguments;
  let results = Nn_ConcatOp.results;
  let assemblyFormat = Nn_ConcatOp.assemblyFormat;
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Values that are made again
//===----------------------------------------------------------------------===//

def Exec_AgainOp : Exec_Op<"again", [Pure, SameOperandsAndResultType]> {
  let summary = "a value, read where another one is made of it again";
  let description = [{
    The operand itself. Nothing looks through it before memory is planned: what is made of it is not equal to what was made of the
    operand, and is in no kernel with that. In memory it is an alias. Two of one operand are equal, so that what is made again is made again once
    (`exec-recompute`).

    Example: `%y = exec.again %x : tensor<8x4xf32>`
  }];
  let arguments = (ins Nn_Tensor:$input);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($result)";
}

//===----------------------------------------------------------------------===//
// Values that wait in the host's memory
//===----------------------------------------------------------------------===//

class Exec_TransferOp<string mnemonic> : Exec_Op<mnemonic, [Pure, SameOperandsAndResultType]> {
  let arguments = (ins Nn_Tensor:$input);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($result)";
}

def Exec_OffloadOp : Exec_TransferOp<"offload"> {
  let summary = "a copy of a value in the host's memory";
  let description = [{
    It is made while kernels go on, as a collective is, on a stream of its own. `exec-plan-memory` gives it bytes of a buffer of the host, and
    keeps those of the operand until the copy is predicted to be done. Nothing reads it but `exec.fetch` (`exec-verify-form`, T1).

    Example: `%h = exec.offload %x : tensor<8x4xf32>`
  }];
}

def Exec_FetchOp : Exec_TransferOp<"fetch"> {
  let summary = "a value that comes back from the host's memory";
  let description = [{
    On a stream of its own, too. It begins as long before its first reader as it is predicted to take, and has bytes of the device from
    there on.

    Constraints: (C1) the operand is made by exec.offload.
    Example: `%y = exec.fetch %h : tensor<8x4xf32>`
  }];
  let hasVerifier = 1;
}

#endif // CLEAVE_EXEC_OPS
