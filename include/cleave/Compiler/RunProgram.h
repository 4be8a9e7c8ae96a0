//===- RunProgram.h - a program on tensors ----------------------*- C++ -*-===//
#ifndef CLEAVE_COMPILER_RUNPROGRAM_H
#define CLEAVE_COMPILER_RUNPROGRAM_H

#include "cleave/Assembly/Assembly.h"
#include "cleave/Compiler/Compilation.h"
#include "cleave/Reference/Tensor.h"
#include "cleave/Runtime/Executor.h"

namespace cleave {

/// How the program that `options` ask for is opened: one for the emulated device on devices that this machine plays.
runtime::ExecutorOptions getExecutorOptions(const CompileOptions &options);

/// Opens what has been assembled in this process; relative paths of weights are looked up in `folder`. The assembly is not
/// needed any more then.
llvm::Expected<std::unique_ptr<runtime::Executor>> openProgram(const Assembly &assembly, llvm::StringRef folder,
                                                               const runtime::ExecutorOptions &options = {});

/// Takes a loaded model all the way to a program of what its options ask for, on one device where it has no mesh, and opens that in this
/// process. Null after an error, which is the compilation's.
std::unique_ptr<runtime::Executor> openModel(Compilation &compilation);

/// A parameter that a step changes.
struct TrainedTensor {
  std::string name, type;
  int64_t elements = 0;
  std::string weight; ///< the parameter of the model that it begins as, or a part of it; may be empty
};
/// Those of a step, in its order.
std::vector<TrainedTensor> listTrained(mlir::func::FuncOp step);

/// Calls a program. `inputs` in its order, those of states empty that hold already what they begin as; `outputs` are the types of all of
/// its outputs, in order.
llvm::Expected<llvm::SmallVector<reference::Tensor>> runProgram(runtime::Executor &executor,
                                                                llvm::ArrayRef<reference::Tensor> inputs,
                                                                llvm::ArrayRef<mlir::RankedTensorType> outputs);

} // namespace cleave

#endif // CLEAVE_COMPILER_RUNPROGRAM_H
