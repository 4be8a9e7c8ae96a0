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

#endif // CLEAVE_NN_INTERFACES
