//===- ExecMemory.td - numbers of ranks, buffers, views ---------*- tablegen -*-===//
#ifndef CLEAVE_EXEC_MEMORY
#define CLEAVE_EXEC_MEMORY

include "ExecDialect.td"
include "ExecEnums.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/CommonAttrConstraints.td"
include "mlir/IR/CommonTypeConstraints.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Exec_Op<string mnemonic, list<Trait> traits = []> : Op<Exec_Dialect, mnemonic, traits>;

//===----------------------------------------------------------------------===//
// Numbers that depend on the rank
//===----------------------------------------------------------------------===//

def Exec_NumberAttr : AttrDef<Exec_Dialect, "Number"> {
  let mnemonic = "number";
  let summary = "a number, the same on all ranks or not";
  let description = [{
    `128`, or `128 + "model * 4"`: plus the rank's entry in that column of the rank table, the attribute `exec.rank_table` of
    the module (`{"model * 4" = array<i64: 0, 4, 0, 4>}`, one entry per rank). A 0 before a column is left out. By itself it
    is written `#exec.number<128 + "model * 4">`.
  }];
  let parameters = (ins "int64_t":$base, StringRefParameter<"column of the rank table; empty = none">:$column);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    bool hasColumn() const { return !getColumn().empty(); }
    /// The number on each rank, by the table of the module around `op`. Precondition: it has a column, which is there.
    ::llvm::ArrayRef<int64_t> getPerRank(::mlir::Operation *op) const;
    /// The number on one rank. Precondition: the column, if any, is there.
    int64_t evaluate(::mlir::Operation *op, int64_t rank) const { return getBase() + (hasColumn() ? getPerRank(op)[rank] : 0); }
  }];
}
def Exec_Numbers : TypedArrayAttrBase<Exec_NumberAttr, "list of numbers that may depend on the rank">;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

def Exec_BufferOp : Exec_Op<"buffer", [Symbol]> {
  let summary = "memory of a rank";
  let description = [{
    Bytes that every rank has, at an address that is a multiple of `align`. *Activations* and *communication* are arenas:
    their contents change over time. *Weights* are filled by `exec.load` once. An *input* or *output* holds one tensor that
    the caller writes or reads, a *state* one that is both: the output of a call is the input of the next. `bound` of an arena
    is the maximum of the bytes in use at one time: no buffer assignment has fewer. An arena with `host` is in the memory of the host of a
    device, which copies alone reach, from the other memory or to it.

    Constraints: (C1) there are not fewer than 0 bytes; (C2) `align` is a power of two up to 2^20; (C3) of the host are activations alone.
    Example: `exec.buffer @activations activations 40960 align 64 bound 38912`
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Exec_BufferKindAttr:$kind, I64Attr:$bytes, I64Attr:$align,
                       OptionalAttr<I64Attr>:$bound, OptionalAttr<StrAttr>:$sym_visibility, UnitAttr:$onHost);
  let assemblyFormat = [{
    (`visibility` $sym_visibility^)? $sym_name `` $kind $bytes `align` $align (`bound` $bound^)? (`host` $onHost^)? attr-dict
  }];
  let hasVerifier = 1;
}

defvar Exec_View = AnyStaticShapeMemRef;

def Exec_ViewOp : Exec_Op<"view", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a tensor in a buffer";
  let description = [{
    It has the elements of the result's type, the first of them `offset` bytes after the beginning of the buffer. Many views
    may be of the same bytes. Without a layout elements are in row-major order, else they have the strides of the layout.

    One view is one tensor: where a tensor's bytes are viewed in another shape, or are a part of another tensor's, the view
    says so (`of`). So a program shows that nothing is overwritten too early: what is read through a view was last written
    through one of the same tensor.

    Constraints: (C1) the symbol is an exec.buffer; (C2) strides are known and not negative, and the layout adds no offset;
    (C3) a column is in the rank table; (C4) without one, all elements are within the buffer, aligned to their size (with
    one, `exec-verify-plan` checks that of every rank); (C5) a view of another one is of the same buffer, and that one is
    not a view of a third; (C6) its elements are of a type that tensors of programs have.
    Example: `%x = exec.view @activations[4096] : memref<8x64xf32>`
    Example: `%p = exec.view @activations[4096 + "model * 256"] of %x : memref<64xf32> of memref<8x64xf32>`
  }];
  let arguments = (ins FlatSymbolRefAttr:$buffer, Exec_NumberAttr:$offset, Optional<Exec_View>:$whole);
  let results = (outs Exec_View:$result);
  let assemblyFormat = [{
    $buffer `[` custom<Number>($offset) `]` (`of` $whole^)? attr-dict `:` type($result) (`of` type($whole)^)?
  }];
  let extraClassDeclaration = [{
    /// The view of the full tensor: itself, where it is of no other.
    ::mlir::Value getTensor() { return getWhole() ? getWhole() : getResult(); }
  }];
}

