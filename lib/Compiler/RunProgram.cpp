//===- RunProgram.cpp - a program on tensors ------------------------------===//
//
// What is opened are the bytes of a program file, with all that is checked about these. Elements are in the evaluator's tensors as programs want
// them: row-major, a bool in a byte.
//
//===----------------------------------------------------------------------===//
#include "cleave/Compiler/RunProgram.h"

#include "cleave/Codegen/Device/Device.h"
#include "cleave/Dialect/Nn/IR/Begins.h"
#include "cleave/Dialect/Spmd/IR/StepRoles.h"
#include "cleave/Program/File.h"
#include "cleave/Support/Status.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace cleave;
using reference::Tensor;

runtime::ExecutorOptions cleave::getExecutorOptions(const CompileOptions &options) {
  runtime::ExecutorOptions opened;
  if (options.target == ("cuda:" + codegen::CudaTarget::kEmulated).str())
    opened.cudaLibrary = "libcleave_emulated_cuda.so";
  return opened;
}

llvm::Expected<std::unique_ptr<runtime::Executor>> cleave::openProgram(const Assembly &assembly, StringRef folder,
                                                                       const runtime::ExecutorOptions &options) {
  std::string bytes = program::writeProgram(assembly.program);
  std::unique_ptr<runtime::Executor> executor;
  if (runtime::ExecutorStatus error = runtime::Executor::open(bytes, folder.str(), options, executor))
    return makeError("{0}", error->message);
  return executor;
}

std::vector<TrainedTensor> cleave::listTrained(func::FuncOp step) {
  std::vector<TrainedTensor> trained;
  for (unsigned index = 0; index < step.getNumArguments(); ++index)
    if (spmd::isParameter(step, index)) {
      auto type = cast<RankedTensorType>(step.getArgumentTypes()[index]);
      auto plain = RankedTensorType::get(type.getShape(), type.getElementType());
      Attribute begins = step.getArgAttr(index, nn::kBeginsAttr);
      FlatSymbolRefAttr param = begins ? nn::getBeginsParam(begins) : FlatSymbolRefAttr();
      trained.push_back({spmd::getArgumentName(step, index).str(), llvm::formatv("{0}", plain), type.getNumElements(),
                         param ? param.getValue().str() : ""});
    }
  return trained;
}

std::unique_ptr<runtime::Executor> cleave::openModel(Compilation &compilation) {
  if (!compilation.hasMesh())
    compilation.useOneDevice();
  std::unique_ptr<Assembly> made = compilation.makeProgram(".");
  if (!made)
    return nullptr;
  llvm::Expected<std::unique_ptr<runtime::Executor>> executor =
      openProgram(*made, ".", getExecutorOptions(compilation.getOptions()));
  if (executor)
    return std::move(*executor);
  compilation.fail(executor.takeError());
  return nullptr;
}

llvm::Expected<SmallVector<Tensor>> cleave::runProgram(runtime::Executor &executor, ArrayRef<Tensor> inputs,
                                                       ArrayRef<RankedTensorType> outputs) {
  const program::Program &program = executor.getProgram();
  const program::Variant &variant = program.variants.front();
  if (variant.inputs.size() != inputs.size() || variant.outputs.size() != outputs.size())
    return makeError("the program has {0} inputs and {1} outputs, not {2} and {3}", variant.inputs.size(),
                     variant.outputs.size(), inputs.size(), outputs.size());
  std::vector<runtime::Argument> arguments;
  for (auto [input, tensor] : llvm::zip_equal(variant.inputs, inputs))
    if (tensor.getType())
      arguments.push_back(
          {input.name, program.types[input.type].element, tensor.getType().getShape().vec(), tensor.getBytes().data()});
  std::vector<std::string> wanted;
  for (const program::Tensor &output : variant.outputs)
    wanted.push_back(output.name);
  std::vector<runtime::Value> values;
  if (runtime::ExecutorStatus error = executor.run(arguments, values, wanted))
    return makeError("{0}", error->message);
  SmallVector<Tensor> results;
  for (auto [type, value] : llvm::zip_equal(outputs, values)) {
    auto bytes = std::make_shared<std::vector<char>>(std::move(value.data));
    results.push_back(Tensor::fromBytes(type, *bytes, bytes));
  }
  return results;
}
