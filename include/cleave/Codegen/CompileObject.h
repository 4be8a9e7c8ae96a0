//===- CompileObject.h - from LLVM IR to an object file ---------*- C++ -*-===//
#ifndef CLEAVE_CODEGEN_COMPILEOBJECT_H
#define CLEAVE_CODEGEN_COMPILEOBJECT_H

#include "llvm/Passes/PassBuilder.h"
#include <optional>
#include <string>

namespace cleave::codegen {

/// Layout, triple and, in every function, processor and features of `machine`.
void setTarget(llvm::Module &module, llvm::TargetMachine &machine);

using PassMaker = llvm::function_ref<llvm::ModulePassManager(llvm::PassBuilder &)>;
/// Runs the passes that `makePasses` builds, with all analyses that passes of `machine` may ask for.
void optimize(llvm::Module &module, llvm::TargetMachine &machine, PassMaker makePasses);

/// Nothing if the machine makes no objects.
std::optional<std::string> generateObject(llvm::Module &module, llvm::TargetMachine &machine);

} // namespace cleave::codegen

#endif // CLEAVE_CODEGEN_COMPILEOBJECT_H
