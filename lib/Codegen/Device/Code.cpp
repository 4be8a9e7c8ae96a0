//===- Code.cpp - from kernels of a device to PTX -------------------------===//
//
// MLIR's own conversions to NVVM make calls of libdevice of all functions of floats. Those that are one instruction of the device
// (square roots, rounding, fused multiply-add) become LLVM's intrinsics again, so that libdevice is for those only that are programs
// (sin, pow, those of f64). Then LLVM's pipeline at -O1, which gives as few registers as -O3 does, and the code generator; ptxas does the rest.
//
//===----------------------------------------------------------------------===//
#include "cleave/Codegen/CompileObject.h"
#include "cleave/Codegen/Device/Device.h"

#include "cleave/Support/Status.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/NVGPUToNVVM/NVGPUToNVVM.h"
#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/IPO/Internalize.h"

using namespace mlir;
using namespace cleave::codegen;

void cleave::codegen::loadDeviceDialects(MLIRContext &context) {
  loadDialects(context);
  DialectRegistry registry;
  registerGPUDialectTranslation(registry);
  registerNVVMDialectTranslation(registry);
  arith::registerConvertArithToLLVMInterface(registry);
  cf::registerConvertControlFlowToLLVMInterface(registry);
  registerConvertFuncToLLVMInterface(registry);
  registerConvertMathToLLVMInterface(registry);
  registerConvertMemRefToLLVMInterface(registry);
  registerConvertNVVMToLLVMInterface(registry);
  ub::registerConvertUBToLLVMInterface(registry);
  vector::registerConvertVectorToLLVMInterface(registry);
  context.appendDialectRegistry(registry);
  context.loadDialect<gpu::GPUDialect, nvgpu::NVGPUDialect, NVVM::NVVMDialect>();
}

//===----------------------------------------------------------------------===//
// To LLVM IR
//===----------------------------------------------------------------------===//

/// Positions have 32 bits, unless there is a buffer that needs more.
static unsigned getIndexBits(ModuleOp kernels) {
  constexpr int64_t most = int64_t(1) << 30;
  bool isLarge = kernels
                     .walk([](gpu::GPUFuncOp func) {
                       for (Type type : func.getFunctionType().getInputs())
                         if (cast<MemRefType>(type).getNumElements() > most)
                           return WalkResult::interrupt();
                       return WalkResult::advance();
                     })
                     .wasInterrupted();
  return isLarge ? 64 : 32;
}

/// Fused multiply-adds, of which polynomials are made, stay vectors on the way: calls would be of scalars each.
static void lowerFma(ModuleOp kernels) {
  kernels.walk([](math::FmaOp op) {
    OpBuilder b(op);
    op.replaceAllUsesWith(
        LLVM::FMAOp::create(b, op.getLoc(), op.getType(), op.getA(), op.getB(), op.getC()).getResult());
    op.erase();
  });
}

/// ldmatrix and cp.async. Upstream's pass of that name takes positions for numbers of 64 bits; memory is described as the
/// pass behind it does, so that what both cast back and forth goes away.
static LogicalResult lowerNvgpu(ModuleOp kernels) {
  MLIRContext *context = kernels.getContext();
  LowerToLLVMOptions options(context);
  options.overrideIndexBitwidth(getIndexBits(kernels));
  LLVMTypeConverter converter(context, options);
  nvgpu::populateCommonGPUTypeAndAttributeConversions(converter);
  RewritePatternSet patterns(context);
  populateNVGPUToNVVMConversionPatterns(converter, patterns);
  ConversionTarget target(*context);
  target.addIllegalDialect<nvgpu::NVGPUDialect>();
  target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
  return applyPartialConversion(kernels, target, std::move(patterns));
}

static LogicalResult lowerToNvvm(ModuleOp kernels) {
  lowerFma(kernels);
  if (failed(lowerNvgpu(kernels)))
    return failure();
  PassManager passes(kernels.getContext());
  passes.enableVerifier(false);
  passes.addPass(createStripDebugInfoPass());
  OpPassManager &module = passes.nest<gpu::GPUModuleOp>();
  module.addPass(createCanonicalizerPass());
  module.addPass(createCSEPass());
  module.addPass(createLoopInvariantCodeMotionPass());
  module.addPass(createSCFToControlFlowPass());
  ConvertGpuOpsToNVVMOpsOptions nvvm;
  nvvm.useBarePtrCallConv = true;
  nvvm.indexBitwidth = getIndexBits(kernels);
  module.addPass(createConvertGpuOpsToNVVMOps(nvvm));
  module.addPass(createReconcileUnrealizedCastsPass());
  module.addPass(createCanonicalizerPass());
  module.addPass(createCSEPass());
  return passes.run(kernels);
}

