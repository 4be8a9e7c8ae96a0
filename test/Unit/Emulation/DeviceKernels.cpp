//===- DeviceKernels.cpp - kernels of regions on the emulated device ------===//
#include "DeviceKernels.h"

#include "cleave/EmulatedKernels/EmulateDevice.h"
#include "mlir/Parser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include <cmath>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;
using reference::Tensor;

std::vector<double> cleave::codegen::getNumbers(const Tensor &tensor) {
  std::vector<double> numbers;
  if (tensor.getElementType().isInteger(1)) {
    for (APInt number : tensor.toAttr().getValues<APInt>())
      numbers.push_back(double(number.getZExtValue()));
    return numbers;
  }
  for (APFloat number : tensor.toAttr().getValues<APFloat>()) {
    bool isInexact = false;
    number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &isInexact);
    numbers.push_back(number.convertToDouble());
  }
  return numbers;
}

double cleave::codegen::roundToTf32(double number) {
  if (number == 0)
    return 0;
  int exponent = 0;
  double fraction = std::frexp(number, &exponent);
  return std::ldexp(std::round(std::ldexp(fraction, 11)), exponent - 11);
}

DeviceKernelsTest::DeviceKernelsTest() {
  loadDeviceDialects(context);
  cuda = llvm::cantFail(CudaTarget::create("sm_90"));
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

std::string DeviceKernelsTest::runAlone(StringRef text, StringRef name, uint64_t seed,
                                        function_ref<std::string(ArrayRef<Tensor>, ArrayRef<double>)> compare,
                                        function_ref<void(ModuleOp)> damage) {
  OwningOpRef<ModuleOp> source = parseSourceString<ModuleOp>(text, &context);
  if (!source)
    return "cannot parse: " + errors;
  func::FuncOp func = *source->getOps<func::FuncOp>().begin();
  if (std::string reason; !canEmitDevice(func.front(), reason))
    return kRefused;
  OwningOpRef<ModuleOp> kernels = ModuleOp::create(UnknownLoc::get(&context));
  DeviceKernel launch = emitDeviceKernel(func.front(), name, *kernels, *cuda);
  if (damage)
    damage(*kernels);
  const emulation::Module *module = load(*kernels);
  if (!module)
    return "cannot load: " + errors;
  SmallVector<Tensor> inputs = drawInputs(func, seed);
  Tensor output = Tensor::zeros(cast<RankedTensorType>(func.getResultTypes()[0]));
  std::string finding = run(*module, launch, inputs, output);
  return finding.empty() ? compare(inputs, getNumbers(output)) : finding;
}
