//===- cleave-reduce.cpp - makes a failing .mlir file small ---------------===//
#include "cleave/Pipelines/Registration.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Tools/mlir-reduce/MlirReduceMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  cleave::registerDialects(registry);
  cleave::registerPasses();
  mlir::MLIRContext context(registry);
  return mlir::asMainReturnCode(mlir::mlirReduceMain(argc, argv, context));
}