/// Calls of `__nv_sqrtf` and its like as the device's own instructions.
static void useInstructions(llvm::Module &module) {
  using llvm::Intrinsic::ID;
  constexpr std::pair<const char *, ID> known[] = {
      {"fabs", llvm::Intrinsic::fabs},         {"ceil", llvm::Intrinsic::ceil},   {"floor", llvm::Intrinsic::floor},
      {"rint", llvm::Intrinsic::roundeven},    {"fma", llvm::Intrinsic::fma},     {"sqrt", llvm::Intrinsic::sqrt},
      {"copysign", llvm::Intrinsic::copysign}, {"trunc", llvm::Intrinsic::trunc},
  };
  for (auto [name, number] : known)
    for (bool isDouble : {false, true}) {
      llvm::Function *function = module.getFunction(("__nv_" + Twine(name) + (isDouble ? "" : "f")).str());
      if (!function)
        continue;
      function->replaceAllUsesWith(
          llvm::Intrinsic::getOrInsertDeclaration(&module, number, {function->getReturnType()}));
      function->eraseFromParent();
    }
}

/// Upstream's atomics order all memory for the whole system. Those of kernels are met at barriers, by threads of a block.
static void relaxAtomics(llvm::Module &module) {
  for (llvm::Function &function : module)
    for (llvm::Instruction &instruction : llvm::instructions(function))
      if (auto *update = dyn_cast<llvm::AtomicRMWInst>(&instruction)) {
        update->setOrdering(llvm::AtomicOrdering::Monotonic);
        update->setSyncScopeID(module.getContext().getOrInsertSyncScopeID("block"));
      }
}

std::unique_ptr<llvm::Module> cleave::codegen::translateDevice(ModuleOp kernels, const CudaTarget &target,
                                                               llvm::LLVMContext &context) {
  if (failed(verify(kernels)) || failed(lowerToNvvm(kernels)))
    return nullptr;
  auto modules = kernels.getOps<gpu::GPUModuleOp>();
  if (modules.empty())
    return kernels.emitError("has no kernels of a device"), nullptr;
  std::unique_ptr<llvm::Module> module = translateModuleToLLVMIR(*modules.begin(), context, "kernels");
  if (!module)
    return nullptr;
  useInstructions(*module);
  relaxAtomics(*module);
  module->setTargetTriple(target.getMachine().getTargetTriple());
  module->setDataLayout(target.getMachine().createDataLayout());
  return module;
}

//===----------------------------------------------------------------------===//
// To PTX
//===----------------------------------------------------------------------===//

/// Where CUDA is installed, as far as is known, best first.
static SmallVector<std::string> getCudaPrefixes() {
  SmallVector<std::string> prefixes;
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"})
    if (std::optional<std::string> value = llvm::sys::Process::GetEnv(variable); value && !value->empty())
      prefixes.push_back(*value);
  prefixes.append({"/usr/local/cuda", "/opt/cuda", "/usr/lib/cuda"});
  return prefixes;
}

/// Functions that the module calls and does not have.
static SmallVector<std::string> findMissing(llvm::Module &module) {
  SmallVector<std::string> names;
  for (llvm::Function &function : module)
    if (function.isDeclaration() && function.getName().starts_with("__nv_") && !function.use_empty())
      names.push_back(function.getName().str());
  return names;
}

static std::string findLibdevice(const PtxOptions &options) {
  if (!options.libdevice.empty())
    return options.libdevice;
  for (const std::string &prefix : getCudaPrefixes())
    if (std::string path = prefix + "/nvvm/libdevice/libdevice.10.bc"; llvm::sys::fs::exists(path))
      return path;
  return "";
}

