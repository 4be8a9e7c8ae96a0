//===- Kernels.cpp - functions of a file as kernels -----------------------===//
//
//   cleave-kernels FILE.mlir [--isa CPU]      prints the kernels of all functions, before they are lowered
//   cleave-kernels FILE.mlir --time           what compiling and running each costs, in thread CPU time: a line each,
//                                             `name<TAB>ns per element of its largest tensor`, and one for compiling
//
//===----------------------------------------------------------------------===//
#include "cleave/Codegen/Codegen.h"
#include "cleave/Compiler/Values.h"
#include "cleave/Dialect/Exec/IR/Exec.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/CommandLine.h"

#include <ctime>

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;
using reference::Tensor;
namespace cl = llvm::cl;

/// Seconds of this thread's work so far.
static double getSeconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec + time.tv_nsec * 1e-9;
}

/// The least time of some rounds, each of many calls.
static double timeCalls(void (*kernel)(void **), void **buffers) {
  int64_t calls = 1;
  double best = 1e9;
  for (int round = 0; round < 12;) {
    double start = getSeconds();
    for (int64_t i = 0; i < calls; ++i)
      kernel(buffers);
    double seconds = getSeconds() - start;
    if (seconds < 0.01) {
      calls *= 2;
      continue;
    }
    best = std::min(best, seconds / calls);
    ++round;
  }
  return best;
}

static void timeKernel(llvm::orc::LLJIT &jit, func::FuncOp func) {
  auto kernel = llvm::cantFail(jit.lookup(func.getName())).toPtr<void (*)(void **)>();
  SmallVector<Tensor> tensors = drawInputs(func, 1);
  for (Type type : func.getResultTypes())
    tensors.push_back(Tensor::zeros(cast<RankedTensorType>(type)));
  std::vector<void *> buffers;
  std::vector<std::unique_ptr<char[]>> memory;
  int64_t largest = 1;
  for (const Tensor &tensor : tensors) {
    memory.push_back(std::make_unique<char[]>(tensor.getBytes().size() + 64));
    char *aligned = memory.back().get() + (64 - uintptr_t(memory.back().get()) % 64);
    memcpy(aligned, tensor.getBytes().data(), tensor.getBytes().size());
    buffers.push_back(aligned);
    largest = std::max(largest, tensor.getNumElements());
  }
  llvm::outs() << llvm::formatv("{0}\t{1:F3}\n", func.getName(), timeCalls(kernel, buffers.data()) * 1e9 / largest);
}

int main(int argc, char **argv) {
  cl::opt<std::string> input(cl::Positional, cl::desc("FILE"), cl::Required);
  cl::opt<std::string> isa("isa", cl::desc("processor, as LLVM names it"), cl::init("native"));
  cl::opt<bool> times("time", cl::desc("compile and run, and print what it costs"));
  cl::ParseCommandLineOptions(argc, argv, "functions of nn ops as kernels\n");
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<func::FuncDialect, nn::NnDialect, spmd::SpmdDialect, exec::ExecDialect>();
  loadDialects(context);
  std::string reason;
  std::unique_ptr<HostTarget> target = HostTarget::create(isa, reason);
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(input, &context);
  if (!module || !target)
    return llvm::errs() << "error: " << reason << "\n", 1;
  double start = getSeconds();
  OwningOpRef<ModuleOp> kernels = ModuleOp::create(UnknownLoc::get(&context));
  SmallVector<func::FuncOp> funcs(module->getOps<func::FuncOp>());
  for (func::FuncOp func : funcs) {
    if (!canEmit(func.front(), reason))
      return llvm::errs() << "error: " << reason << "\n", 1;
    emitHostKernel(func.front(), func.getName(), *kernels, *target);
  }
  if (!times) {
    PassManager passes(&context); // so that what is printed can be read
    passes.addPass(createCSEPass());
    (void)passes.run(*kernels);
    llvm::outs() << *kernels;
    return 0;
  }
  FailureOr<std::string> object = compileObject(*kernels, *target);
  if (failed(object))
    return 1;
  llvm::outs() << llvm::formatv("compiling, ms a kernel\t{0:F1}\n", (getSeconds() - start) * 1e3 / funcs.size());
  auto jit = llvm::cantFail(llvm::orc::LLJITBuilder().create());
  llvm::cantFail(jit->addObjectFile(llvm::MemoryBuffer::getMemBufferCopy(*object)));
  for (func::FuncOp func : funcs)
    timeKernel(*jit, func);
  return 0;
}
