//===- PipeDialect.td - a model as a pipeline -------------------*- tablegen -*-===//
#ifndef CLEAVE_PIPE_DIALECT
#define CLEAVE_PIPE_DIALECT

include "mlir/IR/OpBase.td"

def Pipe_Dialect : Dialect {
  let name = "pipe";
  let cppNamespace = "::cleave::pipe";
  let summary = "stages of a model";
  let description = [{
    A model is cut into *stages*, numbered along the graph, each of which lives on its own part of the mesh. Which stage an
    op is in stands on the op, `pipe.stage`, written by `pipe-assign-stages` or by hand. Parameters and constants have no
    stage: each stage that uses one has it.

    Constraints, checked wherever the attribute stands:
    * (P2) a stage is an integer of 64 bits, 0 or more;
    * (P3) edges go forward: no op is in an earlier stage than one whose result it uses.
  }];
  let useDefaultAttributePrinterParser = 0;
  let hasOperationAttrVerify = 1;
  let extraClassDeclaration = [{
    /// Of an op: its stage.
    static constexpr ::llvm::StringLiteral kStageAttr = "pipe.stage";
  }];
}

#endif // CLEAVE_PIPE_DIALECT
