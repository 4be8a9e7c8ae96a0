//===- CudaTarget.cpp - the GPU that kernels are for ----------------------===//
//
// LLVM knows which architectures there are. PTX is written in the oldest version that knows the architecture, so that
// drivers need be no newer than the GPU.
//
//===----------------------------------------------------------------------===//
#include "cleave/Codegen/Device.h"

#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Target/TargetMachine.h"

using namespace cleave::codegen;

// NVPTX is one of several targets of a library of LLVM; its header of declarations is not installed.
extern "C" {
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

/// Products are fused where a kernel says so and nowhere else: sums are then the same as on the host.
std::unique_ptr<CudaTarget> CudaTarget::create(llvm::StringRef architecture, std::string &error) {
  LLVMInitializeNVPTXTargetInfo();
  LLVMInitializeNVPTXTarget();
  LLVMInitializeNVPTXTargetMC();
  LLVMInitializeNVPTXAsmPrinter();
  llvm::Triple triple("nvptx64-nvidia-cuda");
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return nullptr;
  llvm::StringRef digits = architecture;
  unsigned number = 0;
  bool isKnown = digits.consume_front("sm_") && !digits.consumeInteger(10, number) && (digits.empty() || digits == "a");
  std::unique_ptr<llvm::MCSubtargetInfo> known(target->createMCSubtargetInfo(triple, "", ""));
  if (!isKnown || !known->isCPUStringValid(architecture) || number < 80) {
    error = ("no GPU of kernels is called '" + architecture + "': sm_80, sm_90, sm_100 and sm_120 are").str();
    return nullptr;
  }
  llvm::StringRef ptx = number >= 120 ? "+ptx87" : number >= 100 ? "+ptx86" : number >= 90 ? "+ptx80" : "+ptx71";
  std::unique_ptr<CudaTarget> made(new CudaTarget);
  made->architecture = architecture.str();
  made->fma = made->approximations = true;
  made->machine.reset(target->createTargetMachine(triple, architecture, ptx, llvm::TargetOptions(), std::nullopt,
                                                  std::nullopt, llvm::CodeGenOptLevel::Default));
  return made;
}
