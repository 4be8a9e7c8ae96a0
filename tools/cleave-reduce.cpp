//===- cleave-reduce.cpp - makes a failing .mlir file small ---------------===//
//
// Takes a test that says whether a file is interesting (mlir-reduce's `--test`), and all passes to try.
//
//===----------------------------------------------------------------------===//
#include "cleave/Pipelines/Registration.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Tools/mlir-reduce/MlirReduceMain.h"

#include <cstdlib>

int main(int argc, char **argv) {
  cleave::setUpTool();
  mlir::DialectRegistry registry;
  cleave::registerDialects(registry);
  cleave::registerPasses();
  mlir::MLIRContext context(registry);
  return mlir::failed(mlir::mlirReduceMain(argc, argv, context)) ? EXIT_FAILURE : EXIT_SUCCESS;
}
