//===- ExecDialect.td - what a device does ----------------------*- tablegen -*-===//
#ifndef CLEAVE_EXEC_DIALECT
#define CLEAVE_EXEC_DIALECT

include "mlir/IR/OpBase.td"

def Exec_Dialect : Dialect {
  let name = "exec";
  let cppNamespace = "::cleave::exec";
  let summary = "what a device does: kernels and commands";
  let description = [{
    The program of one device, on its way to commands. First the ops of a function are put into groups that run as one
    kernel each (`exec.fused`). Then equal groups become one `exec.kernel`, started by `exec.launch`. What a library of the
    device computes as one call is a kernel too: it stands in where there is no library.

    Beside these a function holds parameters and constants (`nn.load`, `nn.constant`), collectives of `spmd`, and
    *aliases*: ops of `nn` whose result lies in the bytes of their operand (`getAliasOffset`).

    Then memory is planned, and no tensors are left outside of kernels: buffers (`exec.buffer`), tensors in them
    (`exec.view`), parameters that are loaded once (`exec.load`), what callers see (`exec.input`, `exec.output`), and
    commands: `exec.run`, `exec.copy`, `exec.collective`, `exec.exchange`, each one command of a program file. Ranks run the
    same commands; where a number differs between them it stands in the rank table, the attribute `exec.rank_table` of
    the module.
  }];
  let dependentDialects = ["::cleave::nn::NnDialect"];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let extraClassDeclaration = [{
    /// Of a module: a dictionary, by the name of a column the number of each rank.
    static constexpr ::llvm::StringLiteral kRankTableAttr = "exec.rank_table";
  }];
}

#endif // CLEAVE_EXEC_DIALECT
