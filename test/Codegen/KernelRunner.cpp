//===- KernelRunner.cpp - kernels against the evaluator -------------------===//
#include "KernelRunner.h"
#include "Guards.h"

#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/FormatVariadic.h"

#include <cstring>
#include <sys/syscall.h>
#include <unistd.h>

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;
using reference::Tensor;

/// As the runtime does; where there are none, no kernel has any.
void cleave::codegen::askForTiles() {
#ifdef __x86_64__
  (void)syscall(SYS_arch_prctl, 0x1023, 18);
#endif
}

/// A result in place of an argument is the same bytes.
std::string cleave::codegen::runObject(StringRef object, StringRef name, ArrayRef<Tensor> inputs, TypeRange results,
                                       SmallVectorImpl<Tensor> &got, ArrayRef<InPlace> places) {
  auto jit = llvm::cantFail(llvm::orc::LLJITBuilder().create());
  auto addFunction = [&](StringRef name, auto *function) {
    llvm::orc::SymbolMap found{{jit->mangleAndIntern(name),
                                {llvm::orc::ExecutorAddr::fromPtr(function),
                                 llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable}}};
    llvm::cantFail(jit->getMainJITDylib().define(llvm::orc::absoluteSymbols(std::move(found))));
  };
  addFunction("cleave_take_scratch", test::cleave_take_scratch);
  addFunction("cleave_give_scratch", test::cleave_give_scratch);
  llvm::cantFail(jit->addObjectFile(llvm::MemoryBuffer::getMemBufferCopy(object)));
  auto kernel = llvm::cantFail(jit->lookup(name)).toPtr<test::KernelFunction>();
  std::vector<test::GuardedOperand> operands;
  auto add = [&](const Tensor &tensor, bool isWritten) {
    ArrayRef<char> bytes = tensor.getBytes();
    uint64_t alignment = std::max(tensor.getElementType().getIntOrFloatBitWidth() / 8, 1u);
    operands.push_back({const_cast<char *>(bytes.data()), bytes.size(), isWritten, alignment});
  };
  // What is written in place of an input is a copy of it.
  SmallVector<Tensor> copies(inputs);
  for (InPlace place : places) {
    copies[place.argument] = Tensor::zeros(inputs[place.argument].getType());
    llvm::copy(inputs[place.argument].getBytes(), copies[place.argument].write<char>().begin());
  }
  for (const Tensor &input : copies)
    add(input, false);
  for (Type type : results)
    got.push_back(Tensor::zeros(cast<RankedTensorType>(type)));
  for (const auto &[i, output] : llvm::enumerate(got)) {
    const InPlace *found = llvm::find_if(places, [result = i](InPlace place) { return place.result == result; });
    add(output, true);
    if (found != places.end())
      operands.back().data = operands[found->argument].data;
  }
  askForTiles();
  std::string fault = test::runBetweenGuards(kernel, operands);
  for (InPlace place : places)
    memcpy(got[place.result].write<char>().data(), operands[place.argument].data, operands[place.argument].bytes);
  return fault;
}

std::string cleave::codegen::findDifference(ArrayRef<Tensor> got, ArrayRef<Tensor> want) {
  for (auto [i, pair] : llvm::enumerate(llvm::zip_equal(got, want))) {
    auto &[a, b] = pair;
    Tolerance tolerance = getDefaultTolerance(a.getElementType());
    tolerance.atol = tolerance.rtol / 10;
    Difference difference = compare(a, b, tolerance);
    // One number does not show the scale of what was summed: inputs are about 1, so what cancels is judged by that.
    bool isCancelled = b.getNumElements() == 1 && difference.largest <= tolerance.atol;
    if (difference.position >= 0 && !isCancelled)
      return llvm::formatv("result {0}, element {1}: {2} in the kernel, {3} evaluated", i, difference.position,
                           double(getElement(a, difference.position)), double(getElement(b, difference.position)));
  }
  return "";
}
