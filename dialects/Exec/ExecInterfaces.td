//===- ExecInterfaces.td - what library commands have in common -*- tablegen -*-===//
#ifndef CLEAVE_EXEC_INTERFACES
#define CLEAVE_EXEC_INTERFACES

include "mlir/IR/OpBase.td"

def Exec_LibraryOpInterface : OpInterface<"LibraryOpInterface"> {
  let description = [{
    A command with a template or a library behind it. It means what one op of nn with the same operands and attributes
    means, and is legal where that is.
  }];
  let cppNamespace = "::cleave::exec";
  let methods = [StaticInterfaceMethod<"The name of the op of nn.", "::llvm::StringRef", "getMeaning">];
  let verify = "return ::cleave::exec::verifyMeaning($_op);";
}

#endif // CLEAVE_EXEC_INTERFACES
