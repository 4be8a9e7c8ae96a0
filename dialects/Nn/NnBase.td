//===- NnBase.td - classes that the op families share -----------*- tablegen -*-===//
#ifndef CLEAVE_NN_BASE
#define CLEAVE_NN_BASE

include "NnDialect.td"
include "NnInterfaces.td"
include "Spmd/SpmdInterfaces.td"
include "Spmd/SpmdNames.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

// Types in which numbers are stored and nothing is computed: integers of 4 and 2 bits, floats of 8 and 4. They are moved, cast,
// quantized to and dequantized.
defvar Nn_SmallTypes = [I<4>, UI<4>, I<2>, UI<2>, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0FNU, F4E2M1FN];
defvar Nn_PlainTypes = [F32, F16, BF16, F64, I1, I8, I16, I32, I64, UI8, UI16, UI32, UI64];

def Nn_Tensor : StaticShapeTensorOf<!listconcat(Nn_PlainTypes, Nn_SmallTypes)>;
def Nn_PlainTensor : StaticShapeTensorOf<Nn_PlainTypes>;
def Nn_FloatTensor : StaticShapeTensorOf<[F32, F16, BF16, F64]>;
def Nn_NumberTensor : StaticShapeTensorOf<[F32, F16, BF16, F64, I8, I16, I32, I64, UI8, UI16, UI32, UI64]>;
def Nn_IntegerTensor : StaticShapeTensorOf<[I8, I16, I32, I64, UI8, UI16, UI32, UI64]>;
def Nn_QuantizedTensor : StaticShapeTensorOf<!listconcat([I8, I16, I32, I64, UI8, UI16, UI32, UI64], Nn_SmallTypes)>;
def Nn_IndexTensor : StaticShapeTensorOf<[I32, I64]>;
def Nn_BoolTensor : StaticShapeTensorOf<[I1]>;

// Every op is pure, has a sharding rule, and can be partitioned. Ops with a partitioning of their own add `Nn_OwnPartition`;
// the others are cloned on local types.
class Nn_OpBase<string mnemonic, list<Trait> traits = []> : Op<Nn_Dialect, mnemonic, traits>;
class Nn_Op<string mnemonic, list<Trait> traits = []>
    : Nn_OpBase<mnemonic, !listconcat(traits, [Pure, DeclareOpInterfaceMethods<ShardingRuleOpInterface>, Nn_FormOpInterface,
                                             Nn_SlopeOpInterface, Nn_DifferentiableOpInterface])>;
def Nn_ClonePartition : DeclareOpInterfaceMethods<PartitionOpInterface>;
def Nn_OwnPartition : DeclareOpInterfaceMethods<PartitionOpInterface, ["partition"]>;

// Result types follow from operands and attributes, without shardings: each op has a static `inferTypes` in the file of
// its family under lib/Dialect/Nn/IR. Types are compared by shape and element type, by a trait of our own: the interface's
// check would add a second, empty error to each.
class Nn_InferredTypes<code declaration, code definition>
    : NativeOpTrait<"InferredTypes", [], declaration, definition> { let cppNamespace = "::cleave::nn"; }
