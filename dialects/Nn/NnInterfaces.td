//===- NnInterfaces.td - what an op tells about itself ----------*- tablegen -*-===//
#ifndef CLEAVE_NN_INTERFACES
#define CLEAVE_NN_INTERFACES

include "mlir/IR/OpBase.td"

def Nn_LookupOpInterface : OpInterface<"LookupOpInterface"> {
  let description = [{
    An op that takes elements of one operand, `indices`, as places along a dim.
  }];
  let cppNamespace = "::cleave::nn";
  let methods = [
    InterfaceMethod<"The places.", "::mlir::Value", "getIndices", (ins), "return $_op.getIndices();">,
    InterfaceMethod<"How many places there are: an index is less.", "int64_t", "getNumPlaces">,
  ];
}

def Nn_FormOpInterface : OpInterface<"FormOpInterface"> {
  let description = [{
    How an op reads its operands for an element of its result: what decides which ops become one kernel (dialect `exec`).
    Each op of nn says it, by a trait (`Nn_Form`, `Nn_RowForm`, `Nn_Elementwise`).
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
    An op of one operand whose result has some of the operand's dims as they were. It can be done to each block of such a dim by itself.
  }];
  let cppNamespace = "::cleave::nn";
  let methods = [
    InterfaceMethod<[{
      Where `dim` of the operand is in the result, if it is one there and nothing else. What is behind its end in the result is cut off.
    }], "::std::optional<int64_t>", "followDim", (ins "int64_t":$dim)>,
  ];
}

def Nn_ReorderOpInterface : OpInterface<"ReorderOpInterface"> {
  let description = [{
    An op that means the same on operands whose dims stand in another order, once its attributes name the dims where they are then. Ops
    with the trait `Elementwise` do so without any change.
  }];
  let cppNamespace = "::cleave::nn";
  let methods = [
    InterfaceMethod<"True if it does in this order: dim i of the new operands is dim `order[i]` of the old ones.",
                    "bool", "canReorder", (ins "::llvm::ArrayRef<int64_t>":$order), "", "return true;">,
    InterfaceMethod<"Lets attributes follow. Operands and the result's type are the caller's business.",
                    "void", "reorder", (ins "::llvm::ArrayRef<int64_t>":$order), "", "return;">,
  ];
}

def Nn_StackOpInterface : OpInterface<"StackOpInterface"> {
  let description = [{
    An op that can be done for several operands at once, which lie one behind the other along a dim more, in front. Ops with the trait
    `Elementwise` can, too (`stackAligned`).
  }];
  let cppNamespace = "::cleave::nn";
  let methods = [
    InterfaceMethod<[{
      The op for `count` operands of each kind: of those with `isStacked` entry i is that of op i, others are the same for all.
      The result has the dim in front as well. Null where there is no op for it.
    }], "::mlir::Value", "stack", (ins "::cleave::nn::Composer &":$compose, "::llvm::ArrayRef<::mlir::Value>":$operands,
                                       "::llvm::ArrayRef<bool>":$isStacked, "int64_t":$count)>,
  ];
}

def Nn_GentleOpInterface : OpInterface<"GentleOpInterface"> {
  let description = [{
    An op whose result never falls where an operand rises, and never rises by more than that does: movement, extrema, sums with what
    stays.
  }];
  let cppNamespace = "::cleave::nn";
  let methods = [
    InterfaceMethod<"True if it is so where those of its operands rise for which `varies` says so.",
                    "bool", "isGentle", (ins "::llvm::ArrayRef<bool>":$varies), "", "return true;">,
  ];
}

#endif // CLEAVE_NN_INTERFACES
