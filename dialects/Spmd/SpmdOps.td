//===- SpmdOps.td - reshards and collectives --------------------*- tablegen -*-===//
#ifndef CLEAVE_SPMD_OPS
#define CLEAVE_SPMD_OPS

include "SpmdAttrs.td"
include "SpmdInterfaces.td"
include "SpmdNames.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"

class Spmd_Op<string mnemonic, list<Trait> traits = []> : Op<Spmd_Dialect, mnemonic, traits>;

def Spmd_Axes : TypedArrayAttrBase<Spmd_AxisAttr, "list of mesh axes, major to minor">;
// One axis list per dim of the operand.
def Spmd_AxesPerDim : TypedArrayAttrBase<Spmd_Axes, "list of mesh axes per dim">;

//===----------------------------------------------------------------------===//
// Before partitioning: global types
//===----------------------------------------------------------------------===//

def Spmd_PinOp : Spmd_Op<"pin", [AllTypesMatch<["input", "result"]>,
                                 DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "a value that a plan names";
  let description = [{
    The result is the operand, with the plan's sharding annotation of it. While the model is brought into canonical form,
    a pin is between a value and all its users: no rewrite looks through it, and two equal values with different names in
    a plan stay two values. `spmd-pin-annotations` makes pins, `spmd-annotate` turns their annotations into types. A pin with
    an annotation stays even if nothing uses it, so no annotation is lost silently.

    Example: `%y = spmd.pin %x "hidden" wants #spmd.annotation<#rows, loc("p.yaml":3:5), loc("p.yaml":3:14)> : tensor<8x4xf32>`
  }];
  let arguments = (ins AnyStaticShapeTensor:$input, StrAttr:$name, OptionalAttr<Spmd_AnnotationAttr>:$annotation);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = "$input $name (`wants` $annotation^)? attr-dict `:` type($input)";
}

def Spmd_ConstrainOp : Spmd_Op<"constrain", [Pure]> {
  let summary = "a value that must have a given sharding";
  let description = [{
    The result is the operand, in the sharding of the result type. It is a sharding annotation written by hand inside a
    function; propagation keeps it. A constraint made for a tensor of the model has the tensor's name.

    Constraints: (C1) operand and result have one shape and element type; (C2) the result type carries a sharding.
    Example: `%y = spmd.constrain %x : tensor<8x4xf32> to tensor<8x4xf32, #rows> for "hidden"`
  }];
  let arguments = (ins AnyStaticShapeTensor:$input, OptionalAttr<StrAttr>:$name);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = "$input `:` type($input) `to` type($result) (`for` $name^)? attr-dict";
  let hasVerifier = 1;
}

def Spmd_ReshardOp : Spmd_Op<"reshard", [Pure]> {
  let summary = "the same value in another sharding";
  let description = [{
    Partitioning turns a reshard into the sequence of collectives of least cost (`ReshardPlanner`).

    Constraints: (C1) operand and result have one shape and element type; (C2) both types carry shardings over one mesh.
    Example: `%y = spmd.reshard %x : tensor<8x4xf32, #rows> to tensor<8x4xf32, #cols>`
  }];
  let arguments = (ins AnyStaticShapeTensor:$input);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `to` type($result)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// After partitioning: per-device types
//===----------------------------------------------------------------------===//

// What ranks do together. Axes and kind are checked by CollectiveOpInterface, for all of these.
class Spmd_CollectiveOp<string mnemonic, list<string> methods = [], list<Trait> traits = []>
    : Spmd_Op<mnemonic, traits # [Pure, DeclareOpInterfaceMethods<CollectiveOpInterface, methods>]>;

// What each rank does by itself, by its coordinates on the mesh.
class Spmd_RankOp<string mnemonic, list<Trait> traits = []>
    : Spmd_Op<mnemonic, traits # [Pure, CollectiveOpInterface]> {
  code rankDeclaration = [{
    ::llvm::SmallVector<AxisAttr> getGroupAxes();
    int64_t getWireBytes() { return 0; }
    bool communicates() { return false; }
  }];
  let extraClassDeclaration = rankDeclaration;
}

