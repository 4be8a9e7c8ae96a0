//===- Harness.cpp - kernels against the evaluator in tests ---------------===//
#include "Harness.h"

#include "cleave/Dialect/Exec/IR/Exec.h"
#include "cleave/Reference/Evaluator.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;
using reference::Tensor;

KernelTest::KernelTest() {
  context.loadDialect<func::FuncDialect, nn::NnDialect, spmd::SpmdDialect, exec::ExecDialect>();
  loadDialects(context);
  context.disableMultithreading();
  context.printOpOnDiagnostic(false);
  context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
    errors += diagnostic.str() + "\n";
    return success();
  });
  target = llvm::cantFail(HostTarget::create("native"));
  target->guardScratch();
  if (const char *number = getenv("CLEAVE_DEVICE")) {
    every = std::max(1, atoi(number));
    loadDeviceDialects(context);
    device = llvm::cantFail(CudaTarget::create("sm_90"));
  }
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
  SmallVector<Tensor> got;
  std::string fault = runObject(*object, "kernel", inputs, func.getResultTypes(), got, places);
  if (fault.empty())
    fault = findDifference(got, want);
  return fault.empty() && device ? checkOnDevice(func, inputs, want, places) : fault;
}

/// What has to be split first is not a kernel here.
std::string KernelTest::checkOnDevice(func::FuncOp func, ArrayRef<Tensor> inputs, ArrayRef<Tensor> want,
                                      ArrayRef<InPlace> places) {
  std::string reason;
  Block &region = func.front();
  auto isAllowed = [&](InPlace place) { return canBeInPlaceOnDevice(region, place.argument, place.result); };
  if (count++ % every || !canEmitDevice(region, reason) || !llvm::all_of(places, isAllowed))
    return "";
  SmallVector<Tensor> got;
  std::string fault = runOnDevice(region, *device, *target, inputs, got, places);
  if (fault.empty())
    fault = findDifference(got, want);
  return fault.empty() ? "" : "on the device: " + fault;
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
