//===- DeviceKernels.cpp - kernels of regions on the emulated device ------===//
#include "DeviceKernels.h"

#include "cleave/Codegen/EmulateDevice.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;
using reference::Tensor;

DeviceKernelsTest::DeviceKernelsTest() {
  loadDeviceDialects(context);
  cuda = CudaTarget::create("sm_90", errors);
}

const emulation::Module *DeviceKernelsTest::load(ModuleOp kernels) {
  llvm::LLVMContext llvmContext;
  std::unique_ptr<llvm::Module> device = translateDevice(kernels, *cuda, llvmContext);
  if (!device)
    return nullptr;
  llvm::Expected<std::string> image = makeEmulatedLibrary(*device, *target);
  if (!image) {
    errors = llvm::toString(image.takeError());
    return nullptr;
  }
  // Open as long as the process lives: the loader knows libraries by their names, which have this number.
  int file = memfd_create("regions", 0);
  if (write(file, image->data(), image->size()) != ssize_t(image->size()))
    return nullptr;
  void *library = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL);
  auto *module = library ? static_cast<const emulation::Module *>(dlsym(library, emulation::moduleSymbol)) : nullptr;
  if (module)
    *module->hooks = &emulation::getHooks();
  return module;
}

/// Memory at multiples of 256, as a device's.
static std::unique_ptr<char, decltype(&free)> makeBuffer(ArrayRef<char> bytes) {
  size_t size = (bytes.size() + 511) / 256 * 256;
  std::unique_ptr<char, decltype(&free)> buffer(static_cast<char *>(aligned_alloc(256, size)), free);
  memset(buffer.get(), 0xff, size);
  memcpy(buffer.get(), bytes.data(), bytes.size());
  return buffer;
}

std::string DeviceKernelsTest::run(const emulation::Module &module, const DeviceKernel &made, ArrayRef<Tensor> inputs,
                                   MutableArrayRef<Tensor> outputs, ArrayRef<int64_t> inPlace) {
  const emulation::Kernel *kernel =
      llvm::find_if(ArrayRef(module.kernels, module.kernelCount),
                    [&](const emulation::Kernel &other) { return made.name == other.name; });
  if (kernel == module.kernels + module.kernelCount)
    return "there is no kernel " + made.name;
  std::vector<std::unique_ptr<char, decltype(&free)>> memory;
  std::vector<void *> buffers, parameters;
  for (const Tensor &input : inputs) {
    memory.push_back(makeBuffer(input.getBytes()));
    buffers.push_back(memory.back().get());
  }
  for (auto [i, output] : llvm::enumerate(outputs)) {
    int64_t place = inPlace.empty() ? -1 : inPlace[i];
    if (place < 0)
      memory.push_back(makeBuffer(std::vector<char>(output.getBytes().size(), char(0xff))));
    buffers.push_back(place < 0 ? memory.back().get() : buffers[place]);
  }
  for (void *&buffer : buffers)
    parameters.push_back(&buffer);
  emulation::Launch launch;
  launch.kernel = kernel;
  llvm::copy(made.grid, launch.grid);
  llvm::copy(made.block, launch.block);
  launch.parameters = parameters.data();
  std::string finding = emulation::run(launch);
  for (auto [i, output] : llvm::enumerate(outputs))
    memcpy(output.write<char>().data(), buffers[inputs.size() + i], output.getBytes().size());
  return finding;
}