def Spmd_AllReduceOp : Spmd_CollectiveOp<"all_reduce", ["getReductionKind"], [AllTypesMatch<["input", "result"]>]> {
  let summary = "combines the operands of all ranks that differ only in the given axes";
  let description = [{
    Constraints: (C1) axes exist and do not overlap; (C2) operand and result types are equal; (C3) the kind is legal for
    the element type, as in (S6) of a sharding.
    Example: `%s = spmd.all_reduce sum %p over {"model"} : tensor<4x128xf32>`. Every collective may say after its types
    what it is for: `cause "contracting dim of nn.einsum is sharded over model"`
  }];
  let arguments = (ins Spmd_ReductionKindAttr:$kind, AnyStaticShapeTensor:$input, Spmd_Axes:$axes, OptionalAttr<StrAttr>:$cause);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = "`` $kind $input `over` custom<Axes>($axes) attr-dict `:` type($input) (`cause` $cause^)?";
}

def Spmd_AllGatherOp : Spmd_CollectiveOp<"all_gather"> {
  let summary = "concatenates shards along dims";
  let description = [{
    Each dim of the result has the shards of the ranks along the listed axes (major to minor), in row-major order.

    Constraints: (C1) axes exist and do not overlap; (C2) one list per dim; (C3) a result dim is the operand dim times
    the extents of its axes.
    Example: `%g = spmd.all_gather %x dims [{"model"}, {} ] : (tensor<2x8xf32>) -> tensor<8x8xf32>`
  }];
  let arguments = (ins AnyStaticShapeTensor:$input, Spmd_AxesPerDim:$dims, OptionalAttr<StrAttr>:$cause);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = "$input `dims` custom<AxesPerDim>($dims) attr-dict `:` functional-type($input, $result) (`cause` $cause^)?";
  let hasVerifier = 1;
}

def Spmd_ReduceScatterOp : Spmd_CollectiveOp<"reduce_scatter", ["getReductionKind"]> {
  let summary = "combines operands of ranks; each rank keeps its own shard";
  let description = [{
    It is an all_reduce over all listed axes, then the `local_slice` of `dims`.

    Constraints: (C1), (C2) as all_gather; (C3) an operand dim is the result dim times the extents of its axes; (C4) the
    kind is legal for the element type.
    Example: `%s = spmd.reduce_scatter sum %p dims [{"model"}, {} ] : (tensor<8x8xf32>) -> tensor<2x8xf32>`
  }];
  let arguments = (ins Spmd_ReductionKindAttr:$kind, AnyStaticShapeTensor:$input, Spmd_AxesPerDim:$dims, OptionalAttr<StrAttr>:$cause);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = "`` $kind $input `dims` custom<AxesPerDim>($dims) attr-dict `:` functional-type($input, $result) (`cause` $cause^)?";
  let hasVerifier = 1;
}

def Spmd_AllToAllOp : Spmd_CollectiveOp<"all_to_all"> {
  let summary = "moves axes from some dims to others";
  let description = [{
    It is the `all_gather` of `gather`, then the `local_slice` of `slice`. Each rank sends only what other ranks keep.

    Constraints: (C1) axes exist and do not overlap within a side; (C2) one list per dim on both sides; (C3) both sides
    hold the same axes; (C4) result dim = operand dim times extents gathered, over extents sliced.
    Example: `%t = spmd.all_to_all %x gather [{"x"}, {} ] slice [{}, {"x"} ] : (tensor<2x8xf32>) -> tensor<8x2xf32>`
  }];
  let arguments = (ins AnyStaticShapeTensor:$input, Spmd_AxesPerDim:$gather, Spmd_AxesPerDim:$slice,
                       OptionalAttr<StrAttr>:$cause);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = "$input `gather` custom<AxesPerDim>($gather) `slice` custom<AxesPerDim>($slice) attr-dict `:` functional-type($input, $result) (`cause` $cause^)?";
  let hasVerifier = 1;
}

def Spmd_LocalSliceOp : Spmd_RankOp<"local_slice"> {
  let summary = "each rank's own shard of a value that is replicated";
  let description = [{
    It does not communicate. Along each dim a rank keeps the shard whose number is its row-major index along the listed
    axes.

    Constraints: as reduce_scatter.
    Example: `%s = spmd.local_slice %x dims [{"model"}, {} ] : (tensor<8x8xf32>) -> tensor<2x8xf32>`
  }];
  let arguments = (ins AnyStaticShapeTensor:$input, Spmd_AxesPerDim:$dims);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = "$input `dims` custom<AxesPerDim>($dims) attr-dict `:` functional-type($input, $result)";
  let hasVerifier = 1;
}

