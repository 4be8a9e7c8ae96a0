//===- ExecInterfaces.td - what commands have in common ---------*- tablegen -*-===//
#ifndef CLEAVE_EXEC_INTERFACES
#define CLEAVE_EXEC_INTERFACES

include "mlir/IR/OpBase.td"

def Exec_CommandOpInterface : OpInterface<"CommandOpInterface"> {
  let description = [{
    What a rank does at one step, on memory: it reads some views and writes others, on its stream. Where a step works on one
    tensor in place, it reads all of it before it writes.
  }];
  let cppNamespace = "::cleave::exec";
  let methods = [
    InterfaceMethod<"The views that are read.", "::mlir::OperandRange", "getReads", (ins), "",
                    "return $_op.getODSOperands(0);">,
    InterfaceMethod<"The views that are written, all of their elements.", "::mlir::OperandRange", "getWrites", (ins), "",
                    "return $_op.getODSOperands(1);">,
    InterfaceMethod<"The stream that it is on.", "uint64_t", "getStream">,
    InterfaceMethod<"Puts it on a stream.", "void", "setStream", (ins "uint64_t":$stream)>,
  ];
}

#endif // CLEAVE_EXEC_INTERFACES
