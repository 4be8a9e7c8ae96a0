//===- EmulateDevice.h - a device's kernels for this machine ----*- C++ -*-===//
//
// Takes the LLVM IR of GPU kernels before libdevice and the NVPTX back end, and makes IR of this machine of it that runs under
// lib/Emulation. docs/emulation.md says what this shows and what it cannot.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_EMULATEDKERNELS_EMULATEDEVICE_H
#define CLEAVE_EMULATEDKERNELS_EMULATEDEVICE_H

#include "llvm/Support/Error.h"
#include <string>

namespace llvm {
class Module;
} // namespace llvm

namespace cleave::codegen {

class HostTarget;

/// `device` becomes a module of `host` that exports a cleave::emulation::Module with all of its kernels (functions of the
/// calling convention ptx_kernel). Every load and store, barrier and warp operation is a call of the emulator. What the
/// emulator does not know is an error that names it; `device` is then good for nothing.
llvm::Error emulate(llvm::Module &device, const HostTarget &host);

/// `emulate`, then the shared library that cuModuleLoadDataEx of the emulated driver takes. As for linkObject: not to be
/// called from two threads at once.
llvm::Expected<std::string> makeEmulatedLibrary(llvm::Module &device, const HostTarget &host);

} // namespace cleave::codegen

#endif // CLEAVE_EMULATEDKERNELS_EMULATEDEVICE_H
