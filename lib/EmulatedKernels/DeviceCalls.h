//===- DeviceCalls.h - calls of the emulator in place of a GPU's own -*- C++ -*-===//
#ifndef CLEAVE_LIB_EMULATEDKERNELS_DEVICECALLS_H
#define CLEAVE_LIB_EMULATEDKERNELS_DEVICECALLS_H

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"

namespace cleave::codegen {

/// Calls of cleave::emulation::Hooks, by the position of the function in that struct.
enum class Hook {
  ReadRegister,
  Barrier,
  Access,
  AccessRange,
  GetShared,
  MeetWarp,
  CopyAsync,
  CommitCopies,
  WaitForCopies
};

/// Makes the calls, and the constants that they take.
class HookCaller {
public:
  explicit HookCaller(llvm::Module &module);

  /// At the insertion point of `b`.
  llvm::CallInst *call(Hook hook, llvm::Type *result, llvm::ArrayRef<llvm::Value *> arguments);
  /// A cleave::emulation::Site.
  llvm::Constant *makeSite(const llvm::Instruction &at, uint32_t flags, uint32_t bytes, uint32_t alignment,
                           uint32_t object);
  /// Text that ends with a zero byte.
  llvm::Constant *makeText(llvm::StringRef text);
  llvm::GlobalVariable *makeConstant(llvm::Constant *value);
  llvm::GlobalVariable *getHooks() const { return hooks; }
  /// Sites are numbered anew in each kernel.
  void beginKernel() { sites = 0; }

  llvm::IRBuilder<> b;

private:
  llvm::Module &module;
  llvm::GlobalVariable *hooks;
  uint32_t sites = 0;
};

/// Loads and stores that a call makes: cp.async and memcpy and their like. Which object each belongs to is found later, so
/// they are noted with the instruction that stands for them.
struct RangeAccess {
  llvm::Instruction *before;
  llvm::Value *pointer;
  llvm::Value *bytes; // null: cp.async or ldmatrix, whose site is the operand `site` of `before`
  uint32_t flags, fixedBytes;
  unsigned site;
};

/// Registers, barriers, warp operations, asynchronous copies, libdevice: what a GPU's IR calls becomes what this machine has.
/// An error names what is not known. Appends to `accesses`.
llvm::Error replaceCalls(llvm::Function &kernel, HookCaller &caller, llvm::SmallVectorImpl<RangeAccess> &accesses);

/// Arithmetic of bf16 in f32, with results rounded to nearest even by integers: what processors do themselves flushes
/// denormals.
llvm::Error expandBf16(llvm::Function &kernel);

} // namespace cleave::codegen

#endif // CLEAVE_LIB_EMULATEDKERNELS_DEVICECALLS_H
