//===- NnInterfaces.td - what an op says about itself -----------*- tablegen -*-===//
#ifndef CLEAVE_NN_INTERFACES
#define CLEAVE_NN_INTERFACES

include "mlir/IR/OpBase.td"

def Nn_LookupOpInterface : OpInterface<"LookupOpInterface"> {
  let description = [{
    An op that reads the elements of one operand, `indices`, as positions along a dim.
  }];
  let cppNamespace = "::cleave::nn";
  let methods = [
    InterfaceMethod<"The positions.", "::mlir::Value", "getIndices", (ins), "return $_op.getIndices();">,
    InterfaceMethod<"The number of positions: an index is less.", "int64_t", "getNumPlaces">,
  ];
}

def Nn_FormOpInterface : OpInterface<"FormOpInterface"> {
  let description = [{
    Says how an op reads its operands for an element of its result: its *form*. Fusion (dialect `exec`) decides by it which
    ops become one kernel. Each op of nn has a trait for it (`Nn_Form`, `Nn_RowForm`, `Nn_Elementwise`).
  }];
  let cppNamespace = "::cleave::nn";
  let methods = [
    StaticInterfaceMethod<"Its form.", "::cleave::nn::Form", "getForm">,
    InterfaceMethod<"Form::Row and Form::Scan: the dims of the first operand that are walked together, ascending.",
                    "::llvm::SmallVector<int64_t>", "getRowDims", (ins), "", "return {};">,
    InterfaceMethod<"Form::Row and Form::Scan: rows of the first operand; each has statistics of its own.",
                    "int64_t", "getNumRows", (ins), "", "return ::cleave::nn::countRows($_op, $_op.getRowDims());">,
    InterfaceMethod<"Form::Contraction and Form::Convolution: elements of an operand that are summed for one of the result.",
                    "int64_t", "countSummed", (ins "unsigned":$operand), "", "return 1;">,
  ];
}

def Nn_MovesDimsOpInterface : OpInterface<"MovesDimsOpInterface"> {
  let description = [{
    An op of one operand whose result has some of the operand's dims, unchanged. The op can run on each block of such a dim by
    itself.
  }];
  let cppNamespace = "::cleave::nn";
  let methods = [
    InterfaceMethod<[{
      The dim of the result that is exactly `dim` of the operand, if there is one. Where that is shorter in the result, the
      positions beyond its end are dropped.
    }], "::std::optional<int64_t>", "followDim", (ins "int64_t":$dim)>,
  ];
}

def Nn_ReorderOpInterface : OpInterface<"ReorderOpInterface"> {
  let description = [{
    An op that computes the same on operands whose dims are in another order, once its attributes name the dims in that order. Ops
    with the trait `Elementwise` do so without any change.
  }];
  let cppNamespace = "::cleave::nn";
  let methods = [
    InterfaceMethod<"True if it does so in this order: dim i of the new operands is dim `order[i]` of the old ones.",
                    "bool", "canReorder", (ins "::llvm::ArrayRef<int64_t>":$order), "", "return true;">,
    InterfaceMethod<"Changes the attributes to this order. The caller changes operands and the result's type.",
                    "void", "reorder", (ins "::llvm::ArrayRef<int64_t>":$order), "", "return;">,
  ];
}

def Nn_StackOpInterface : OpInterface<"StackOpInterface"> {
  let description = [{
    An op that can run for several operands at once, which are concatenated along one additional major dim. Ops with the trait
    `Elementwise` can, too (`stackAligned`).
  }];
  let cppNamespace = "::cleave::nn";
  let methods = [
    InterfaceMethod<[{
      The op for `count` ops at once: entry i of an operand with `isStacked` is the operand of op i, other operands are the same
      for all. The result has the additional major dim, too. Null where there is no such op.
    }], "::mlir::Value", "stack", (ins "::cleave::nn::Composer &":$compose, "::llvm::ArrayRef<::mlir::Value>":$operands,
                                       "::llvm::ArrayRef<bool>":$isStacked, "int64_t":$count)>,
  ];
}

def Nn_GentleOpInterface : OpInterface<"GentleOpInterface"> {
  let description = [{
    An op whose result never falls where an operand rises, and never rises by more than the operand does: movement, extrema, sums
    with operands that do not change.
  }];
  let cppNamespace = "::cleave::nn";
  let methods = [
    InterfaceMethod<"True if this holds where the operands rise that `varies` is true for.",
                    "bool", "isGentle", (ins "::llvm::ArrayRef<bool>":$varies), "", "return true;">,
  ];
}

def Nn_SlopeOpInterface : OpInterface<"SlopeOpInterface"> {
  let description = [{
    Says what the derivative of an op is made of. Each op of nn has it; what is moved, repeated or picked has the slope of a
    constant, others say theirs by `Nn_Slope`.
  }];
  let cppNamespace = "::cleave::nn";
  let methods = [
    InterfaceMethod<"How the result rises with an operand.", "::cleave::nn::Slope", "getSlope", (ins), "",
                    "return ::cleave::nn::getDefaultSlope($_op);">,
    InterfaceMethod<"True if the gradients of the operands with `wanted` are computed of this operand.",
                    "bool", "isReadForGradient", (ins "unsigned":$operand, "::llvm::ArrayRef<bool>":$wanted), "",
                    "return ::cleave::nn::isReadBySlope($_op, $_op.getSlope(), operand);">,
  ];
}

def Nn_DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let description = [{
    Says how gradients come through an op, in reverse. Each op of nn says one of three: `Nn_Differentiable` (it has a rule in
    lib/Dialect/Nn/Gradients), `Nn_NoGradient` (nothing comes through) or `Nn_NotDifferentiable` (with a reason).
  }];
  let cppNamespace = "::cleave::nn";
  let methods = [
    InterfaceMethod<[{
      Adds the gradients of the operands that are wanted, of which one at least is, made of those of the results. Fails where
      there is no rule for what is wanted, and says why.
    }], "::llvm::LogicalResult", "differentiate", (ins "::cleave::nn::GradientBuilder &":$gradients)>,
  ];
}

#endif // CLEAVE_NN_INTERFACES
