//===- NnBase.td - classes that the op families share -----------*- tablegen -*-===//
#ifndef CLEAVE_NN_BASE
#define CLEAVE_NN_BASE

include "NnDialect.td"
include "Spmd/SpmdInterfaces.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Nn_Tensor : StaticShapeTensorOf<[F32, F16, BF16, F64, AnyI<1>, AnyI<8>, I16, I32, I64, UI8, UI16, UI32, UI64]>;
def Nn_FloatTensor : StaticShapeTensorOf<[F32, F16, BF16, F64]>;
def Nn_NumberTensor : StaticShapeTensorOf<[F32, F16, BF16, F64, I8, I16, I32, I64, UI8, UI16, UI32, UI64]>;
def Nn_IntegerTensor : StaticShapeTensorOf<[I8, I16, I32, I64, UI8, UI16, UI32, UI64]>;
def Nn_IndexTensor : StaticShapeTensorOf<[I32, I64]>;
def Nn_BoolTensor : StaticShapeTensorOf<[I1]>;

// Every op: pure, with a sharding rule and a per-device form. Ops with their own per-device form add
// `Nn_OwnPartition`; the others are cloned on local types.
class Nn_OpBase<string mnemonic, list<Trait> traits = []> : Op<Nn_Dialect, mnemonic, traits>;
class Nn_Op<string mnemonic, list<Trait> traits = []>
    : Nn_OpBase<mnemonic, !listconcat(traits, [Pure, DeclareOpInterfaceMethods<ShardingRuleOpInterface>])>;
def Nn_ClonePartition : DeclareOpInterfaceMethods<PartitionOpInterface>;
def Nn_OwnPartition : DeclareOpInterfaceMethods<PartitionOpInterface, ["partition"]>;

// Result types follow from operands and attributes; sharded types are compared by shape and element type.
def Nn_InferTypes : TraitList<[InferTypeOpAdaptorWithIsCompatible]>;

// Unary and binary elementwise ops.
def Nn_Elementwise : NativeOpTrait<"Elementwise"> { let cppNamespace = "::cleave::nn"; }

#endif // CLEAVE_NN_BASE
