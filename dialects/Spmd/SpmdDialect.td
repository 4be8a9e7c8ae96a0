//===- SpmdDialect.td - how a program is split over a mesh ------*- tablegen -*-===//
#ifndef CLEAVE_SPMD_DIALECT
#define CLEAVE_SPMD_DIALECT

include "mlir/IR/OpBase.td"

def Spmd_Dialect : Dialect {
  let name = "spmd";
  let cppNamespace = "::cleave::spmd";
  let summary = "tensors split over a mesh of devices, and the collectives between them";
  let description = [{
    A *mesh* names the axes along which devices are arranged. A *sharding* says, per dim of a tensor, over which axes the
    dim is sharded, and over which axes the tensor is partial. It is the encoding of the tensor type: no rewrite can lose
    it, and a function's signature is the layout contract of its inputs and outputs.

    Before partitioning types are global and carry shardings, and `spmd.reshard` marks where a layout changes. After
    partitioning types are per device, without encoding, and the collectives here are the only communication. They name
    axes of the module's mesh (`spmd.mesh` attribute of the module), never device numbers.
  }];
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = [{
    /// Adds the attributes; called by `initialize`.
    void registerAttributes();
    /// Module attribute that holds the mesh of all collectives in the module.
    static constexpr ::llvm::StringLiteral kMeshAttr = "spmd.mesh";
    /// Module attribute: the phase that the module has been through (`Phase.h`), written by the gate of that phase.
    static constexpr ::llvm::StringLiteral kPhaseAttr = "spmd.phase";
    /// A plan's sharding annotation of a value. Until `spmd-annotate` it is a `#spmd.annotation`, on arguments and results of
    /// functions. From then on the type has the annotation, and the attribute is the location of the plan's rule, on
    /// arguments and ops with one result.
    static constexpr ::llvm::StringLiteral kAnnotationAttr = "spmd.annotation";
    /// Result attribute of a function: the name of the argument that it is the next call's value of (`States.h`).
    static constexpr ::llvm::StringLiteral kStateAttr = "spmd.state";
    /// Argument and result attribute of a partitioned function: the global type with its sharding.
    static constexpr ::llvm::StringLiteral kGlobalTypeAttr = "spmd.global";
    /// On a partitioned function: floating-point operations of the global program, which all ranks together run once.
    static constexpr ::llvm::StringLiteral kFlopsAttr = "spmd.flops";
    /// On a partitioned function with uneven shards: bytes of padding of all its values on all ranks, and bytes that these take
    /// (two numbers).
    static constexpr ::llvm::StringLiteral kPaddingAttr = "spmd.padding";
    /// On a function, between propagation and partitioning: bytes that the busiest rank will send, as decided.
    static constexpr ::llvm::StringLiteral kWireBytesAttr = "spmd.wire_bytes";
    /// On a module, between propagation and partitioning: the cost model that decided, where it is not the default one (`Costs.h`).
    static constexpr ::llvm::StringLiteral kCostsAttr = "spmd.costs";
    /// On a module: the machine that it is for, where a plan names one (`ClusterAttr.h`).
    static constexpr ::llvm::StringLiteral kClusterAttr = "spmd.cluster";
    /// On a function: where propagation had to replicate, one dictionary (op, node, axes, reason) per remark.
    static constexpr ::llvm::StringLiteral kReplicatedAttr = "spmd.replicated";
    /// On an op, between propagation and reshard insertion: the shardings its operands must have (array, unit = as is).
    static constexpr ::llvm::StringLiteral kOperandShardingsAttr = "spmd.operands";
    /// On an op, between propagation and reshard insertion: the shardings its results are computed in.
    static constexpr ::llvm::StringLiteral kResultShardingsAttr = "spmd.results";
  }];
}

#endif // CLEAVE_SPMD_DIALECT
