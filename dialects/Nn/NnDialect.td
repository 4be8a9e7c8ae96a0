//===- NnDialect.td - the imported model ------------------------*- tablegen -*-===//
#ifndef CLEAVE_NN_DIALECT
#define CLEAVE_NN_DIALECT

include "mlir/IR/OpBase.td"

def Nn_Dialect : Dialect {
  let name = "nn";
  let cppNamespace = "::cleave::nn";
  let summary = "a neural network as imported: static shapes, structural parameters as attributes";
  let description = [{
    The dialect is a small core that every ONNX op is imported into. Operands and results are ranked tensors of static
    shape; everything that determines a shape is an attribute. Operand and result types may differ in sharding (the
    encoding); verifiers compare shapes and element types only. Weights are `nn.param` symbols that refer to bytes in a file.
  }];
  let hasConstantMaterializer = 1;
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = ["::cleave::spmd::SpmdDialect"];
  let extraClassDeclaration = [{
    /// What passes of spmd ask of this dialect.
    void addProgram();
    /// What the generated files of the families call (lib/Dialect/Nn/IR/GeneratedOps.h).
    template <typename... Ops> void addOps() { addOperations<Ops...>(); }
    // The names of nodes and tensors are in cleave/Dialect/Spmd/IR/Names.h, which the code that decides shardings reads.
    /// Argument attribute of the entry function: the elements that the model was imported for. Shapes were computed from
    /// them, so no other elements may be given.
    static constexpr ::llvm::StringLiteral kValueAttr = "nn.value";
  }];
}

#endif // CLEAVE_NN_DIALECT