class Nn_InferTypesBy<code definition> : TraitList<[
  DeclareOpInterfaceMethods<InferTypeOpInterface>,
  Nn_InferredTypes<[{
    /// Gives the result types to `infer`, or rejects operands and attributes that break a constraint.
    static ::llvm::LogicalResult inferTypes(Adaptor op, ::cleave::nn::TypeInference &infer);
    static bool isCompatibleReturnTypes(::mlir::TypeRange lhs, ::mlir::TypeRange rhs) {
      return ::cleave::nn::haveSameShapes(lhs, rhs);
    }
    /// Leaves the check to the trait InferredTypes.
    static ::llvm::LogicalResult refineReturnTypes(
        ::mlir::MLIRContext *, ::std::optional<::mlir::Location>, ::mlir::ValueRange, ::mlir::DictionaryAttr,
        ::mlir::OpaqueProperties, ::mlir::RegionRange, ::llvm::SmallVectorImpl<::mlir::Type> &) {
      return ::mlir::success();
    }
  }], [{
    ::llvm::LogicalResult $cppClass::inferReturnTypes(
        ::mlir::MLIRContext *, ::std::optional<::mlir::Location> location, ::mlir::ValueRange operands,
        ::mlir::DictionaryAttr attributes, ::mlir::OpaqueProperties properties, ::mlir::RegionRange regions,
        ::llvm::SmallVectorImpl<::mlir::Type> &inferredReturnTypes) {
      ::cleave::nn::TypeInference infer($cppClass::getOperationName(), location, inferredReturnTypes);
      return inferTypes($cppClass::Adaptor(operands, attributes, properties, regions), infer);
    }
  }] # definition>]>;
def Nn_InferTypes : Nn_InferTypesBy<[{}]>;

// The three ways in which elementwise ops find their result: the operands' element type, bool, or that of the last two.
def Nn_InferElementwise : Nn_InferTypesBy<[{
    ::llvm::LogicalResult $cppClass::inferTypes(Adaptor op, ::cleave::nn::TypeInference &infer) {
      return infer.giveElementwise(op.getOperands(), op.getOperands());
    }
  }]>;
def Nn_InferElementwiseTest : Nn_InferTypesBy<[{
    ::llvm::LogicalResult $cppClass::inferTypes(Adaptor op, ::cleave::nn::TypeInference &infer) {
      return infer.giveElementwiseTest(op.getOperands());
    }
  }]>;
def Nn_InferSelect : Nn_InferTypesBy<[{
    ::llvm::LogicalResult $cppClass::inferTypes(Adaptor op, ::cleave::nn::TypeInference &infer) {
      return infer.giveElementwise(op.getOperands(), op.getOperands().drop_front());
    }
  }]>;

// How an op reads its operands (`Form` in Nn.h); an op without a form does not compile. `dims`: those of a row.
class Nn_FormBy<string form, code declaration = [{}]> : NativeOpTrait<"Formed", [], [{
    static ::cleave::nn::Form getForm() { return ::cleave::nn::Form::}] # form # "; }\n" # declaration> {
  let cppNamespace = "::cleave::nn";
}
class Nn_Form<string form> : Nn_FormBy<form>;
class Nn_SumForm<string form> : Nn_FormBy<form, "int64_t countSummed(unsigned operand);">;
class Nn_RowForm<code dims, string form = "Row">
    : Nn_FormBy<form, "::llvm::SmallVector<int64_t> getRowDims() { return " # dims # "; }">;

// How the result rises with an operand (`Slope` in Nn.h); what gradients read of the operands, where that depends on which are wanted.
class Nn_SlopeBy<code declaration> : NativeOpTrait<"Sloped", [], declaration> { let cppNamespace = "::cleave::nn"; }
class Nn_Slope<string slope> : Nn_SlopeBy<"static ::cleave::nn::Slope getSlope() { return ::cleave::nn::Slope::" # slope # "; }">;
def Nn_OwnSlope : Nn_SlopeBy<"::cleave::nn::Slope getSlope();">;
def Nn_OwnGradientReads : Nn_SlopeBy<"bool isReadForGradient(unsigned operand, ::llvm::ArrayRef<bool> wanted);">;

// How gradients come through an op (NnInterfaces.td); an op that does not say it does not compile. `Nn_NoGradient`: it goes in steps, or
// reads no floats. `reason`: completes "'nn.x' has no gradient".
class Nn_SaysGradient<code declaration> : NativeOpTrait<"SaysGradient", [], declaration> { let cppNamespace = "::cleave::nn"; }
def Nn_Differentiable : Nn_SaysGradient<"::llvm::LogicalResult differentiate(::cleave::nn::GradientBuilder &gradients);">;
def Nn_NoGradient : Nn_SaysGradient<[{
    static ::cleave::nn::Slope getSlope() { return ::cleave::nn::Slope::Zero; }
    ::llvm::LogicalResult differentiate(::cleave::nn::GradientBuilder &) { return ::mlir::success(); }
  }]>;
class Nn_NotDifferentiable<string reason> : Nn_SaysGradient<[{
    ::llvm::LogicalResult differentiate(::cleave::nn::GradientBuilder &gradients) {
      return ::cleave::nn::refuseGradient(gradients, "}] # reason # [{");
    }
  }]>;

// Elementwise ops, linear in no operand: their rule says that every dim is parallel. Those with a rule of their own take
// `Nn_Elementwise`.
class Nn_ElementwiseBy<code definition> : NativeOpTrait<"Elementwise", [], [{
    static ::cleave::nn::Form getForm() { return ::cleave::nn::Form::Map; }
  }], definition> {
  let cppNamespace = "::cleave::nn";
}
def Nn_Elementwise : Nn_ElementwiseBy<[{}]>;
def Nn_Pointwise : Nn_ElementwiseBy<[{
    ::cleave::spmd::ShardingRule $cppClass::getShardingRule() { return ::cleave::nn::getPointwiseRule(*this); }
  }]>;

// The result holds the operands' numbers: a random index stays an index through such ops.
def Nn_KeepsNumbers : NativeOpTrait<"KeepsNumbers"> { let cppNamespace = "::cleave::nn"; }
// The result holds the operand's numbers in a type to compute with.
def Nn_ConvertsNumbers : NativeOpTrait<"ConvertsNumbers"> { let cppNamespace = "::cleave::nn"; }
// Dim 1 of the first operand holds channels: no attribute says so.
def Nn_ChannelsSecond : NativeOpTrait<"ChannelsSecond"> { let cppNamespace = "::cleave::nn"; }
// One instruction makes a vector of the result.
def Nn_OneInstruction : NativeOpTrait<"OneInstruction"> { let cppNamespace = "::cleave::nn"; }
// Much more work than the result has elements: the importer folds such an op on small operands only.
def Nn_Laborious : NativeOpTrait<"Laborious"> { let cppNamespace = "::cleave::nn"; }
// What it does to dims, and to several operands at once (NnInterfaces.td). `Nn_Gentle`: in any operand.
def Nn_MovesDims : DeclareOpInterfaceMethods<Nn_MovesDimsOpInterface>;
def Nn_Reorder : DeclareOpInterfaceMethods<Nn_ReorderOpInterface, ["reorder"]>;
def Nn_ReorderSome : DeclareOpInterfaceMethods<Nn_ReorderOpInterface, ["canReorder", "reorder"]>;
def Nn_Stack : DeclareOpInterfaceMethods<Nn_StackOpInterface>;
defvar Nn_Gentle = Nn_GentleOpInterface;
def Nn_GentleInSome : DeclareOpInterfaceMethods<Nn_GentleOpInterface, ["isGentle"]>;
// Reads the operand `indices` as positions along a dim.
def Nn_Lookup : DeclareOpInterfaceMethods<Nn_LookupOpInterface>;

#endif // CLEAVE_NN_BASE
