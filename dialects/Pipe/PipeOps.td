//===- PipeOps.td - microbatches, messages, schedules -----------*- tablegen -*-===//
#ifndef CLEAVE_PIPE_OPS
#define CLEAVE_PIPE_OPS

include "PipeDialect.td"
include "Nn/NnBase.td"
include "Spmd/SpmdAttrs.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/RegionKindInterface.td"

def Pipe_PieceAttr : AttrDef<Pipe_Dialect, "Piece"> {
  let mnemonic = "piece";
  let summary = "what microbatches have of a value";
  let description = [{
    The word is `split`, along a dim and in blocks as in `pipe.part`; or `whole`, if each microbatch has the full value; or
    it says how the values of all microbatches are combined: `sum`, `prod`, `max`, `min`. It is written as in
    `pipe.microbatches`; as an attribute by itself it is `#pipe.piece<"split", 0, 1>`.
  }];
  let parameters = (ins StringRefParameter<"split, whole, sum, prod, max, min">:$word, "int64_t":$dim, "int64_t":$blocks);
  let assemblyFormat = "`<` $word `,` $dim `,` $blocks `>`";
  let extraClassDeclaration = [{
    static PieceAttr getSplit(::mlir::MLIRContext *context, int64_t dim, int64_t blocks) { return get(context, "split", dim, blocks); }
    static PieceAttr getReplicated(::mlir::MLIRContext *context) { return get(context, "whole", 0, 1); }
    bool isSplit() const { return getWord() == "split"; }
    bool isReplicated() const { return getWord() == "whole"; }
    /// Nothing for what is not combined.
    std::optional<::cleave::spmd::ReductionKind> getKind() const;
  }];
}
def Pipe_Pieces : TypedArrayAttrBase<Pipe_PieceAttr, "how microbatches take or give values">;

def Pipe_TakesPart : NativeOpTrait<"TakesPart"> { let cppNamespace = "::cleave::spmd"; }
def Pipe_CombinesParts : NativeOpTrait<"CombinesParts"> { let cppNamespace = "::cleave::spmd"; }

class Pipe_Op<string mnemonic, list<Trait> traits = []> : Op<Pipe_Dialect, mnemonic, traits>;

// Ranks wait for each other there: none may be removed, or reordered with another one.
class Pipe_MessageOp<string mnemonic> : Pipe_Op<mnemonic, [MemoryEffects<[MemRead, MemWrite]>]>;

//===----------------------------------------------------------------------===//
// Microbatches
//===----------------------------------------------------------------------===//

def Pipe_AccumulateOp : Pipe_Op<"accumulate", [Pure, Pipe_CombinesParts, DeclareOpInterfaceMethods<ShardingRuleOpInterface>, Nn_ClonePartition]> {
  let summary = "the values of all microbatches combined";
  let description = [{
    In the program of one microbatch, the result is the sum (product, maximum, minimum) of the operand over all
    microbatches. Ops that depend on it run once, after the last microbatch.

    Constraints: (C1) the kind is legal for the element type, as in (S6) of a sharding; (C2) operand and result are of one
    shape and element type; their shardings may differ while they are decided (`: tensor<4xf32, #a> to tensor<4xf32, #b>`).
    Example: `%s = pipe.accumulate sum %x : tensor<4xf32>`
  }];
  let arguments = (ins Spmd_ReductionKindAttr:$kind, Nn_Tensor:$input);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "`` $kind $input attr-dict `:` custom<ShardedTypes>(type($input), type($result))";
  let hasVerifier = 1;
}

