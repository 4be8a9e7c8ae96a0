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
    The operand, with what the plan wishes of it. It stands between a value and all its users while the model is brought
    into canonical form, so that no rewrite looks through it, and two equal values that a plan names apart stay apart.
    `spmd-pin-wishes` makes it, `spmd-annotate` turns the wish into types. A pin with a wish stays even if nothing uses
    it: the wish is not lost in silence.

    Example: `%y = spmd.pin %x "hidden" wants #spmd.wish<#rows, loc("p.yaml":3:5), loc("p.yaml":3:14)> : tensor<8x4xf32>`
  }];
  let arguments = (ins AnyStaticShapeTensor:$input, StrAttr:$name, OptionalAttr<Spmd_WishAttr>:$wish);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = "$input $name (`wants` $wish^)? attr-dict `:` type($input)";
}

def Spmd_ConstrainOp : Spmd_Op<"constrain", [Pure]> {
  let summary = "a value that must have a given sharding";
  let description = [{
    The operand, in the sharding of the result type. A wish written by hand inside a function; propagation keeps it.

    One made for a tensor of the model has its name.

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
    Partitioning turns it into the cheapest sequence of collectives (`ReshardPlanner`).

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

// What each rank does by itself, knowing its place on the mesh.
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
    Example: `%s = spmd.all_reduce sum %p over {"model"} : tensor<4x128xf32>`, and as with every collective what it is
    for may stand behind: `cause "contracting dim of nn.einsum is sharded over model"`
  }];
  let arguments = (ins Spmd_ReductionKindAttr:$kind, AnyStaticShapeTensor:$input, Spmd_Axes:$axes, OptionalAttr<StrAttr>:$cause);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = "`` $kind $input `over` custom<Axes>($axes) attr-dict `:` type($input) (`cause` $cause^)?";
}

def Spmd_AllGatherOp : Spmd_CollectiveOp<"all_gather"> {
  let summary = "concatenates shards along dims";
  let description = [{
    Per dim, the pieces of the ranks along the listed axes (major to minor) in row-major order.

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
  let summary = "combines operands of ranks, each rank keeping its own piece";
  let description = [{
    An all_reduce over all listed axes, then the `local_slice` of `dims`.

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
    The `all_gather` of `gather` followed by the `local_slice` of `slice`, each rank sending just what others keep.

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
  let summary = "each rank's own piece of a value that all of them hold";
  let description = [{
    No communication. Per dim the piece whose number is the rank's row-major index along the listed axes.

    Constraints: as reduce_scatter.
    Example: `%s = spmd.local_slice %x dims [{"model"}, {} ] : (tensor<8x8xf32>) -> tensor<2x8xf32>`
  }];
  let arguments = (ins AnyStaticShapeTensor:$input, Spmd_AxesPerDim:$dims);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = "$input `dims` custom<AxesPerDim>($dims) attr-dict `:` functional-type($input, $result)";
  let hasVerifier = 1;
}

def Spmd_PermuteOp : Spmd_CollectiveOp<"permute"> {
  let summary = "exchanges pieces point to point, from one sharding to another";
  let description = [{
    Every rank receives each piece of its shard under `to` that it does not hold under `from`, from the holder that
    shares its other mesh coordinates.

    Constraints: (C1) neither sharding is partial; (C2) operand and result types are the local types of `global` under
    `from` and `to`; (C3) both are over the module's mesh; (C4) no sub-axis of one excludes one of the other: an axis of
    6 is cut as 2 * 3 or as 3 * 2, not both.
    Example: `%y = spmd.permute %x from #rows to #cols of tensor<8x8xf32> : (tensor<2x8xf32>) -> tensor<8x2xf32>`
  }];
  let arguments = (ins AnyStaticShapeTensor:$input, Spmd_ShardingAttr:$from, Spmd_ShardingAttr:$to,
                       TypeAttrOf<AnyStaticShapeTensor>:$global, OptionalAttr<StrAttr>:$cause);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = "$input `from` $from `to` $to `of` $global attr-dict `:` functional-type($input, $result) (`cause` $cause^)?";
  let hasVerifier = 1;
}

def Spmd_WindowOp : Spmd_CollectiveOp<"window"> {
  let summary = "each rank's interval of a dim, with the edges of its neighbors";
  let description = [{
    The operands of a group are the shards of one value, per dim along the listed axes. Per dim, the rank with index r
    along these axes gets positions `[r * step + low, r * step + high)` of it: its own piece with rows of its neighbors,
    or another piece. What lies beyond the ends of the value is `fill`; without it, the nearest position there is, or, where
    it `wraps`, the value once more, or, where it `reflects`, the value in a mirror on its last position. Only what a rank does not have travels, from the rank of the group that has it, also over more than one neighbor.

    Where shards are uneven the last `missing` positions of a dim are padding, which is beyond the value. Ranks with an index
    below `on` need their intervals, from position `from` up to position `to`; the rest of a result may be anything.

    Constraints: (C1) axes exist and do not overlap; (C2) one axis list, step, low and high per dim; (C3) a result dim is
    high - low; (C4) steps are 0 where there are no axes; (C5) `fill` is a number of the element type; of
    `fill`, `wraps` and `reflects` one at most is there; (C6) missing, from, to and on stand there together, one per dim (where
    there are no axes they do not count), and of the shards at most all is missing.

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
    /// Per dim of the operand, who has what and who wants what. Precondition: the op is valid.
    ::llvm::SmallVector<DimWindow, 4> getWindows();
  }];
}

def Spmd_JoinOp : Spmd_CollectiveOp<"join"> {
  let summary = "parts that are cut along one dim, put one behind the other and cut anew";
  let description = [{
    The operand of a rank has along `dim`, one behind the other, the rank's shard of each part; the result has the rank's shard of
    all parts put one behind the other. Part i has `parts[i]` positions in all its shards. Where ranks do not divide a number of
    positions, shards are rounded up, and the last ones end in padding. Only what a rank does not have travels.

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

def Spmd_SplitOp : Spmd_CollectiveOp<"split"> {
  let summary = "a shard of parts that stand one behind the other, taken apart and each part cut anew";
  let description = [{
    The other way round than `spmd.join`: the operand of a rank has along `dim` the rank's shard of all parts put one behind the
    other; the result has, one behind the other, the rank's shard of each part. Part i has `parts[i]` positions in all its shards.
    Where ranks do not divide a number of positions, shards are rounded up, and the last ones end in padding. Only what a rank
    does not have travels.

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
  let summary = "a whole value as terms: itself on the first rank, nothing on the others";
  let description = [{
    The operand on the ranks whose index along the axes is 0; on the others what changes nothing when it is combined
    with it: 0 for a sum, 1 for a product, the least element for a maximum (minus infinity where there is one), the
    greatest for a minimum. No communication; an all_reduce over the axes gives the operand back.

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
