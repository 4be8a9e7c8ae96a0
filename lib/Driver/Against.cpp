//===- Against.cpp - the model that a partitioned file was made from ------===//
//
// A partitioned file keeps the global types of its inputs, and the values that shapes were computed from: with these the
// model is imported again as it was. What it is asked for by name and type must be what the file computes.
//
//===----------------------------------------------------------------------===//
#include "cleave/Compiler/Values.h"
#include "cleave/Driver/Session.h"
#include "cleave/Import/Onnx/Import.h"
#include "cleave/Reference/Weights.h"
#include "cleave/Support/Status.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::driver;

static onnx::ImportOptions getImportOptions(func::FuncOp partitioned) {
  onnx::ImportOptions import;
  auto names = getInputNames(partitioned);
  for (auto [index, type] : llvm::enumerate(getInputTypes(partitioned))) {
    import.arrayShapes[names[index]].assign(type.getShape().begin(), type.getShape().end());
    if (std::optional<reference::Tensor> value = getFixedValue(partitioned, index))
      import.inputValues.try_emplace(names[index], *value);
  }
  return import;
}

/// `what` are the inputs or the outputs of both.
static llvm::Error compareSignatures(const Options &options, StringRef what, ArrayRef<std::string> names,
                                     ArrayRef<RankedTensorType> types, ArrayRef<std::string> ofOriginal,
                                     ArrayRef<RankedTensorType> originalTypes) {
  if (names != ofOriginal)
    return makeError("{0} has the {1} {2}, but {3} has {4}", options.compile.model, what, llvm::join(names, ", "),
                     options.against, llvm::join(ofOriginal, ", "));
  for (auto [name, type, original] : llvm::zip_equal(names, types, originalTypes))
    if (type.getShape() != original.getShape() || type.getElementType() != original.getElementType())
      return makeError("{0} {1} is {2} in {3}, but {4} in {5}", what.drop_back(), quote(name),
                       llvm::formatv("{0}", RankedTensorType::get(type.getShape(), type.getElementType())).str(),
                       options.compile.model, llvm::formatv("{0}", original).str(), options.against);
  return llvm::Error::success();
}

OwningOpRef<ModuleOp> cleave::driver::loadOriginal(Session &session) {
  const Options &options = session.getOptions();
  func::FuncOp func = session.getEntry();
  if (!func)
    return nullptr;
  bool isText = StringRef(options.against).ends_with(".mlir");
  OwningOpRef<ModuleOp> original =
      isText ? parseSourceFile<ModuleOp>(options.against, &session.getContext())
             : onnx::importOnnx(&session.getContext(), options.against, getImportOptions(func));
  if (!original || (isText && failed(reference::checkWeights(*original))))
    return nullptr;
  auto entry = original->lookupSymbol<func::FuncOp>(func.getName());
  if (!entry) {
    session.fail(makeError("{0} has no function {1}", options.against, quote(func.getName())));
    return nullptr;
  }
  llvm::Error error = compareSignatures(options, "inputs", getInputNames(func), getInputTypes(func),
                                        getInputNames(entry), getInputTypes(entry));
  if (!error)
    error = compareSignatures(options, "outputs", getOutputNames(func), getOutputTypes(func), getOutputNames(entry),
                              getOutputTypes(entry));
  if (!error)
    return original;
  session.fail(std::move(error));
  return nullptr;
}