def Spmd_PermuteOp : Spmd_CollectiveOp<"permute", ["getNumPeers"]> {
  let summary = "exchanges pieces point to point, from one sharding to another";
  let description = [{
    Every rank receives each piece of its shard under `to` that it does not hold under `from`, from the holder that
    shares its other mesh coordinates.

    Constraints: (C1) neither sharding is partial; (C2) operand and result types are the local types of `global` under
    `from` and `to`; (C3) both are over the module's mesh; (C4) no sub-axis of one excludes one of the other: an axis of
    6 is split as 2 * 3 or as 3 * 2, not both.
    Example: `%y = spmd.permute %x from #rows to #cols of tensor<8x8xf32> : (tensor<2x8xf32>) -> tensor<8x2xf32>`
  }];
  let arguments = (ins AnyStaticShapeTensor:$input, Spmd_ShardingAttr:$from, Spmd_ShardingAttr:$to,
                       TypeAttrOf<AnyStaticShapeTensor>:$global, OptionalAttr<StrAttr>:$cause);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = "$input `from` $from `to` $to `of` $global attr-dict `:` functional-type($input, $result) (`cause` $cause^)?";
  let hasVerifier = 1;
}

def Spmd_WindowOp : Spmd_CollectiveOp<"window", ["getNumPeers"]> {
  let summary = "halo exchange: each rank's interval of a dim, with the edges of its neighbors";
  let description = [{
    The operands of a group are the shards of one value, along each dim by its listed axes. Along each dim, the rank with
    index r along these axes gets positions `[r * step + low, r * step + high)`: its own shard with rows of its neighbors,
    or another interval. Positions beyond the ends of the value are `fill`; without it they repeat the nearest position, or,
    with `wraps`, they continue with the value again, or, with `reflects`, with its mirror image around the last position.
    A rank receives only what it does not have, from the rank of the group that has it, even if that is not a neighbor.

    Where shards are uneven, the last `missing` positions of a dim are padding, which is beyond the value. Ranks with an index
    below `on` need their intervals, from position `from` up to position `to`; the rest of a result may be anything.

    Constraints: (C1) axes exist and do not overlap; (C2) one axis list, step, low and high per dim; (C3) a result dim is
    high - low; (C4) steps are 0 where there are no axes; (C5) `fill` is a number of the element type; of
    `fill`, `wraps` and `reflects` at most one is given; (C6) missing, from, to and on are given together, one per dim (where
    there are no axes they do not count), and no more positions are missing than the shards have.

    Example: rows of a picture, 8 on each rank, with one more on each side
    `%w = spmd.window %x dims [{}, {"x"} ] steps [0, 8] lows [0, -1] highs [4, 9] fill 0.0 : f32 : (tensor<4x8xf32>) -> tensor<4x10xf32>`
  }];
  let arguments = (ins AnyStaticShapeTensor:$input, Spmd_AxesPerDim:$dims, DenseI64ArrayAttr:$steps, DenseI64ArrayAttr:$lows,
                       DenseI64ArrayAttr:$highs, OptionalAttr<TypedAttrInterface>:$fill, UnitAttr:$wraps, UnitAttr:$reflects,
                       OptionalAttr<StrAttr>:$cause, OptionalAttr<DenseI64ArrayAttr>:$missing,
                       OptionalAttr<DenseI64ArrayAttr>:$firsts, OptionalAttr<DenseI64ArrayAttr>:$ends,
                       OptionalAttr<DenseI64ArrayAttr>:$takers);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = "$input `dims` custom<AxesPerDim>($dims) `steps` $steps `lows` $lows `highs` $highs (`fill` $fill^)? (`wraps` $wraps^)? (`reflects` $reflects^)? (`missing` $missing^)? (`from` $firsts^)? (`to` $ends^)? (`on` $takers^)? attr-dict `:` functional-type($input, $result) (`cause` $cause^)?";
  let hasVerifier = 1;
  let hasFolder = 1;
  let extraClassDeclaration = [{
    /// Per dim of the operand, what each rank has and what each rank needs. Precondition: the op is valid.
    ::llvm::SmallVector<DimWindow, 4> getWindows();
  }];
}

