//===- Original.cpp - the model that a partitioned file was made from ------===//
//
// A partitioned file keeps the global types of its inputs, and the values that shapes were computed from: with these the
// model is imported again as it was. What it is asked for by name and type must be what the file computes.
//
//===----------------------------------------------------------------------===//
#include "cleave/Compiler/CheckOutputs.h"
#include "cleave/Import/Onnx/Import.h"
#include "cleave/Reference/Weights.h"
#include "cleave/Support/Status.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace cleave;

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

namespace {
/// What one of two files is asked for, or computes.
struct Signature {
  StringRef file;
  SmallVector<std::string> names;
  SmallVector<RankedTensorType> types;
};
} // namespace

/// `what` are the inputs or the outputs of both.
static llvm::Error compareSignatures(StringRef what, const Signature &got, const Signature &original) {
  if (got.names != original.names)
    return makeError("{0} has the {1} {2}, but {3} has {4}", got.file, what, llvm::join(got.names, ", "), original.file,
                     llvm::join(original.names, ", "));
  for (auto [name, type, wanted] : llvm::zip_equal(got.names, got.types, original.types))
    if (type.getShape() != wanted.getShape() || type.getElementType() != wanted.getElementType())
      return makeError("{0} {1} is {2} in {3}, but {4} in {5}", what.drop_back(), quote(name),
                       llvm::formatv("{0}", RankedTensorType::get(type.getShape(), type.getElementType())).str(),
                       got.file, llvm::formatv("{0}", wanted).str(), original.file);
  return llvm::Error::success();
}

OwningOpRef<ModuleOp> cleave::loadOriginal(Compilation &partitioned, StringRef path) {
  func::FuncOp func = partitioned.getEntry();
  if (!func)
    return nullptr;
  MLIRContext *context = &partitioned.getContext();
  bool isText = path.ends_with(".mlir");
  OwningOpRef<ModuleOp> original =
      isText ? parseSourceFile<ModuleOp>(path, context) : onnx::importOnnx(context, path, getImportOptions(func));
  if (!original || (isText && (failed(reference::placeWeights(*original, path, partitioned.getOptions().weights)) ||
                               failed(reference::checkWeights(*original)))))
    return nullptr;
  auto entry = original->lookupSymbol<func::FuncOp>(func.getName());
  if (!entry) {
    partitioned.fail(makeError("{0} has no function {1}", path, quote(func.getName())));
    return nullptr;
  }
  StringRef file = partitioned.getOptions().model;
  llvm::Error error = compareSignatures("inputs", {file, getInputNames(func), getInputTypes(func)},
                                        {path, getInputNames(entry), getInputTypes(entry)});
  if (!error)
    error = compareSignatures("outputs", {file, getOutputNames(func), getOutputTypes(func)},
                              {path, getOutputNames(entry), getOutputTypes(entry)});
  if (!error)
    return original;
  partitioned.fail(std::move(error));
  return nullptr;
}