def Pipe_PartOp : Pipe_Op<"part", [Pure, Pipe_TakesPart, DeclareOpInterfaceMethods<ShardingRuleOpInterface>, Nn_ClonePartition]> {
  let summary = "what one microbatch has of a value";
  let description = [{
    The operand's dim is `blocks` blocks of equal size, each of which is split into `count` pieces. The part of microbatch i
    is the concatenation of piece i of each block. With one block per shard, a part has something of each rank's shard, so
    nothing moves. Without an index it is the part of the microbatch that the program is written for.

    With `samples` a block has that many samples, and a piece is a number of full samples: all pieces have equally many, or the
    first ones have one more where count does not divide `samples`. Without an index it is then some samples of each block.

    Constraints: (C1) the operand's dim is count times as long as the result's, or, with samples, the part is as long as its
    samples; all else is equal; (C2) 0 <= index < count, and blocks divides the result's dim.
    Example: `%p = pipe.part %x[3] split 0 of 8 blocks 2 : tensor<16x4xf32> to tensor<2x4xf32>`, and the last part where 7
    samples are parts of 3, 2 and 2: `%p = pipe.part %x[2] split 0 of 3 samples 7 : tensor<14x4xf32> to tensor<4x4xf32>`
  }];
  let arguments = (ins Nn_Tensor:$input, OptionalAttr<I64Attr>:$index, I64Attr:$dim, I64Attr:$count,
                       OptionalAttr<I64Attr>:$samples, DefaultValuedAttr<I64Attr, "1">:$blocks);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$input (`[` $index^ `]`)? `split` $dim `of` $count (`samples` $samples^)? (`blocks` $blocks^)? attr-dict `:` type($input) `to` type($result)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    Deal getDeal() { return Deal{static_cast<int64_t>(getCount()), static_cast<int64_t>(getSamples().value_or(getCount()))}; }
  }];
}

def Pipe_JoinOp : Pipe_Op<"join", [Pure]> {
  let summary = "the value that the parts of all microbatches make";
  let description = [{
    The operands are the parts of microbatches 0, 1, ..; the result is the value that `pipe.part` takes them from.

    Constraints: (C1) the result's dim is as long as those of all operands together, all else is equal; (C2) blocks divides the
    dim of each.
    Example: `%y = pipe.join %a, %b split 0 : tensor<2x4xf32> to tensor<4x4xf32>`
  }];
  let arguments = (ins Variadic<Nn_Tensor>:$parts, I64Attr:$dim, DefaultValuedAttr<I64Attr, "1">:$blocks);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$parts `split` $dim (`blocks` $blocks^)? attr-dict `:` type($parts) `to` type($result)";
  let hasVerifier = 1;
}

def Pipe_YieldOp : Pipe_Op<"yield", [Pure, Terminator, HasParent<"MicrobatchesOp">]> {
  let summary = "the results of one microbatch";
  let description = [{ Example: `pipe.yield %y : tensor<2x4xf32>` }];
  let arguments = (ins Variadic<Nn_Tensor>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
  let builders = [OpBuilder<(ins), [{ build($_builder, $_state, ::mlir::ValueRange()); }]>];
}

def Pipe_MicrobatchesOp : Pipe_Op<"microbatches", [IsolatedFromAbove, SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "the same program on every microbatch";
  let description = [{
    The body runs `count` times, in order, which is the meaning of every schedule. The word next to each argument says what it
    is: a part of the operand as `pipe.part` takes it (`split`), or the full operand (`whole`). Results are joined (`split`, as
    by `pipe.join`), combined over all microbatches (`sum`, `prod`, `max`, `min`), or equal in all microbatches (`whole`): then
    the result is that of the first.

    With `samples` that count does not divide, the first microbatches have one sample more (`pipe.part`). They run the first
    body, the others the second one, `rest`. Values that are combined are combined over both.

    Constraints: (C1) an argument per operand, a result per yielded value, each of the type that its word gives; (C2) kinds are
    legal for the element type; (C3) parts are as those of `pipe.part` (P4); (C4) there is a second body where microbatches are
    of two sizes.
    Example:
    ```mlir
    %y:2 = pipe.microbatches 8 (%i = %x split 0, %m = %mask whole) -> (split 0, sum)
        : (tensor<16x4xf32>, tensor<4xf32>) -> (tensor<16x4xf32>, tensor<f32>) {
      %o:2 = func.call @main.stage0(%i, %m) : (tensor<2x4xf32>, tensor<4xf32>) -> (tensor<2x4xf32>, tensor<f32>)
      pipe.yield %o#0, %o#1 : tensor<2x4xf32>, tensor<f32>
    }
    ```
  }];
  let arguments = (ins Variadic<Nn_Tensor>:$inputs, I64Attr:$count, OptionalAttr<I64Attr>:$samples, Pipe_Pieces:$takes,
                       Pipe_Pieces:$gives);
  let results = (outs Variadic<Nn_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body, AnyRegion:$rest);
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    Deal getDeal() { return Deal{static_cast<int64_t>(getCount()), static_cast<int64_t>(getSamples().value_or(getCount()))}; }
    /// The body that a microbatch runs.
    ::mlir::Block &getBodyOf(int64_t microbatch) {
      return (getDeal().hasOneMore(microbatch) || getRest().empty() ? getBody() : getRest()).front();
    }
  }];
}

