//===- Kernels.cpp - functions of a file as kernels -----------------------===//
//
//   cleave-kernels FILE.mlir [--isa CPU]      prints the kernels of all functions, before they are lowered
//   cleave-kernels FILE.mlir --time           what compiling and running each costs, in thread CPU time: a line each,
//                                             `name<TAB>ns per element of its largest tensor`, and one for compiling
//   cleave-kernels FILE.mlir --object FILE.o    writes the object, to look at its instructions
//   cleave-kernels FILE.mlir --target cuda:sm_90 [--emit=gpu|launches|ptx|cubin]    kernels of a device: before they are lowered, how
//                                             they are launched, PTX, or machine code where there is a ptxas
//   cleave-kernels FILE.mlir --check          runs each distinct body, of functions and of exec.kernel, on random inputs, between
//                                             pages that fault, and compares with the evaluator. A file may hold several modules, split by
//                                             `// -----`
//
//===----------------------------------------------------------------------===//
#include "Guards.h"
#include "KernelRunner.h"
#include "cleave/Codegen/Device/Device.h"
#include "cleave/Dialect/Exec/IR/Exec.h"
#include "cleave/Dialect/Nn/IR/Ops/Attention.h"
#include "cleave/Dialect/Nn/IR/Ops/Contraction.h"
#include "cleave/Dialect/Nn/IR/Ops/Convolution.h"
#include "cleave/Reference/Evaluator.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/MemoryBuffer.h"

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
  askForTiles();
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

//===----------------------------------------------------------------------===//
// Checking
//===----------------------------------------------------------------------===//

/// A function in `module` that does what `body` does.
static func::FuncOp copyBody(Block &body, StringRef name, ModuleOp module) {
  Operation *end = body.getTerminator();
  OpBuilder b = OpBuilder::atBlockEnd(module.getBody());
  auto type = b.getFunctionType(body.getArgumentTypes(), end->getOperandTypes());
  auto func = func::FuncOp::create(b, end->getLoc(), name, type);
  Block *copy = func.addEntryBlock();
  IRMapping map;
  map.map(body.getArguments(), copy->getArguments());
  b.setInsertionPointToEnd(copy);
  for (Operation &op : body.without_terminator())
    b.clone(op, map);
  SmallVector<Value> results;
  for (Value result : end->getOperands())
    results.push_back(map.lookupOrDefault(result));
  func::ReturnOp::create(b, end->getLoc(), results);
  return func;
}

/// Elements that an emulated kernel computes in reasonable time, each step of a walk counted.
static bool isSmall(func::FuncOp func) {
  double steps = 0;
  for (Operation &op : func.front().without_terminator()) {
    double most = 1, all = 1;
    for (Value value : llvm::concat<const Value>(op.getOperands(), op.getResults())) {
      double count = cast<ShapedType>(value.getType()).getNumElements();
      most = std::max(most, count);
      all *= std::max(count, 1.0);
    }
    bool isProduct = isa<nn::EinsumOp, nn::ConvOp, nn::ConvTransposeOp, nn::AttentionOp>(op);
    steps += isProduct ? std::sqrt(all) : most;
  }
  return steps < 4e8;
}

/// As findFault, of the kernel of a device.
static std::string findFaultOnDevice(func::FuncOp func, const CudaTarget &device, const HostTarget &target) {
  std::string reason;
  if (!canEmitDevice(func.front(), reason))
    return "refused: " + reason;
  SmallVector<Tensor> inputs = drawInputs(func, 1), want, got;
  if (failed(reference::runGlobal(func, inputs, want)))
    return "cannot be evaluated";
  std::string fault = runOnDevice(func.front(), device, target, inputs, got);
  return fault.empty() ? findDifference(got, want) : fault;
}

/// What is wrong with the kernel of `func`, or an empty string.
static std::string findFault(func::FuncOp func, const HostTarget &target, uint64_t seed) {
  std::string reason;
  if (!canEmit(func.front(), reason))
    return reason;
  OwningOpRef<ModuleOp> kernels = ModuleOp::create(UnknownLoc::get(func.getContext()));
  emitHostKernel(func.front(), "kernel", *kernels, target);
  FailureOr<std::string> object = compileObject(*kernels, target);
  if (failed(object))
    return "cannot be compiled";
  SmallVector<Tensor> inputs = drawInputs(func, seed), want;
  if (failed(reference::runGlobal(func, inputs, want)))
    return "cannot be evaluated";
  SmallVector<Tensor> got;
  std::string fault = runObject(*object, "kernel", inputs, func.getResultTypes(), got);
  return fault.empty() ? findDifference(got, want) : fault;
}

