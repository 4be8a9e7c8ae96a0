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
  ];
}

#endif // CLEAVE_NN_INTERFACES
