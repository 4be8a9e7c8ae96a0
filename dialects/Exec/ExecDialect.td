//===- ExecDialect.td - what a device does ----------------------*- tablegen -*-===//
#ifndef CLEAVE_EXEC_DIALECT
#define CLEAVE_EXEC_DIALECT

include "mlir/IR/OpBase.td"

def Exec_Dialect : Dialect {
  let name = "exec";
  let cppNamespace = "::cleave::exec";
  let summary = "what a device does: kernels and commands";
  let description = [{
    The dialect is the program of one device, from ops to commands. First, fusion puts the ops of a function into groups that
    run as one kernel each (`exec.fused`). Then equal groups become one `exec.kernel`, started by `exec.launch`. What a library
    of the device computes in one call is a kernel, too: it is the fallback where there is no library.

    In addition, a function holds parameters and constants (`nn.load`, `nn.constant`), collectives of `spmd`, and *aliases*:
    ops of `nn` whose result is in the bytes of their operand (`getAliasOffset`).

    After buffer assignment no tensors are left outside of kernels. There are buffers (`exec.buffer`), tensors in them
    (`exec.view`), parameters that are loaded once (`exec.load`), what callers see (`exec.input`, `exec.output`), and
    commands: `exec.run`, `exec.copy`, `exec.collective`, `exec.exchange`, each one command of a program file. Ranks run the
    same commands; a number that differs between them is in the rank table, the attribute `exec.rank_table` of the module.
  }];
  let dependentDialects = ["::cleave::nn::NnDialect"];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let extraClassDeclaration = [{
    /// Of a module: a dictionary from the name of a column to the number of each rank.
    static constexpr ::llvm::StringLiteral kRankTableAttr = "exec.rank_table";
  }];
}

#endif // CLEAVE_EXEC_DIALECT
