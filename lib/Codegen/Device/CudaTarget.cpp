//===- CudaTarget.cpp - the GPU that kernels are for ----------------------===//
//
// LLVM knows which architectures there are, and for each the oldest version of PTX that knows it: kernels are written in that, so
// that drivers need be no newer than the GPU.
//
//===----------------------------------------------------------------------===//
#include "cleave/Codegen/Device/Device.h"

#include "cleave/Support/Status.h"
#include "cleave/Support/Suggest.h"
#include "llvm/ADT/StringExtras.h"
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
/// Whose kernels the emulated device takes.
static constexpr llvm::StringLiteral kEmulatedArchitecture = "sm_90";

/// Those that LLVM knows, from 8.0 on, that come close.
static std::string suggestArchitectures(llvm::StringRef wanted, const llvm::MCSubtargetInfo &known) {
  std::vector<llvm::StringRef> names;
  for (const llvm::SubtargetSubTypeKV &one : known.getAllProcessorDescriptions()) {
    llvm::StringRef digits = llvm::StringRef(one.Key);
    unsigned number = 0;
    if (digits.consume_front("sm_") && !digits.consumeInteger(10, number) && number >= 80)
      names.push_back(llvm::StringRef(one.Key));
  }
  std::vector<std::string> near = cleave::findNearestNames(wanted, names);
  return near.empty() ? "" : " (near it: " + llvm::join(near, ", ") + ")";
}

llvm::Expected<std::unique_ptr<CudaTarget>> CudaTarget::create(llvm::StringRef name) {
  llvm::StringRef architecture = name == kEmulated ? llvm::StringRef(kEmulatedArchitecture) : name;
  LLVMInitializeNVPTXTargetInfo();
  LLVMInitializeNVPTXTarget();
  LLVMInitializeNVPTXTargetMC();
  LLVMInitializeNVPTXAsmPrinter();
  llvm::Triple triple("nvptx64-nvidia-cuda");
  std::string error;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return makeError("{0}", error);
  llvm::StringRef digits = architecture;
  unsigned number = 0;
  bool isKnown = digits.consume_front("sm_") && !digits.consumeInteger(10, number);
  std::unique_ptr<llvm::MCSubtargetInfo> known(target->createMCSubtargetInfo(triple, "", ""));
  if (!isKnown || !known->isCPUStringValid(architecture) || number < 80)
    return makeError("no GPU of kernels is called '{0}': sm_80, sm_90, sm_100, sm_120 and others from sm_80 on are{1}",
                     architecture, suggestArchitectures(architecture, *known));
  // Kernels have instructions of 7.1; where no version is said, LLVM takes the one that the architecture came with.
  llvm::StringRef ptx = number < 87 ? "+ptx71" : "";
  std::unique_ptr<CudaTarget> made(new CudaTarget);
  made->architecture = architecture.str();
  made->emulated = name == kEmulated;
  made->fma = made->approximations = true;
  made->machine.reset(target->createTargetMachine(triple, architecture, ptx, llvm::TargetOptions(), std::nullopt,
                                                  std::nullopt, llvm::CodeGenOptLevel::Default));
  return made;
}