def Exec_LoadOp : Exec_Op<"load", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a box of a parameter, in memory before the first run";
  let description = [{
    The box of `sizes` elements that begins at `starts` is loaded once, in a layout as exec.pack describes it. Floats are cast
    to the view's element type. If a shard ends beyond the parameter, or beyond the part of it that is sharded, `present` says
    how much of the box is there, from its start; the rest becomes zeros.

    Constraints: (C1) the symbol is an nn.param; (C2) starts, sizes and present have one entry per dim, and what is present is
    within the box and the parameter, on every rank; (C3) the view has the shape of the box in the layout, no strides, and the
    parameter's element type, or another float; (C4) columns are in the rank table.
    Example: `exec.load @w starts [0, "model * 64"] sizes [384, 64] into %v : memref<384x64xf32>`
  }];
  let arguments = (ins FlatSymbolRefAttr:$param, Exec_Numbers:$starts, DenseI64ArrayAttr:$sizes,
                       OptionalAttr<DenseI64ArrayAttr>:$order, DefaultValuedAttr<I64Attr, "0">:$batch,
                       DefaultValuedAttr<I64Attr, "0">:$width, DefaultValuedAttr<I64Attr, "1">:$interleave, Exec_View:$target,
                       OptionalAttr<Exec_Numbers>:$present);
  let assemblyFormat = [{
    $param `starts` custom<Numbers>($starts) `sizes` $sizes (`present` custom<Numbers>($present)^)?
    (`order` $order^ `batch` $batch `width` $width `interleave` $interleave)? `into` $target attr-dict `:` type($target)
  }];
  let builders = [OpBuilder<(ins "::mlir::FlatSymbolRefAttr":$param, "::mlir::ArrayAttr":$starts,
                                 "::llvm::ArrayRef<int64_t>":$sizes, "::mlir::Value":$target), [{
    build($_builder, $_state, param.getAttr(), starts, sizes, /*order=*/nullptr, /*batch=*/0, /*width=*/0,
          /*interleave=*/1, target, /*present=*/nullptr);
  }]>];
  let extraClassDeclaration = [{
    /// Precondition: it has an order.
    Layout getLayout() {
      return {::llvm::SmallVector<int64_t>(*getOrder()), int64_t(getBatch()), int64_t(getWidth()), int64_t(getInterleave())};
    }
  }];
}

//===----------------------------------------------------------------------===//
// What callers see
//===----------------------------------------------------------------------===//

class Exec_BoundaryOp<string mnemonic> : Exec_Op<mnemonic> {
  let arguments = (ins StrAttr:$name, Exec_View:$view, TypeAttrOf<AnyStaticShapeTensor>:$global, Exec_Numbers:$starts,
                       OptionalAttr<Exec_NumberAttr>:$term, OptionalAttr<I64Attr>:$index, OptionalAttr<Exec_Numbers>:$present);
  let assemblyFormat = [{
    $name `in` $view `:` type($view) `of` $global `starts` custom<Numbers>($starts) (`present` custom<Numbers>($present)^)? (`term` custom<Number>($term)^)? (`index` $index^)? attr-dict
  }];
  let hasVerifier = 1;
}

def Exec_InputOp : Exec_BoundaryOp<"input"> {
  let summary = "an argument of the program";
  let description = [{
    It is the tensor that the model calls `name`; `global` is its type before sharding. A rank has the box of the view's shape
    that begins at `starts`. Where the sharding is partial, it has one addend, whose number is `term`, of as many as there are
    ranks along the partial axes; ranks with equal boxes and addends have copies. Where shards are uneven, `present` says how
    much of the box is there, from its start; the rest is padding. Functions of a pipeline's ranks have the `index` among the
    model's inputs.

    Constraints: (C1) the view has the type of a shard: the global type's local one; (C2) one start per dim, and one entry of
    present per dim if and only if the sharding is uneven; (C3) there is a term if and only if the sharding is partial; (C4)
    columns are in the rank table.
    Example: `exec.input "ids" in %x : memref<4x128xi64> of tensor<8x128xi64, #rows> starts ["data * 4", 0]`
  }];
}

def Exec_OutputOp : Exec_BoundaryOp<"output"> {
  let summary = "a result of the program";
  let description = [{
    As `exec.input`. In a buffer of the kind *state*, the output, or its last positions, is the next call's input.

    Constraints: (C1) to (C4) as exec.input.
    Example: `exec.output "y" in %y : memref<4x128xf32> of tensor<4x128xf32, #terms> starts [0, 0] term "model"`
  }];
}

#endif // CLEAVE_EXEC_MEMORY