def Spmd_JoinOp : Spmd_CollectiveOp<"join", ["getNumPeers"]> {
  let summary = "concatenates parts that are sharded along one dim, and shards the result";
  let description = [{
    Along `dim`, the operand of a rank is the concatenation of the rank's shards of all parts; the result is the rank's shard of
    the concatenation of all parts. Part i has `parts[i]` positions in all its shards. Where ranks do not divide a number of
    positions, shards are rounded up, and the last ones end in padding. Ranks receive only what they do not have.

    Constraints: (C1) axes exist and do not overlap; (C2) `dim` is a dim; (C3) no part is negative; (C4) the operand's dim is
    the sum of the shards of all parts, the result's a shard of the sum, and the other dims and element types are equal.

    Example: on two ranks, `a b c` on each becomes `a a b` on the first one and `b c c` on the second
    `%j = spmd.join %x dim 0 parts [4, 4, 4] over {"x"} : (tensor<6x4xf32>) -> tensor<6x4xf32>`
  }];
  let arguments = (ins AnyStaticShapeTensor:$input, I64Attr:$dim, DenseI64ArrayAttr:$parts, Spmd_Axes:$axes,
                       OptionalAttr<StrAttr>:$cause);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = "$input `dim` $dim `parts` $parts `over` custom<Axes>($axes) attr-dict `:` functional-type($input, $result) (`cause` $cause^)?";
  let hasVerifier = 1;
}

def Spmd_SplitOp : Spmd_CollectiveOp<"split", ["getNumPeers"]> {
  let summary = "splits a sharded concatenation into its parts, and shards each part";
  let description = [{
    It is the inverse of `spmd.join`. Along `dim`, the operand of a rank is the rank's shard of the concatenation of all parts; the
    result is the concatenation of the rank's shards of all parts. Part i has `parts[i]` positions in all its shards. Where ranks
    do not divide a number of positions, shards are rounded up, and the last ones end in padding. Ranks receive only what they do
    not have.

    Constraints: (C1) axes exist and do not overlap; (C2) `dim` is a dim; (C3) no part is negative; (C4) the operand's dim is
    a shard of the sum of all parts, the result's the sum of the shards, and the other dims and element types are equal.

    Example: on two ranks, `a a b` on the first one and `b c c` on the second become `a b c` on each
    `%s = spmd.split %x dim 0 parts [4, 4, 4] over {"x"} : (tensor<6x4xf32>) -> tensor<6x4xf32>`
  }];
  let arguments = (ins AnyStaticShapeTensor:$input, I64Attr:$dim, DenseI64ArrayAttr:$parts, Spmd_Axes:$axes,
                       OptionalAttr<StrAttr>:$cause);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = "$input `dim` $dim `parts` $parts `over` custom<Axes>($axes) attr-dict `:` functional-type($input, $result) (`cause` $cause^)?";
  let hasVerifier = 1;
}

def Spmd_KeepOnFirstOp : Spmd_RankOp<"keep_on_first", [AllTypesMatch<["input", "result"]>]> {
  let summary = "makes a replicated value partial: the first rank keeps it, the others get the neutral element";
  let description = [{
    The result is the operand on the ranks whose index along the axes is 0. On the others it is the neutral element of
    the reduction: 0 for a sum, 1 for a product, the least element for a maximum (minus infinity where there is one), the
    greatest for a minimum. It does not communicate; an all_reduce over the axes gives the operand back.

    Constraints: as all_reduce.
    Example: `%t = spmd.keep_on_first sum %x over {"model"} : tensor<4x128xf32>`
  }];
  let arguments = (ins Spmd_ReductionKindAttr:$kind, AnyStaticShapeTensor:$input, Spmd_Axes:$axes);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = "`` $kind $input `over` custom<Axes>($axes) attr-dict `:` type($input)";
  let extraClassDeclaration = rankDeclaration # [{
    std::optional<ReductionKind> getReductionKind() { return getKind(); }
  }];
}

def Spmd_AxisIndexOp : Spmd_RankOp<"axis_index"> {
  let summary = "the rank's row-major index along axes";
  let description = [{
    Constraints: (C1) axes exist and do not overlap.
    Example: `%i = spmd.axis_index {"data", "model"} : tensor<i64>`
  }];
  let arguments = (ins Spmd_Axes:$axes);
  let results = (outs 0DTensorOf<[I64]>:$result);
  let assemblyFormat = "custom<Axes>($axes) attr-dict `:` type($result)";
}

#endif // CLEAVE_SPMD_OPS
