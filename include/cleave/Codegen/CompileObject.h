//===- CompileObject.h - from LLVM IR to an object file ---------*- C++ -*-===//
#ifndef CLEAVE_CODEGEN_COMPILEOBJECT_H
#define CLEAVE_CODEGEN_COMPILEOBJECT_H

#include "llvm/IR/IRBuilder.h"
#include "llvm/Passes/PassBuilder.h"
#include <optional>
#include <string>

namespace cleave::codegen {

/// Layout, triple and, in every function, processor and features of `machine`.
void setTarget(llvm::Module &module, llvm::TargetMachine &machine);

using PassMaker = llvm::function_ref<llvm::ModulePassManager(llvm::PassBuilder &)>;
/// Runs the passes that `makePasses` builds, with all analyses that passes of `machine` may ask for.
void optimize(llvm::Module &module, llvm::TargetMachine &machine, PassMaker makePasses);

/// f32, or vectors of it, as `type`, bf16 of the same shape: to nearest even, by integers alone; a NaN stays one.
llvm::Value *roundToBf16(llvm::IRBuilderBase &b, llvm::Value *value, llvm::Type *type);

/// Nothing if the machine makes no objects. What LLVM calls where a processor has no instruction to round to bf16 is in the object.
std::optional<std::string> generateObject(llvm::Module &module, llvm::TargetMachine &machine);

} // namespace cleave::codegen

#endif // CLEAVE_CODEGEN_COMPILEOBJECT_H
