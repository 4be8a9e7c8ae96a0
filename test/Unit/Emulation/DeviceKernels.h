//===- DeviceKernels.h - kernels of regions on the emulated device -*- C++ -*-===//
#ifndef CLEAVE_TEST_UNIT_EMULATION_DEVICEKERNELS_H
#define CLEAVE_TEST_UNIT_EMULATION_DEVICEKERNELS_H

#include "../Codegen/Harness.h"
#include "cleave/Codegen/Device.h"
#include "cleave/Emulation/Kernel.h"

namespace cleave::codegen {

/// Compiles kernels of devices for the emulator, without a driver.
class DeviceKernelsTest : public KernelTest {
protected:
  DeviceKernelsTest();
  /// The library of the kernels, which are used up; null, with `errors`, where there is none.
  const emulation::Module *load(mlir::ModuleOp kernels);
  /// What was found when it runs, on memory that begins as NaN. A result lies where argument `inPlace[i]` does, if that is no -1.
  std::string run(const emulation::Module &module, const DeviceKernel &launch, llvm::ArrayRef<reference::Tensor> inputs,
                  llvm::MutableArrayRef<reference::Tensor> outputs, llvm::ArrayRef<int64_t> inPlace = {});

  std::unique_ptr<CudaTarget> cuda;
};

} // namespace cleave::codegen

#endif // CLEAVE_TEST_UNIT_EMULATION_DEVICEKERNELS_H
