//===- ExecDialect.td - what a device does ----------------------*- tablegen -*-===//
#ifndef CLEAVE_EXEC_DIALECT
#define CLEAVE_EXEC_DIALECT

include "mlir/IR/OpBase.td"

def Exec_Dialect : Dialect {
  let name = "exec";
  let cppNamespace = "::cleave::exec";
  let summary = "what a device does: kernels and library commands";
  let description = [{
    The program of one device, on its way to commands. First the ops of a function are put into groups that run as one
    kernel each (`exec.fused`), and what has a template or a library of its own gets an op of its own (`exec.matmul`,
    `exec.conv`, `exec.attention`). Then equal groups become one `exec.kernel`, started by `exec.launch`.

    Beside these a function holds parameters and constants (`nn.load`, `nn.constant`), collectives of `spmd`, and
    *aliases*: ops of `nn` whose result lies in the bytes of their operand (`getAliasOffset`).
  }];
  let dependentDialects = ["::cleave::nn::NnDialect"];
}

#endif // CLEAVE_EXEC_DIALECT
