//===- KernelRunner.cpp - kernels against the evaluator -------------------===//
//
// Behind each buffer lies a page that faults, so that a load or store behind the end is seen.
//
//===----------------------------------------------------------------------===//
#include "KernelRunner.h"

#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/FormatVariadic.h"

#include <cstring>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;
using reference::Tensor;

namespace {

/// Bytes that end at a page that faults, so that a load or store behind the end is seen.
class Guarded {
public:
  explicit Guarded(size_t size) : size(size) {
    size_t page = getpagesize();
    length = (size + page - 1) / page * page + page;
    memory = static_cast<char *>(mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(memory + length - page, page, PROT_NONE);
    memset(memory, 0xcd, length - page);
    data = memory + length - page - size;
  }
  ~Guarded() { munmap(memory, length); }
  Guarded(const Guarded &) = delete;

  char *data;
  size_t size;

private:
  char *memory;
  size_t length;
};

} // namespace

/// As the runtime does; where there are none, no kernel has any.
void cleave::codegen::askForTiles() {
#ifdef __x86_64__
  (void)syscall(SYS_arch_prctl, 0x1023, 18);
#endif
}

SmallVector<Tensor> cleave::codegen::runObject(StringRef object, StringRef name, ArrayRef<Tensor> inputs,
                                               TypeRange results, ArrayRef<InPlace> places) {
  auto jit = llvm::cantFail(llvm::orc::LLJITBuilder().create());
  llvm::cantFail(jit->addObjectFile(llvm::MemoryBuffer::getMemBufferCopy(object)));
  auto kernel = llvm::cantFail(jit->lookup(name)).toPtr<void (*)(void **)>();
  std::vector<std::unique_ptr<Guarded>> memory;
  std::vector<void *> buffers;
  for (const Tensor &input : inputs) {
    memory.push_back(std::make_unique<Guarded>(input.getBytes().size()));
    memcpy(memory.back()->data, input.getBytes().data(), input.getBytes().size());
    buffers.push_back(memory.back()->data);
  }
  SmallVector<Tensor> outputs;
  for (auto [i, type] : llvm::enumerate(results)) {
    outputs.push_back(Tensor::zeros(cast<RankedTensorType>(type)));
    const InPlace *found = llvm::find_if(places, [result = i](InPlace place) { return place.result == result; });
    if (found != places.end()) {
      buffers.push_back(buffers[found->argument]);
      continue;
    }
    memory.push_back(std::make_unique<Guarded>(outputs.back().getBytes().size()));
    buffers.push_back(memory.back()->data);
  }
  askForTiles();
  kernel(buffers.data());
  for (auto [i, output] : llvm::enumerate(outputs))
    memcpy(output.write<char>().data(), buffers[inputs.size() + i], output.getBytes().size());
  return outputs;
}

std::string cleave::codegen::findDifference(ArrayRef<Tensor> got, ArrayRef<Tensor> want) {
  for (auto [i, pair] : llvm::enumerate(llvm::zip_equal(got, want))) {
    auto &[a, b] = pair;
    Tolerance tolerance = getDefaultTolerance(a.getElementType());
    tolerance.atol = tolerance.rtol / 10;
    Difference difference = compare(a, b, tolerance);
    if (difference.position >= 0)
      return llvm::formatv("result {0}, element {1}: {2} in the kernel, {3} evaluated", i, difference.position,
                           double(getElement(a, difference.position)), double(getElement(b, difference.position)));
  }
  return "";
}
