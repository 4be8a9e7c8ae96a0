//===- Import.cpp - from an ONNX file to the nn dialect -------------------===//
//
// Errors of the file as such (it cannot be read, it is no model) have no place in it and are located at its path; those
// of the graph are GraphImporter's.
//
//===----------------------------------------------------------------------===//
#include "cleave/Import/Onnx/Import.h"

#include "Graph/GraphImporter.h"
#include "Graph/Initialize.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

/// Emits `error` at the file, and returns null.
static std::nullptr_t fail(MLIRContext *context, StringRef path, llvm::Error error) {
  emitError(NameLoc::get(StringAttr::get(context, path)), llvm::toString(std::move(error)));
  return nullptr;
}

std::unique_ptr<ModelFile> cleave::onnx::readModel(MLIRContext *context, std::shared_ptr<const MappedFile> file) {
  llvm::Expected<std::unique_ptr<ModelFile>> model = readModel(file);
  return model ? std::move(*model) : fail(context, file->getPath(), model.takeError());
}

OwningOpRef<ModuleOp> cleave::onnx::importOnnx(MLIRContext *context, ModelFile &model, const ImportOptions &options) {
  context->loadDialect<nn::NnDialect, func::FuncDialect>();
  Location loc = NameLoc::get(StringAttr::get(context, model.file->getPath()));
  bool isLeftOut = !model.model.trainingInfo.empty() && !options.step;
  // What is trained otherwise has been told so.
  if (isLeftOut && !options.keepsWeights)
    emitWarning(loc) << "training_info is left out: its graphs do not run, and what they would update stays as it is; "
                        "the model's own graph is what is computed, and its step with --train";
  ImportOptions filled;
  if (options.step && !options.step->beginnings.empty()) {
    filled = options;
    if (failed(initialize(context, model, filled)))
      return nullptr;
  }
  GraphImporter importer(context, model, filled.step ? filled : options);
  OwningOpRef<ModuleOp> module = importer.import();
  for (const std::string &note : model.notes)
    emitRemark(loc, note);
  return module;
}

OwningOpRef<ModuleOp> cleave::onnx::importOnnx(MLIRContext *context, StringRef path, const ImportOptions &options) {
  llvm::Expected<std::shared_ptr<const MappedFile>> file = MappedFile::open(path);
  if (!file)
    return fail(context, path, file.takeError());
  std::unique_ptr<ModelFile> model = readModel(context, std::move(*file));
  return model ? importOnnx(context, *model, options) : nullptr;
}
