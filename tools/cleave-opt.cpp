//===- cleave-opt.cpp - runs passes over IR -------------------------------===//
#include "cleave/Pipelines/Registration.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  cleave::hideForeignOptions();
  mlir::DialectRegistry registry;
  cleave::registerDialects(registry);
  cleave::registerPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "Cleave's pass driver\n", registry));
}
