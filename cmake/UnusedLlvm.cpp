//===- UnusedLlvm.cpp - what LLD names and Cleave has no use for ----------===//
//
// For link-time optimization LLD sets up every target of LLVM, and its Debian package asks Polly for passes. Cleave gives it machine
// code alone. What is defined here is not taken from LLVM's archives, which makes `cleave` 109 MB and not 190; and Polly's package
// needs not be installed.
//
//===----------------------------------------------------------------------===//
#include "llvm/Plugins/PassPlugin.h"

llvm::PassPluginLibraryInfo getPollyPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "none", LLVM_VERSION_STRING, [](llvm::PassBuilder &) {}};
}

// The targets that kernels are compiled for (lib/Codegen/Host/Target.cpp, Device/CudaTarget.cpp) keep theirs: here they get other names.
#define LLVMInitializeX86TargetInfo cleaveHasX86TargetInfo
#define LLVMInitializeX86Target cleaveHasX86Target
#define LLVMInitializeX86TargetMC cleaveHasX86TargetMC
#define LLVMInitializeX86AsmPrinter cleaveHasX86AsmPrinter
#define LLVMInitializeX86AsmParser cleaveHasX86AsmParser
#define LLVMInitializeNVPTXTargetInfo cleaveHasNvptxTargetInfo
#define LLVMInitializeNVPTXTarget cleaveHasNvptxTarget
#define LLVMInitializeNVPTXTargetMC cleaveHasNvptxTargetMC
#define LLVMInitializeNVPTXAsmPrinter cleaveHasNvptxAsmPrinter

extern "C" {
#define LLVM_TARGET(name)                                                                                              \
  void LLVMInitialize##name##TargetInfo() {}                                                                           \
  void LLVMInitialize##name##Target() {}                                                                               \
  void LLVMInitialize##name##TargetMC() {}
#include "llvm/Config/Targets.def"
#define LLVM_ASM_PRINTER(name)                                                                                         \
  void LLVMInitialize##name##AsmPrinter() {}
#include "llvm/Config/AsmPrinters.def"
#define LLVM_ASM_PARSER(name)                                                                                          \
  void LLVMInitialize##name##AsmParser() {}
#include "llvm/Config/AsmParsers.def"
}
