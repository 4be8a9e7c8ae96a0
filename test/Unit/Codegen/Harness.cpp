//===- Harness.cpp - kernels against the evaluator in tests ---------------===//
#include "Harness.h"

#include "cleave/Dialect/Exec/IR/Exec.h"
#include "cleave/Reference/Evaluator.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/FormatVariadic.h"

#include <cstring>
#include <sys/mman.h>
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
  kernel(buffers.data());
  for (auto [i, output] : llvm::enumerate(outputs))
    memcpy(output.write<char>().data(), buffers[inputs.size() + i], output.getBytes().size());
  return outputs;
}

KernelTest::KernelTest() {
  context.loadDialect<func::FuncDialect, nn::NnDialect, spmd::SpmdDialect, exec::ExecDialect>();
  loadDialects(context);
  context.disableMultithreading();
  context.printOpOnDiagnostic(false);
  context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
    errors += diagnostic.str() + "\n";
    return success();
  });
  target = HostTarget::create("native", errors);
}

FailureOr<std::string> KernelTest::compile(StringRef text) {
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  if (!module)
    return failure();
  auto func = *module->getOps<func::FuncOp>().begin();
  if (!canEmit(func.front(), errors))
    return failure();
  OwningOpRef<ModuleOp> kernels = ModuleOp::create(UnknownLoc::get(&context));
  emitHostKernel(func.front(), "kernel", *kernels, *target);
  return compileObject(*kernels, *target);
}

std::string KernelTest::check(StringRef text, uint64_t seed) {
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  if (!module)
    return "cannot parse: " + errors;
  return checkOn(text, drawInputs(*module->getOps<func::FuncOp>().begin(), seed));
}

std::string KernelTest::checkOn(StringRef text, ArrayRef<Tensor> inputs, ArrayRef<InPlace> places) {
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  auto func = *module->getOps<func::FuncOp>().begin();
  SmallVector<Tensor> want;
  if (failed(reference::runGlobal(func, inputs, want)))
    return "cannot evaluate: " + errors;
  FailureOr<std::string> object = compile(text);
  if (failed(object))
    return "cannot compile: " + errors;
  SmallVector<Tensor> got = runObject(*object, "kernel", inputs, func.getResultTypes(), places);
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

std::string KernelTest::checkInPlace(StringRef text, uint64_t seed, int64_t &pairs) {
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  if (!module)
    return "cannot parse: " + errors;
  auto func = *module->getOps<func::FuncOp>().begin();
  SmallVector<Tensor> inputs = drawInputs(func, seed);
  SmallVector<InPlace> together;
  for (unsigned argument = 0; argument < func.getNumArguments(); ++argument)
    for (unsigned result = 0; result < func.getNumResults(); ++result) {
      InPlace pair{argument, result};
      if (!canBeInPlace(func.front(), argument, result))
        continue;
      ++pairs;
      if (std::string fault = checkOn(text, inputs, pair); !fault.empty())
        return llvm::formatv("result {0} in place of argument {1}: {2}", result, argument, fault);
      if (llvm::none_of(together, [&](InPlace other) { return other.argument == argument || other.result == result; }))
        together.push_back(pair);
    }
  return together.size() < 2 ? "" : checkOn(text, inputs, together);
}

std::string KernelTest::checkBody(StringRef body, ArrayRef<std::string> types, StringRef result, uint64_t seed) {
  std::string parameters;
  for (auto [i, type] : llvm::enumerate(types))
    parameters += llvm::formatv("{0}%a{1}: {2}", i ? ", " : "", i, type).str();
  return check(llvm::formatv("func.func @main({0}) -> {1} {{\n{2}\nreturn %y : {1}\n}", parameters, result, body).str(),
               seed);
}
