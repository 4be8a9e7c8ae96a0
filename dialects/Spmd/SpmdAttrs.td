//===- SpmdAttrs.td - mesh, axis and sharding attributes --------*- tablegen -*-===//
#ifndef CLEAVE_SPMD_ATTRS
#define CLEAVE_SPMD_ATTRS

include "SpmdDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/TensorEncoding.td"

// The C++ enum is written by hand (cleave/Sharding/ReductionKind.h): the code that decides shardings does not use MLIR.
def Spmd_ReductionKind : I32EnumAttr<"ReductionKind", "how partial results combine", [
    I32EnumAttrCase<"Sum", 0, "sum">, I32EnumAttrCase<"Prod", 1, "prod">,
    I32EnumAttrCase<"Max", 2, "max">, I32EnumAttrCase<"Min", 3, "min">]> {
  let cppNamespace = "::cleave::spmd";
  let genSpecializedAttr = 0;
}
def Spmd_ReductionKindAttr : EnumAttr<Spmd_Dialect, Spmd_ReductionKind, "reduction"> {
  let assemblyFormat = "$value";
}

class Spmd_Attr<string name, string attrMnemonic, list<Trait> traits = []> : AttrDef<Spmd_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

// A list of strings that owns their characters (the plain list parameter would keep references to the caller's).
def Spmd_Names : ArrayRefParameter<"::llvm::StringRef", "axis names"> {
  let allocator = [{
    auto owned = ::llvm::map_to_vector($_self, [&](::llvm::StringRef name) { return $_allocator.copyInto(name); });
    $_dst = $_allocator.copyInto(::llvm::ArrayRef<::llvm::StringRef>(owned));
  }];
}

def Spmd_MeshAttr : Spmd_Attr<"Mesh", "mesh"> {
  let summary = "named axes of devices, major to minor";
  let description = [{
    `#spmd.mesh<["data"=2, "model"=4]>`, optionally with the device of each rank:
    `#spmd.mesh<["data"=2, "model"=2], devices=[3, 2, 1, 0]>`. The rank of a coordinate is its row-major index.

    Constraints: (M1) axis names are distinct and not empty; (M2) sizes are at least 1 and their product is at most 2^22;
    (M3) `devices`, where given, is a permutation of the ranks.
  }];
  let parameters = (ins Spmd_Names:$names,
                        ArrayRefParameter<"int64_t", "axis sizes">:$sizes,
                        ArrayRefParameter<"int64_t", "device of each rank; empty = identity">:$devices);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Product of all axis sizes.
    int64_t getNumRanks() const;
    /// Position of the axis called `name`, or nothing.
    std::optional<unsigned> findAxis(::llvm::StringRef name) const;
    /// Ranks that differ along `axes` only, in their order. Precondition: they are axes of this mesh (S2 to S4).
    RankGroups getRankGroups(::llvm::ArrayRef<AxisAttr> axes) const;
  }];
}

def Spmd_AxisAttr : Spmd_Attr<"Axis", "axis"> {
  let summary = "a mesh axis or a digit of one";
  let description = [{
    `#spmd.axis<"model">`, or the sub-axis `#spmd.axis<"model":(2)4>`: the digit of size 4 whose more-major digits have
    product 2. In lists the short form `"model":(2)4` is used. A full axis has `preSize` 1 and `size` 0.
  }];
  let parameters = (ins StringRefParameter<"axis name">:$name, "int64_t":$preSize, "int64_t":$size);
  let hasCustomAssemblyFormat = 1;
  let builders = [AttrBuilder<(ins "::llvm::StringRef":$name), [{ return $_get($_ctxt, name, 1, 0); }]>];
  let extraClassDeclaration = [{
    bool isSubAxis() const { return getSize() != 0; }
    /// Number of ranks along this (sub-)axis of `mesh`.
    int64_t getExtent(MeshAttr mesh) const;
    /// The same by number. Precondition: it is one of `mesh`.
    SubAxis toSubAxis(MeshAttr mesh) const;
  }];
}

def Spmd_DimShardingAttr : Spmd_Attr<"DimSharding", "dim"> {
  let summary = "how one dim is sharded";
  let description = [{
    `{"data", "model"}`: the dim is sharded over both, major to minor; `{"data", ?}`: propagation may shard it further;
    `{?}p1`: it has priority 1 (0 is first).
  }];
  let parameters = (ins ArrayRefParameter<"AxisAttr", "axes, major to minor">:$axes, "bool":$isOpen, "int64_t":$priority);
  let hasCustomAssemblyFormat = 1;
}

def Spmd_ShardingAttr : Spmd_Attr<"Sharding", "sharding", [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let summary = "how a tensor is split over a mesh";
  let description = [{
    `#spmd.sharding<#mesh, [{"data"}, {"model":(1)2, ?}, {} ], partial = {"x": sum}, replicated = {"y"}, uneven>` is the
    encoding of a tensor type. It has one entry per dim.

    Constraints: (S1) as many entries as the tensor has dims; (S2) every axis is one of the mesh; (S3) no axis or
    overlapping sub-axis appears twice; (S4) a sub-axis divides its axis: pre-size times size divides the axis size, and
    size is above 1; (S5) the extent of each dim is a multiple of its number of shards, unless `uneven`; (S6) all
    partial axes have one reduction kind, and the kind is legal for the element type (sum and prod: numbers; max and
    min: numbers and bool); (S7) after propagation no dim is open.
  }];
  let parameters = (ins "MeshAttr":$mesh,
                        ArrayRefParameter<"DimShardingAttr", "one per dim">:$dims,
                        ArrayRefParameter<"AxisAttr", "axes over which the value is partial">:$partial,
                        "ReductionKind":$partialKind,
                        ArrayRefParameter<"AxisAttr", "axes over which it must stay replicated">:$replicated,
                        "bool":$uneven);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Fully replicated sharding of a tensor of `rank` dims.
    static ShardingAttr getReplicated(MeshAttr mesh, int64_t rank);
    /// Number of shards of dim `dim`.
    int64_t getNumShards(unsigned dim) const;
    /// Extents of one rank's shard of a tensor of `shape`, rounded up where uneven.
    ::llvm::SmallVector<int64_t> getLocalShape(::llvm::ArrayRef<int64_t> shape) const;
    /// First element of rank `rank`'s shard, per dim.
    ::llvm::SmallVector<int64_t> getOffset(::llvm::ArrayRef<int64_t> shape, int64_t rank) const;
    /// True if every rank holds the full value.
    bool isReplicated() const;
    bool isPartial() const { return !getPartial().empty(); }
    bool hasOpenDim() const;
  }];
}

def Spmd_AnnotationAttr : Spmd_Attr<"Annotation", "annotation"> {
  let summary = "what a plan annotates of a tensor, and where it says so";
  let description = [{
    `#spmd.annotation<#sharding, loc("plan.yaml":3:5), loc("plan.yaml":3:14)>`: the sharding, the location of the plan's rule, and
    the location of the rule's pattern.
  }];
  let parameters = (ins "ShardingAttr":$sharding, "::mlir::LocationAttr":$place, "::mlir::LocationAttr":$patternPlace);
  let assemblyFormat = "`<` $sharding `,` $place `,` $patternPlace `>`";
}

#endif // CLEAVE_SPMD_ATTRS
