//===- SpmdNames.td - what a plan addresses ---------------------*- tablegen -*-===//
#ifndef CLEAVE_SPMD_NAMES
#define CLEAVE_SPMD_NAMES

include "mlir/IR/OpBase.td"

def NodeLocInterface : AttrInterface<"NodeLocInterface"> {
  let cppNamespace = "::cleave::spmd";
  let description = [{
    Says which node of the imported model an op was made for, and what its tensors are called in the model. The location
    that an importer makes implements it. See `Names.h`.
  }];
  let methods = [
    InterfaceMethod<"Name of the node; empty for what is not a node (an initializer).", "::llvm::StringRef", "getNode">,
    InterfaceMethod<"Its op type.", "::llvm::StringRef", "getOpType">,
    InterfaceMethod<"Names of its operands.", "::llvm::ArrayRef<::llvm::StringRef>", "getOperands">,
    InterfaceMethod<"Per result of the op the names of its tensor; empty for helper ops within a node.",
                    "::llvm::ArrayRef<::llvm::ArrayRef<::llvm::StringRef>>", "getResults">,
    InterfaceMethod<"The module of the exporter's model that it stands in; empty where the file does not say.",
                    "::llvm::StringRef", "getModule">,
  ];
}

def ParameterOpInterface : OpInterface<"ParameterOpInterface"> {
  let cppNamespace = "::cleave::spmd";
  let description = [{
    An op whose one result is a parameter of the model, or a box of it.
  }];
  let methods = [
    InterfaceMethod<"The parameter's name.", "::llvm::StringRef", "getParameterName">,
    InterfaceMethod<"The shape of the full parameter.", "::llvm::ArrayRef<int64_t>", "getParameterShape">,
    InterfaceMethod<"Where the box begins in the parameter, one entry per dim; nothing if all of it is read.",
                    "::std::optional<::llvm::ArrayRef<int64_t>>", "getPartOffset">,
  ];
}

#endif // CLEAVE_SPMD_NAMES