/// Takes in what is called of libdevice. Denormal numbers stay.
static llvm::Error linkLibdevice(llvm::Module &module, const PtxOptions &options) {
  SmallVector<std::string> missing = findMissing(module);
  if (missing.empty())
    return llvm::Error::success();
  std::string path = findLibdevice(options);
  if (path.empty())
    return cleave::makeError("{0}: in CUDA's libdevice.10.bc only, which was not found", llvm::join(missing, ", "));
  auto file = llvm::MemoryBuffer::getFile(path);
  if (!file)
    return cleave::makeError("{0}: {1}", path, file.getError().message());
  auto library = llvm::getLazyBitcodeModule((*file)->getMemBufferRef(), module.getContext());
  if (!library)
    return cleave::addContext(path + ": ", library.takeError());
  (*library)->setTargetTriple(module.getTargetTriple());
  (*library)->setDataLayout(module.getDataLayout());
  auto internalize = [](llvm::Module &linked, const llvm::StringSet<> &names) {
    llvm::internalizeModule(
        linked, [&](const llvm::GlobalValue &value) { return !value.hasName() || !names.contains(value.getName()); });
  };
  if (llvm::Linker::linkModules(module, std::move(*library), llvm::Linker::LinkOnlyNeeded, internalize))
    return cleave::makeError("{0} cannot be linked", path);
  module.addModuleFlag(llvm::Module::Override, "nvvm-reflect-ftz", uint32_t(0));
  missing = findMissing(module);
  if (!missing.empty())
    return cleave::makeError("{0} has no {1}", path, llvm::join(missing, ", "));
  return llvm::Error::success();
}

FailureOr<std::string> cleave::codegen::compilePtx(ModuleOp kernels, const CudaTarget &target,
                                                   const PtxOptions &options) {
  llvm::LLVMContext context;
  Location location = kernels.getLoc();
  std::unique_ptr<llvm::Module> module = translateDevice(kernels, target, context);
  if (!module)
    return failure();
  if (llvm::Error fault = linkLibdevice(*module, options))
    return emitError(location, llvm::toString(std::move(fault)));
  optimize(*module, target.getMachine(), [](llvm::PassBuilder &builder) {
    return builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O1);
  });
  SmallVector<char, 0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  if (target.getMachine().addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile))
    return failure();
  passes.run(*module);
  return std::string(text.begin(), text.end());
}

//===----------------------------------------------------------------------===//
// To machine code
//===----------------------------------------------------------------------===//

static std::string findPtxas() {
  if (llvm::ErrorOr<std::string> found = llvm::sys::findProgramByName("ptxas"))
    return *found;
  for (const std::string &prefix : getCudaPrefixes())
    if (llvm::ErrorOr<std::string> found = llvm::sys::findProgramByName("ptxas", {prefix + "/bin"}))
      return *found;
  return "";
}

namespace {
/// A file of this process's own, gone when it is.
struct Scratch {
  SmallString<128> path;
  explicit Scratch(StringRef ending) { (void)llvm::sys::fs::createTemporaryFile("cleave", ending, path); }
  ~Scratch() { llvm::sys::fs::remove(path); }
};
} // namespace

llvm::Expected<std::string> cleave::codegen::assemblePtx(StringRef ptx, const CudaTarget &target) {
  std::string ptxas = findPtxas();
  if (ptxas.empty())
    return cleave::makeError("there is no ptxas");
  Scratch source("ptx"), object("cubin"), messages("log");
  std::error_code failed;
  llvm::raw_fd_ostream(source.path, failed) << ptx;
  if (failed)
    return cleave::makeError("{0}: {1}", source.path, failed.message());
  std::string architecture = "-arch=" + target.getArchitecture();
  StringRef arguments[] = {ptxas, architecture, source.path, "-o", object.path};
  std::optional<StringRef> streams[] = {StringRef(), StringRef(messages.path), StringRef(messages.path)};
  bool isDone = llvm::sys::ExecuteAndWait(ptxas, arguments, std::nullopt, streams) == 0;
  auto file = llvm::MemoryBuffer::getFile(isDone ? object.path : messages.path);
  if (isDone && file)
    return (*file)->getBuffer().str();
  return cleave::makeError("ptxas refuses: {0}", file ? (*file)->getBuffer().trim() : "");
}
