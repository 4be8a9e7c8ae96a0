//===- Import.cpp - from an ONNX file to the nn dialect -------------------===//
#include "cleave/Import/Onnx/Import.h"

#include "GraphImporter.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

static OwningOpRef<ModuleOp> fail(MLIRContext *context, StringRef path, llvm::Error error) {
  emitError(NameLoc::get(StringAttr::get(context, path)), llvm::toString(std::move(error)));
  return nullptr;
}

OwningOpRef<ModuleOp> cleave::onnx::importOnnx(MLIRContext *context, std::shared_ptr<const MappedFile> file,
                                               const ImportOptions &options) {
  context->loadDialect<nn::NnDialect, func::FuncDialect>();
  StringRef path = file->getPath();
  llvm::Expected<std::unique_ptr<ModelFile>> model = readModel(file);
  if (!model)
    return fail(context, path, model.takeError());
  GraphImporter importer(context, **model, options);
  OwningOpRef<ModuleOp> module = importer.import();
  for (const std::string &warning : (*model)->warnings)
    emitWarning(NameLoc::get(StringAttr::get(context, path)), warning);
  for (const std::string &note : (*model)->notes)
    emitRemark(NameLoc::get(StringAttr::get(context, path)), note);
  return module;
}

OwningOpRef<ModuleOp> cleave::onnx::importOnnx(MLIRContext *context, StringRef path, const ImportOptions &options) {
  llvm::Expected<std::shared_ptr<const MappedFile>> file = MappedFile::open(path);
  return file ? importOnnx(context, std::move(*file), options) : fail(context, path, file.takeError());
}
