//===- cleave-opt.cpp - runs passes over IR -------------------------------===//
//
// For people who work on passes: docs/generated lists them, docs/architecture.md says in which order they make sense.
//
//===----------------------------------------------------------------------===//
#include "cleave/Pipelines/Registration.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  cleave::setUpTool();
  mlir::DialectRegistry registry;
  cleave::registerDialects(registry);
  cleave::registerPasses();
  auto [input, output] = mlir::registerAndParseCLIOptions(argc, argv, "Cleave's pass driver\n", registry);
  cleave::keepLocationsInReproducers();
  if (!mlir::MlirOptMainConfig::createFromCLOptions().shouldVerifyDiagnostics())
    cleave::nameNodesInDiagnostics(registry, input);
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, input, output, registry));
}
