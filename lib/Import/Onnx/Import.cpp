//===- Import.cpp - from an ONNX file to the nn dialect -------------------===//
#include "cleave/Import/Onnx/Import.h"

#include "GraphImporter.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

OwningOpRef<ModuleOp> cleave::onnx::importOnnx(MLIRContext *context, StringRef path, const ImportOptions &options) {
  context->loadDialect<nn::NnDialect, func::FuncDialect>();
  llvm::Expected<std::unique_ptr<ModelFile>> file = readModel(path);
  if (!file) {
    emitError(NameLoc::get(StringAttr::get(context, path)), llvm::toString(file.takeError()));
    return nullptr;
  }
  GraphImporter importer(context, **file, options);
  OwningOpRef<ModuleOp> module = importer.import();
  for (const std::string &note : (*file)->notes)
    emitRemark(NameLoc::get(StringAttr::get(context, path)), note);
  return module;
}