namespace {
/// The distinct bodies of some files.
struct Bodies {
  OwningOpRef<ModuleOp> module;
  std::map<size_t, SmallVector<func::FuncOp>> byHash;
  SmallVector<func::FuncOp> funcs;

  void add(Region &region) {
    SmallVector<func::FuncOp> &alike = byHash[exec::hashBody(region)];
    func::FuncOp func = copyBody(region.front(), ("body" + Twine(funcs.size())).str(), *module);
    auto isSame = [&](func::FuncOp other) { return exec::haveEqualBodies(other.getBody(), func.getBody()); };
    if (llvm::any_of(alike, isSame))
      return func.erase();
    alike.push_back(func);
    funcs.push_back(func);
  }
};
} // namespace

static int checkAll(StringRef text, MLIRContext &context, const HostTarget &target, const CudaTarget *device) {
  Bodies bodies{ModuleOp::create(UnknownLoc::get(&context)), {}, {}};
  SmallVector<StringRef> chunks;
  text.split(chunks, "// -----\n", -1, false);
  for (StringRef chunk : chunks) {
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(chunk, &context);
    if (!module)
      return 1;
    bool hasKernels = !module->getOps<exec::KernelOp>().empty();
    for (auto kernel : module->getOps<exec::KernelOp>())
      bodies.add(kernel.getBody());
    for (auto func : module->getOps<func::FuncOp>())
      if (!hasKernels)
        bodies.add(func.getBody());
  }
  int64_t right = 0, wrong = 0, large = 0;
  for (func::FuncOp func : bodies.funcs) {
    if (device && !isSmall(func)) {
      ++large;
      continue;
    }
    std::string fault = device ? findFaultOnDevice(func, *device, target) : findFault(func, target, 1);
    if (!fault.empty())
      llvm::errs() << fault << '\n' << func << '\n';
    ++(fault.empty() ? right : wrong);
  }
  if (large)
    llvm::outs() << large << " are too large to emulate\n";
  if (!device)
    llvm::outs() << test::describeGuarded() << "\n";
  llvm::outs() << right << " passed, " << wrong << " failed\n";
  return wrong ? 1 : 0;
}

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

namespace {
enum class Emit { Gpu, Launches, Ptx, Cubin };
} // namespace

static int fail(const std::string &reason) { return llvm::errs() << "error: " << reason << "\n", 1; }

static int emitForDevice(StringRef file, const CudaTarget &target, Emit emit, MLIRContext &context) {
  std::string reason;
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(file, &context);
  if (!module)
    return 1;
  double start = getSeconds();
  OwningOpRef<ModuleOp> kernels = ModuleOp::create(UnknownLoc::get(&context));
  SmallVector<DeviceKernel> launches;
  bool isLowered = !module->getOps<exec::KernelOp>().empty();
  for (Operation &op : *module->getBody()) {
    auto symbol = dyn_cast<SymbolOpInterface>(op);
    if (!symbol || op.getNumRegions() == 0 || (isLowered && !isa<exec::KernelOp>(op)))
      continue;
    Block &body = op.getRegion(0).front();
    if (!canEmitDevice(body, reason))
      return fail((symbol.getName() + ": " + reason).str());
    launches.push_back(emitDeviceKernel(body, symbol.getName(), *kernels, target));
  }
  if (emit == Emit::Launches)
    for (const DeviceKernel &kernel : launches)
      llvm::outs() << llvm::formatv("{0}\t{1} x {2} threads, {3} bytes shared\n", kernel.name, kernel.grid[0],
                                    kernel.block[0], kernel.sharedBytes);
  if (emit == Emit::Gpu) {
    PassManager passes(&context); // so that what is printed can be read
    passes.addPass(createCanonicalizerPass());
    passes.addPass(createCSEPass());
    (void)passes.run(*kernels);
    llvm::outs() << *kernels;
  }
  if (emit == Emit::Gpu || emit == Emit::Launches)
    return 0;
  FailureOr<std::string> ptx = compilePtx(*kernels, target);
  if (failed(ptx))
    return 1;
  llvm::errs() << llvm::formatv("compiling, ms a kernel\t{0:F1}\n", (getSeconds() - start) * 1e3 / launches.size());
  if (emit == Emit::Ptx)
    return llvm::outs() << *ptx, 0;
  llvm::Expected<std::string> cubin = assemblePtx(*ptx, target);
  if (!cubin)
    return fail(llvm::toString(cubin.takeError()));
  return llvm::outs() << *cubin, 0;
}

