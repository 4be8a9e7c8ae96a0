//===- CompileObject.cpp - from kernels to an object file -----------------===//
//
// MLIR's own conversions, in an order in which each finds what it knows: math to LLVM's intrinsics before math to calls
// of the C library, which take one element at a time. Then a wrapper per kernel, a short pipeline of LLVM (the emitter
// has made the vectors already), and the code generator.
//
//===----------------------------------------------------------------------===//
#include "cleave/Codegen/CompileObject.h"
#include "cleave/Codegen/Codegen.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVMPass.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
using namespace cleave::codegen;

void cleave::codegen::loadDialects(MLIRContext &context) {
  DialectRegistry registry;
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  context.appendDialectRegistry(registry);
  context.loadDialect<arith::ArithDialect, cf::ControlFlowDialect, func::FuncDialect, LLVM::LLVMDialect,
                      math::MathDialect, memref::MemRefDialect, scf::SCFDialect, vector::VectorDialect>();
}

/// Squares of vectors are turned by shuffles.
static LogicalResult lowerTransposes(ModuleOp kernels) {
  bool hasAny = kernels.walk([](vector::TransposeOp) { return WalkResult::interrupt(); }).wasInterrupted();
  if (!hasAny)
    return success();
  RewritePatternSet patterns(kernels.getContext());
  vector::populateVectorTransposeLoweringPatterns(patterns, vector::VectorTransposeLowering::Shuffle16x16);
  vector::populateVectorShapeCastLoweringPatterns(patterns);
  return applyPatternsGreedily(kernels, std::move(patterns));
}

/// Hoisting and merging of equal ops come first, on MLIR: addresses are computed anew for every load, and LLVM would have to
/// look at each.
static LogicalResult lowerToLLVMDialect(ModuleOp kernels) {
  if (failed(lowerTransposes(kernels)))
    return failure();
  PassManager passes(kernels.getContext());
  passes.enableVerifier(false);
  passes.addPass(createStripDebugInfoPass()); // locations of the model are none that LLVM knows
  passes.addPass(createCSEPass());
  passes.addPass(createLoopInvariantCodeMotionPass());
  arith::ArithExpandOpsPassOptions expand;
  expand.includeBf16 = true; // the processor's own conversion flushes denormals
  passes.addPass(arith::createArithExpandOpsPass(expand));
  passes.addPass(createSCFToControlFlowPass());
  passes.addPass(createConvertMathToLLVMPass());
  passes.addPass(createConvertMathToLibmPass());
  passes.addPass(createConvertVectorToLLVMPass());
  passes.addPass(createFinalizeMemRefToLLVMConversionPass());
  passes.addPass(createArithToLLVMConversionPass());
  passes.addPass(createUBToLLVMConversionPass()); // squares of other sizes than 16 are turned by way of poison
  passes.addPass(createConvertControlFlowToLLVMPass());
  ConvertFuncToLLVMPassOptions func;
  func.useBarePtrCallConv = true;
  passes.addPass(createConvertFuncToLLVMPass(func));
  passes.addPass(createReconcileUnrealizedCastsPass());
  return passes.run(kernels);
}

/// `void name(void **buffers)`, which calls the kernel; that is known as `name.kernel` from here on.
static void wrap(llvm::Function &kernel) {
  llvm::LLVMContext &context = kernel.getContext();
  std::string name = kernel.getName().str();
  kernel.setName(name + ".kernel");
  kernel.setLinkage(llvm::GlobalValue::InternalLinkage);
  auto *pointer = llvm::PointerType::get(context, 0);
  auto *type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), {pointer}, false);
  auto *wrapper = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, name, *kernel.getParent());
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(context, "", wrapper));
  SmallVector<llvm::Value *> buffers;
  for (unsigned i = 0; i < kernel.arg_size(); ++i)
    buffers.push_back(b.CreateLoad(pointer, b.CreateConstGEP1_64(pointer, wrapper->getArg(0), i)));
  b.CreateCall(&kernel, buffers);
  b.CreateRetVoid();
}

void cleave::codegen::setTarget(llvm::Module &module, llvm::TargetMachine &machine) {
  module.setDataLayout(machine.createDataLayout());
  module.setTargetTriple(machine.getTargetTriple());
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", machine.getTargetCPU());
    function.addFnAttr("target-features", machine.getTargetFeatureString());
    function.addFnAttr(llvm::Attribute::NoUnwind);
  }
}

