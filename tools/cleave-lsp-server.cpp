//===- cleave-lsp-server.cpp - .mlir files in an editor -------------------===//
//
// Speaks the language server protocol on standard input and output. It knows the dialects and no passes.
//
//===----------------------------------------------------------------------===//
#include "cleave/Pipelines/Registration.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

#include <cstdlib>

int main(int argc, char **argv) {
  cleave::setUpTool();
  mlir::DialectRegistry registry;
  cleave::registerDialects(registry);
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry)) ? EXIT_FAILURE : EXIT_SUCCESS;
}
