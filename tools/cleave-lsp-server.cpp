//===- cleave-lsp-server.cpp - .mlir files in an editor -------------------===//
//
// Speaks the language server protocol on standard input and output. It knows the dialects and no passes.
//
//===----------------------------------------------------------------------===//
#include "cleave/Pipelines/LspHover.h"
#include "cleave/Pipelines/Registration.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

#include <cstdlib>

int main(int argc, char **argv) {
  cleave::setUpTool("cleave-lsp-server");
  mlir::DialectRegistry registry;
  cleave::registerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  auto serve = [&] {
    return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry)) ? EXIT_FAILURE : EXIT_SUCCESS;
  };
  return cleave::filterMessages(serve,
                                [&](llvm::StringRef message) { return cleave::describeHover(message, context); });
}
