//===- DeviceRunner.cpp - kernels of a device against the evaluator -------===//
//
// The device's LLVM IR runs on this machine, under the emulator, which checks every access.
//
//===----------------------------------------------------------------------===//
#include "KernelRunner.h"
#include "cleave/Codegen/Device/Device.h"
#include "cleave/EmulatedKernels/EmulateDevice.h"
#include "cleave/Emulation/Kernel.h"

#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

#include <cstring>

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;
using reference::Tensor;

namespace {
/// Memory as a device gives it: aligned, and full of NaN.
class DeviceMemory {
public:
  explicit DeviceMemory(size_t size) : data(static_cast<char *>(aligned_alloc(256, llvm::alignTo(size + 1, 256)))) {
    memset(data, 0xff, llvm::alignTo(size + 1, 256));
  }
  ~DeviceMemory() { free(data); }
  DeviceMemory(const DeviceMemory &) = delete;
  char *data;
};
} // namespace

/// The kernel of the only function, ready to be launched; null with `error`.
static const emulation::Kernel *load(llvm::orc::LLJIT &jit, ModuleOp kernels, const CudaTarget &target,
                                     const HostTarget &host, std::string &error) {
  auto context = std::make_unique<llvm::LLVMContext>();
  std::unique_ptr<llvm::Module> module = translateDevice(kernels, target, *context);
  if (!module)
    return error = "cannot be lowered", nullptr;
  if (llvm::Error fault = emulate(*module, host))
    return error = llvm::toString(std::move(fault)), nullptr;
  module->setTargetTriple(host.getMachine().getTargetTriple());
  module->setDataLayout(jit.getDataLayout());
  if (llvm::Error fault = jit.addIRModule({std::move(module), std::move(context)}))
    return error = llvm::toString(std::move(fault)), nullptr;
  auto *loaded = llvm::cantFail(jit.lookup(emulation::moduleSymbol)).toPtr<const emulation::Module *>();
  *loaded->hooks = &emulation::getHooks();
  return loaded->kernels;
}

std::string cleave::codegen::runOnDevice(Block &region, const CudaTarget &target, const HostTarget &host,
                                         ArrayRef<Tensor> inputs, SmallVectorImpl<Tensor> &got,
                                         ArrayRef<InPlace> places) {
  TypeRange results = region.getTerminator()->getOperandTypes();
  SmallVector<int64_t> inPlace(results.size(), -1);
  for (InPlace place : places)
    inPlace[place.result] = place.argument;
  OwningOpRef<ModuleOp> kernels = ModuleOp::create(UnknownLoc::get(region.getParentOp()->getContext()));
  DeviceKernel launch = emitDeviceKernel(region, "kernel", *kernels, target, inPlace);
  auto jit = llvm::cantFail(llvm::orc::LLJITBuilder().create());
  std::string error;
  const emulation::Kernel *kernel = load(*jit, *kernels, target, host, error);
  if (!kernel)
    return error;
  std::vector<std::unique_ptr<DeviceMemory>> memory;
  std::vector<void *> buffers;
  for (const Tensor &input : inputs) {
    memory.push_back(std::make_unique<DeviceMemory>(input.getBytes().size()));
    memcpy(memory.back()->data, input.getBytes().data(), input.getBytes().size());
    buffers.push_back(memory.back()->data);
  }
  for (auto [i, type] : llvm::enumerate(results)) {
    got.push_back(Tensor::zeros(cast<RankedTensorType>(type)));
    if (inPlace[i] < 0)
      memory.push_back(std::make_unique<DeviceMemory>(got.back().getBytes().size()));
    buffers.push_back(inPlace[i] < 0 ? memory.back()->data : buffers[inPlace[i]]);
  }
  std::vector<void *> parameters;
  for (void *&buffer : buffers)
    parameters.push_back(&buffer);
  emulation::Launch run;
  run.kernel = kernel;
  std::copy(launch.grid.begin(), launch.grid.end(), run.grid);
  std::copy(launch.block.begin(), launch.block.end(), run.block);
  run.parameters = parameters.data();
  std::string fault = emulation::run(run);
  for (auto [i, output] : llvm::enumerate(got))
    memcpy(output.write<char>().data(), buffers[inputs.size() + i], output.getBytes().size());
  return fault;
}
