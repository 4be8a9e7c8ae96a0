//===- ExecCommands.td - what ranks do, step by step ------------*- tablegen -*-===//
//
// Each op is one command of a program file (cleave/Program/Command.h): it reads and writes views, on its stream, in the
// order of the ops.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_EXEC_COMMANDS
#define CLEAVE_EXEC_COMMANDS

include "ExecInterfaces.td"
include "ExecMemory.td"
include "Spmd/SpmdAttrs.td"
include "Spmd/SpmdInterfaces.td"

def Exec_Stream : DefaultValuedAttr<I64Attr, "0">;
def Exec_Axes : TypedArrayAttrBase<Spmd_AxisAttr, "list of mesh axes, major to minor">;

// Its first operands are read, its second ones written.
class Exec_CommandOp<string mnemonic, list<Trait> traits = []>
    : Exec_Op<mnemonic, traits # [Exec_CommandOpInterface]>;

//===----------------------------------------------------------------------===//
// Of one rank
//===----------------------------------------------------------------------===//

def Exec_RunOp : Exec_CommandOp<"run", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "runs a kernel on memory";
  let description = [{
    Sources hold the arguments of the kernel, targets get the values that it yields. A target may be the same view as a
    source where the kernel allows it (`in_place`: per result the argument whose bytes it may be in, or -1).

    Constraints: (C1) the symbol is an exec.kernel; (C2) sources have shapes and elements of its arguments; (C3) targets
    those of what it yields; (C4) a kernel's `in_place` has an entry per result, each an argument of as many bytes.
    Example: `exec.run @add_relu_0(%x, %z) into (%y) : (memref<8xf32>, memref<8xf32>) -> memref<8xf32>`
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<Exec_View>:$sources, Variadic<Exec_View>:$targets,
                       Exec_Stream:$stream);
  let assemblyFormat = [{
    $kernel `(` $sources `)` `into` ` ` `(` $targets `)` (`stream` $stream^)? attr-dict `:`
    functional-type($sources, $targets)
  }];
}

def Exec_CopyOp : Exec_CommandOp<"copy"> {
  let summary = "copies the elements of one view to another";
  let description = [{
    Constraints: (C1) both have one shape and element type.
    Example: `exec.copy %x into %y : memref<4x8xf32, strided<[64, 1]>> into memref<4x8xf32>`
  }];
  let arguments = (ins Exec_View:$source, Exec_View:$target, Exec_Stream:$stream);
  let assemblyFormat = "$source `into` $target (`stream` $stream^)? attr-dict `:` type($source) `into` type($target)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Of ranks together
//===----------------------------------------------------------------------===//

def Exec_CollectiveOp : Exec_CommandOp<"collective", [AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<CollectiveOpInterface, ["getReductionKind", "getCauseAttr", "setCauseAttr"]>]> {
  let summary = "a collective of all ranks of each group";
  let description = [{
    It runs on each pair of source and target. A group is the ranks that differ along `over` only; a member's number is its
    index along these axes. Read row-major over `gather` (per dim, how many pieces are concatenated), the number says which
    piece the member's source is; over `slice`, which piece of the result it keeps. A target may be in the bytes of its source:
    all of it (all_reduce), or one is the rank's own row of the other (all_gather, reduce_scatter; `offset` then depends on the
    rank).

    Constraints: (C1) as many sources as targets, at least one; (C2) a reduction only for kinds that reduce; (C3) `gather` is
    given only for kinds that gather, `slice` for those that slice (Program/Collective.h says which do): an entry per dim, whose
    product is the size of a group; (C4) source dim x gather = target dim x slice, one element type, no strides.
    Example:
    ```mlir
    exec.collective all_reduce by sum over {"model"} (%x) into (%x) : (memref<8xf32>) -> memref<8xf32>
    exec.collective all_gather over {"model"} (%x) into (%y) gather [1, 4] : (memref<2x8xf32>) -> memref<2x32xf32>
    ```
  }];
  let arguments = (ins Exec_CollectiveKindAttr:$kind, OptionalAttr<Spmd_ReductionKindAttr>:$reduction, Exec_Axes:$axes,
                       Variadic<Exec_View>:$sources, Variadic<Exec_View>:$targets, OptionalAttr<DenseI64ArrayAttr>:$gather,
                       OptionalAttr<DenseI64ArrayAttr>:$slice, Exec_Stream:$stream, OptionalAttr<StrAttr>:$cause);
  let assemblyFormat = [{
    `` $kind (`by` `` $reduction^)? `over` custom<AxisList>($axes) ` ` `(` $sources `)` `into` ` ` `(` $targets `)` (`gather` $gather^)?
    (`slice` $slice^)? (`stream` $stream^)? attr-dict `:` functional-type($sources, $targets)
    (`cause` $cause^)?
  }];
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "CollectiveKind":$kind, "::mlir::ArrayAttr":$axes, "::mlir::ValueRange":$sources,
                                 "::mlir::ValueRange":$targets), [{
    build($_builder, $_state, kind, /*reduction=*/nullptr, axes, sources, targets, /*gather=*/nullptr, /*slice=*/nullptr,
          /*stream=*/0, /*cause=*/nullptr);
  }]>];
}

