//===- CompileObject.h - from LLVM IR to an object file ---------*- C++ -*-===//
#ifndef CLEAVE_LIB_CODEGEN_COMPILEOBJECT_H
#define CLEAVE_LIB_CODEGEN_COMPILEOBJECT_H

#include <optional>
#include <string>

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace cleave::codegen {

/// Layout, triple and, in every function, processor and features of `machine`.
void setTarget(llvm::Module &module, llvm::TargetMachine &machine);

/// Optimises and generates; nothing if the machine makes no objects.
std::optional<std::string> generateObject(llvm::Module &module, llvm::TargetMachine &machine);

} // namespace cleave::codegen

#endif // CLEAVE_LIB_CODEGEN_COMPILEOBJECT_H