//===----------------------------------------------------------------------===//
// Ranks
//===----------------------------------------------------------------------===//

def Pipe_SendOp : Pipe_MessageOp<"send"> {
  let summary = "sends values to another rank of the pipeline";
  let description = [{
    The op waits until the other end receives. Each device of a rank sends to the device with the same inner coordinates. A
    channel is a pair of stages, the one that makes the values and one that uses them. One message per microbatch has all
    values of a channel. Microbatch -1 is a message outside of all microbatches, sent once.

    Constraints: (P8) messages of a channel are received in the order in which they are sent; (P9) no ranks wait for each
    other for ever; (P12) both ends agree in types.
    Example: `pipe.send %h to 1 channel 0 microbatch 3 : tensor<2x4xf32>`
  }];
  let arguments = (ins Variadic<Nn_Tensor>:$values, I64Attr:$peer, I64Attr:$channel, I64Attr:$microbatch);
  let assemblyFormat = "$values `to` $peer `channel` $channel `microbatch` $microbatch attr-dict `:` type($values)";
}

def Pipe_RecvOp : Pipe_MessageOp<"recv"> {
  let summary = "receives values from another rank of the pipeline";
  let description = [{
    See pipe.send.

    Example: `%h = pipe.recv from 0 channel 0 microbatch 3 : tensor<2x4xf32>`
  }];
  let arguments = (ins I64Attr:$peer, I64Attr:$channel, I64Attr:$microbatch);
  let results = (outs Variadic<Nn_Tensor>:$values);
  let assemblyFormat = "`from` $peer `channel` $channel `microbatch` $microbatch attr-dict `:` type($values)";
}

def Pipe_ScheduleOp : Pipe_Op<"schedule", [Symbol, NoRegionArguments, NoTerminator, SingleBlock, IsolatedFromAbove]> {
  let summary = "what each rank does, in which order";
  let description = [{
    The body has a row `pipe.rank` per rank, with its actions in the notation of schedule tables. `placement` gives each stage's
    rank. Channels are pairs of stages, in the order of their numbers. Where microbatches go several ways through the ranks
    (DualPipe, Chimera), `placement` gives the ranks of all stages for one way after the other, and `ways` the way of each microbatch.

    Constraints: (C1) a row for each rank, in order; (C2) each stage is placed on a rank, once for each way; `ways` has an entry for each
    microbatch, or none; (P6) to (P12), which the checker of
    schedules checks.
    Example:
    ```mlir
    pipe.schedule @main.schedule ranks 2 stages 2 microbatches 2 placement [0, 1] channels [0, 1] {
      pipe.rank 0 "0F0,0SEND_F0,0F1,0SEND_F1"
      pipe.rank 1 "1RECV_F0,1F0,1RECV_F1,1F1"
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$ranks, I64Attr:$stages, I64Attr:$microbatches,
                       DenseI64ArrayAttr:$placement, DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$ways,
                       DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$channels);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name `ranks` $ranks `stages` $stages `microbatches` $microbatches `placement` $placement (`ways` $ways^)? (`channels` $channels^)? attr-dict-with-keyword $body";
  let hasRegionVerifier = 1;
}

def Pipe_RankOp : Pipe_Op<"rank", [HasParent<"ScheduleOp">]> {
  let summary = "a row of a schedule";
  let description = [{
    The actions are those of a table's cells: `0F1`, `0SEND_F1`, `1RECV_F1`. A message between stages that are not neighbors
    names the other stage as well: `0SEND_F1>3`, `3RECV_F1<0`.

    Example: `pipe.rank 0 "0F0,0SEND_F0,0F1,0SEND_F1"`
  }];
  let arguments = (ins I64Attr:$number, StrAttr:$actions);
  let assemblyFormat = "$number $actions attr-dict";
}

#endif // CLEAVE_PIPE_OPS