def Exec_PiecesOp : Exec_Op<"pieces", [Symbol]> {
  let summary = "boxes that ranks send each other";
  let description = [{
    There is a line per piece: the rank that has it, the one that gets it, its extents, and where it begins in the source of
    the one and in the target of the other. A rank may send to itself.

    Constraints: (C1) extents and starts have `dims` entries, none below 0; (C2) ranks are of the mesh; (C3) each piece has
    elements.
    Example:
    ```mlir
    exec.pieces @pieces_0 dims 2 [
      0 -> 1 box [2, 4] from [0, 4] to [2, 0]
    ]
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$dims, DenseI64ArrayAttr:$ends, DenseI64ArrayAttr:$boxes,
                       OptionalAttr<StrAttr>:$sym_visibility);
  let assemblyFormat = "(`visibility` $sym_visibility^)? $sym_name `dims` $dims custom<Pieces>($ends, $boxes) attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    struct Piece {
      int64_t source, target;
      ::llvm::ArrayRef<int64_t> extents, from, to;
    };
    int64_t size() { return getEnds().size() / 2; }
    Piece getPiece(int64_t index);
  }];
}

def Exec_ExchangeOp : Exec_CommandOp<"exchange", [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    DeclareOpInterfaceMethods<CollectiveOpInterface, ["getNumPeers", "getCauseAttr", "setCauseAttr"]>]> {
  let summary = "sends pieces from rank to rank";
  let description = [{
    Each rank sends boxes of its source, and receives boxes of its target. The rest of the target does not change; the source
    may be a part of it. `over` says among which ranks, for readers only.

    Constraints: (C1) the symbol is an exec.pieces of as many dims as both views; (C2) boxes are within the views; (C3) one
    element type.
    Example: `exec.exchange @pieces_0 over {"x"} %a into %b : memref<2x8xf32> into memref<8x2xf32>`
  }];
  let arguments = (ins FlatSymbolRefAttr:$pieces, Exec_Axes:$axes, Exec_View:$source, Exec_View:$target, Exec_Stream:$stream,
                       OptionalAttr<StrAttr>:$cause);
  let assemblyFormat = [{
    $pieces `over` custom<AxisList>($axes) $source `into` $target (`stream` $stream^)? attr-dict `:`
    type($source) `into` type($target) (`cause` $cause^)?
  }];
  let builders = [OpBuilder<(ins "::mlir::FlatSymbolRefAttr":$pieces, "::mlir::ArrayAttr":$axes, "::mlir::Value":$source,
                                 "::mlir::Value":$target), [{
    build($_builder, $_state, pieces, axes, source, target, /*stream=*/0, /*cause=*/nullptr);
  }]>];
}

//===----------------------------------------------------------------------===//
// Between ranks of a pipeline
//===----------------------------------------------------------------------===//

// The ranks of the module's mesh at one coordinate of the pipeline send to, or receive from, those at another one, each with
// the rank of the same coordinates on that mesh.
class Exec_MessageOp<string mnemonic, string method>
    : Exec_Op<mnemonic, [DeclareOpInterfaceMethods<Exec_CommandOpInterface, ["getReads", "getWrites"]>]> {
  let arguments = (ins Exec_View:$view, I64Attr:$peer, I64Attr:$channel, I64Attr:$microbatch, Exec_Stream:$stream);
  let assemblyFormat = "$view `" # method # [{` $peer `channel` $channel `microbatch` $microbatch (`stream` $stream^)?
    attr-dict `:` type($view)}];
  let builders = [OpBuilder<(ins "::mlir::Value":$view, "int64_t":$peer, "int64_t":$channel, "int64_t":$microbatch), [{
    build($_builder, $_state, view, peer, channel, microbatch, /*stream=*/0);
  }]>];
  let hasVerifier = 1;
}

def Exec_SendOp : Exec_MessageOp<"send", "to"> {
  let summary = "sends a tensor to another rank of the pipeline";
  let description = [{
    A `pipe.send` becomes one `exec.send` per tensor. The n-th send is done when the other side has reached its n-th
    `exec.receive` from here (`exec-verify-plan` M7).

    Constraints: (C1) the peer is 0 or more, the channel too; the microbatch is -1, which is once for all of them, or more.
    Example: `exec.send %h to 1 channel 0 microbatch 3 : memref<2x64xf32>`
  }];
}

def Exec_ReceiveOp : Exec_MessageOp<"receive", "from"> {
  let summary = "receives a tensor from another rank of the pipeline";
  let description = [{
    Constraints: (C1) as exec.send.
    Example: `exec.receive %h from 0 channel 0 microbatch 3 : memref<2x64xf32>`
  }];
}

//===----------------------------------------------------------------------===//
// Between streams
//===----------------------------------------------------------------------===//

def Exec_RecordOp : Exec_Op<"record"> {
  let summary = "records an event: it is there once the stream has reached this op";
  let description = [{
    Constraints: (C1) event and stream are not negative.
    Example: `exec.record 3 stream 1`
  }];
  let arguments = (ins I64Attr:$event, Exec_Stream:$stream);
  let assemblyFormat = "$event (`stream` $stream^)? attr-dict";
  let hasVerifier = 1;
}

def Exec_WaitOp : Exec_Op<"wait"> {
  let summary = "makes a stream wait for an event";
  let description = [{
    Constraints: (C1) as exec.record.
    Example: `exec.wait 3`
  }];
  let arguments = (ins I64Attr:$event, Exec_Stream:$stream);
  let assemblyFormat = "$event (`stream` $stream^)? attr-dict";
  let hasVerifier = 1;
}

#endif // CLEAVE_EXEC_COMMANDS