/// From here on LLVM does not know that these allocate, and takes away no store into what they give: a kernel that writes where nobody reads
/// is to be found, too.
static void guardScratch(llvm::Module &module) {
  for (auto [name, guarded] : {std::pair("malloc", "cleave_take_scratch"), std::pair("free", "cleave_give_scratch")})
    if (llvm::Function *function = module.getFunction(name))
      function->setName(guarded);
}

/// The target, and a wrapper around each function that was there before.
static void prepare(llvm::Module &module, llvm::TargetMachine &machine) {
  SmallVector<llvm::Function *> kernels;
  for (llvm::Function &function : module)
    if (!function.isDeclaration())
      kernels.push_back(&function);
  llvm::for_each(kernels, [](llvm::Function *kernel) { wrap(*kernel); });
  setTarget(module, machine);
  // Where a division may be by an estimate, that has 14 bits with AVX-512, else 12: so many rounds bring it to 24.
  bool isFine = machine.getTargetFeatureString().contains("+avx512f");
  for (llvm::Function &function : module)
    if (!function.isDeclaration())
      function.addFnAttr("reciprocal-estimates", isFine ? "vec-divf:1,!divf" : "vec-divf:2,!divf");
}

void cleave::codegen::optimize(llvm::Module &module, llvm::TargetMachine &machine, PassMaker makePasses) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  makePasses(builder).run(module, modules);
}

/// instcombine by default ends the process where one round is not enough.
static llvm::ModulePassManager makeHostPasses(llvm::PassBuilder &builder) {
  llvm::ModulePassManager passes;
  constexpr const char *pipeline =
      "function(sroa,early-cse,loop-mssa(licm),instcombine<no-verify-fixpoint>,gvn,dse,simplifycfg)";
  llvm::cantFail(builder.parsePassPipeline(passes, pipeline));
  return passes;
}

llvm::Value *cleave::codegen::roundToBf16(llvm::IRBuilderBase &b, llvm::Value *value, llvm::Type *type) {
  llvm::Type *words = value->getType()->getWithNewType(b.getInt32Ty()), *halves = type->getWithNewType(b.getInt16Ty());
  auto constant = [&](uint32_t number) { return llvm::ConstantInt::get(words, number); };
  llvm::Value *bits = b.CreateBitCast(value, words), *high = b.CreateLShr(bits, constant(16));
  llvm::Value *even = b.CreateAnd(high, constant(1));
  llvm::Value *rounded = b.CreateLShr(b.CreateAdd(b.CreateAdd(bits, constant(0x7fff)), even), constant(16));
  llvm::Value *quiet = b.CreateOr(high, constant(0x40));
  llvm::Value *result = b.CreateSelect(b.CreateFCmpUNO(value, value), quiet, rounded);
  return b.CreateBitCast(b.CreateTrunc(result, halves), type);
}

/// `__truncsfbf2`, which the code generator calls for bf16 even where it is only moved in vectors. GCC's library has it from version 13 on, and a
/// library of kernels names none of a compiler's.
static void defineRounding(llvm::Module &module) {
  llvm::LLVMContext &context = module.getContext();
  llvm::Type *half = llvm::Type::getBFloatTy(context);
  auto *type = llvm::FunctionType::get(half, {llvm::Type::getFloatTy(context)}, false);
  auto *round = llvm::cast<llvm::Function>(module.getOrInsertFunction("__truncsfbf2", type).getCallee());
  if (!round->isDeclaration())
    return;
  round->setLinkage(llvm::GlobalValue::WeakAnyLinkage);
  round->setVisibility(llvm::GlobalValue::HiddenVisibility);
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(context, "", round));
  b.CreateRet(roundToBf16(b, round->getArg(0), half));
}

std::optional<std::string> cleave::codegen::generateObject(llvm::Module &module, llvm::TargetMachine &machine) {
  defineRounding(module);
  SmallVector<char, 0> object;
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile))
    return std::nullopt;
  passes.run(module);
  return std::string(object.begin(), object.end());
}

FailureOr<std::string> cleave::codegen::compileObject(ModuleOp kernels, const HostTarget &target) {
  if (failed(verify(kernels)) || failed(lowerToLLVMDialect(kernels)))
    return failure();
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module = translateModuleToLLVMIR(kernels, context, "kernels");
  if (!module)
    return failure();
  if (target.guardsScratch())
    guardScratch(*module);
  prepare(*module, target.getMachine());
  optimize(*module, target.getMachine(), makeHostPasses);
  std::optional<std::string> object = generateObject(*module, target.getMachine());
  if (!object)
    return failure();
  return std::move(*object);
}
