//===- DeviceKernels.h - kernels of regions on the emulated device -*- C++ -*-===//
#ifndef CLEAVE_TEST_UNIT_EMULATION_DEVICEKERNELS_H
#define CLEAVE_TEST_UNIT_EMULATION_DEVICEKERNELS_H

#include "../Codegen/Harness.h"
#include "cleave/Codegen/Device/Device.h"
#include "cleave/Emulation/Kernel.h"

namespace cleave::codegen {

/// Floats, and bools as 0 and 1.
std::vector<double> getNumbers(const reference::Tensor &tensor);

/// f32 with 10 bits of fraction, halves away from zero.
double roundToTf32(double number);

/// What a function that no single kernel can do is told.
constexpr const char *kRefused = "refused";

/// Compiles kernels of devices for the emulator, without a driver.
class DeviceKernelsTest : public KernelTest {
protected:
  DeviceKernelsTest();
  /// The library of the kernels, which are used up; null, with `errors`, where there is none.
  const emulation::Module *load(mlir::ModuleOp kernels);
  /// What was found when it runs, on memory that begins as NaN. A result lies where argument `inPlace[i]` does, if that is no -1.
  std::string run(const emulation::Module &module, const DeviceKernel &launch, llvm::ArrayRef<reference::Tensor> inputs,
                  llvm::MutableArrayRef<reference::Tensor> outputs, llvm::ArrayRef<int64_t> inPlace = {});

  /// Runs the function of `text` as one kernel on drawn inputs. What is wrong: that it is not a kernel (`kRefused`), what was
  /// found on the way, or what `compare` says of its result. `damage` is done to the kernel before it is compiled.
  std::string
  runAlone(llvm::StringRef text, llvm::StringRef name, uint64_t seed,
           llvm::function_ref<std::string(llvm::ArrayRef<reference::Tensor>, llvm::ArrayRef<double>)> compare,
           llvm::function_ref<void(mlir::ModuleOp)> damage = nullptr);

  std::unique_ptr<CudaTarget> cuda;
};

} // namespace cleave::codegen

#endif // CLEAVE_TEST_UNIT_EMULATION_DEVICEKERNELS_H
