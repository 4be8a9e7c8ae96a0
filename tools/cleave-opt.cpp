//===- cleave-opt.cpp - runs passes over IR -------------------------------===//
//
// For people who work on passes: docs/generated lists them, docs/architecture.md says in which order they make sense.
//
//===----------------------------------------------------------------------===//
#include "cleave/Pipelines/Registration.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

/// Those of a plugin come from libraries that are not in this program: it would load, register with its own copy of MLIR, and do
/// nothing.
static bool takesPlugins(llvm::ArrayRef<char *> words) {
#ifdef CLEAVE_WHOLE
  for (llvm::StringRef word : words)
    if (word = word.ltrim('-').split('=').first; word == "load-pass-plugin" || word == "load-dialect-plugin") {
      llvm::errs()
          << "cleave-opt: error: '--" << word
          << "': this program has MLIR inside; plugins need one that is built with -DCLEAVE_STATIC_TOOLS=OFF\n";
      return false;
    }
#endif
  return true;
}

int main(int argc, char **argv) {
  if (!takesPlugins(llvm::ArrayRef(argv, argc).drop_front()))
    return 1;
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