int main(int argc, char **argv) {
  cl::opt<std::string> input(cl::Positional, cl::desc("FILE"), cl::Required);
  cl::opt<std::string> isa("isa", cl::desc("processor, as LLVM names it"), cl::init("native"));
  cl::opt<bool> times("time", cl::desc("compile and run, and print what it costs"));
  cl::opt<std::string> objectFile("object", cl::desc("where to write the object"));
  cl::opt<bool> splits("split", cl::desc("products of f32 as three of bf16"));
  cl::opt<bool> checks("check", cl::desc("run, and compare with the evaluator"));
  cl::opt<std::string> device("target", cl::desc("cuda:ARCHITECTURE: kernels of a GPU"));
  cl::opt<bool> tf32("tf32", cl::desc("products of f32 on a GPU may be of tf32"));
  cl::opt<Emit> emit("emit", cl::desc("what of kernels of a GPU"), cl::init(Emit::Gpu),
                     cl::values(clEnumValN(Emit::Gpu, "gpu", "before they are lowered"),
                                clEnumValN(Emit::Launches, "launches", "how they are launched"),
                                clEnumValN(Emit::Ptx, "ptx", "PTX"), clEnumValN(Emit::Cubin, "cubin", "machine code")));
  cl::ParseCommandLineOptions(argc, argv, "functions of nn ops as kernels\n");
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<func::FuncDialect, nn::NnDialect, spmd::SpmdDialect, exec::ExecDialect>();
  loadDialects(context);
  std::string reason;
  std::unique_ptr<CudaTarget> gpu;
  if (StringRef name = device; name.consume_front("cuda:")) {
    loadDeviceDialects(context);
    llvm::Expected<std::unique_ptr<CudaTarget>> known = CudaTarget::create(name);
    if (!known)
      return fail(llvm::toString(known.takeError()));
    gpu = std::move(*known);
    if (tf32)
      gpu->allow(codegen::Allowed::Tf32);
    if (!checks)
      return emitForDevice(input, *gpu, emit, context);
  }
  llvm::Expected<std::unique_ptr<HostTarget>> host = HostTarget::create(isa);
  if (!host)
    return llvm::errs() << "error: " << llvm::toString(host.takeError()) << "\n", 1;
  std::unique_ptr<HostTarget> target = std::move(*host);
  if (splits)
    target->splitProducts();
  if (checks) {
    target->guardScratch();
    std::unique_ptr<llvm::MemoryBuffer> file = openInputFile(input, &reason);
    return file ? checkAll(file->getBuffer(), context, *target, gpu.get()) : 1;
  }
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(input, &context);
  if (!module)
    return 1;
  double start = getSeconds();
  OwningOpRef<ModuleOp> kernels = ModuleOp::create(UnknownLoc::get(&context));
  SmallVector<func::FuncOp> funcs(module->getOps<func::FuncOp>());
  for (func::FuncOp func : funcs) {
    if (!canEmit(func.front(), reason))
      return llvm::errs() << "error: " << reason << "\n", 1;
    emitHostKernel(func.front(), func.getName(), *kernels, *target);
  }
  if (!times && objectFile.empty()) {
    PassManager passes(&context); // so that what is printed can be read
    passes.addPass(createCSEPass());
    (void)passes.run(*kernels);
    llvm::outs() << *kernels;
    return 0;
  }
  FailureOr<std::string> object = compileObject(*kernels, *target);
  if (failed(object))
    return 1;
  if (!objectFile.empty()) {
    std::error_code error;
    llvm::raw_fd_ostream(objectFile, error) << *object;
    return error ? 1 : 0;
  }
  llvm::outs() << llvm::formatv("compiling, ms a kernel\t{0:F1}\n", (getSeconds() - start) * 1e3 / funcs.size());
  auto jit = llvm::cantFail(llvm::orc::LLJITBuilder().create());
  llvm::cantFail(jit->addObjectFile(llvm::MemoryBuffer::getMemBufferCopy(*object)));
  for (func::FuncOp func : funcs)
    timeKernel(*jit, func);
  return 0;
}
