//===- cleave-opt.cpp - runs passes over IR -------------------------------===//
//
// For people who work on passes: docs/generated lists them, docs/architecture.md says in which order they make sense.
//
//===----------------------------------------------------------------------===//
#include "cleave/Pipelines/Registration.h"
#include "cleave/Support/Bytecode.h"
#include "cleave/Support/ToolFiles.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/MemoryBuffer.h"

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

/// Bytecode that ends MLIR's reader is an error.
static bool isSound(llvm::StringRef input, const mlir::DialectRegistry &registry) {
  if (input == "-")
    return true; // can be read once
  auto file = llvm::MemoryBuffer::getFile(input);
  if (!file)
    return true; // who reads it will say so
  llvm::Error damage = cleave::checkBytecode((*file)->getBuffer(), [&] {
    mlir::MLIRContext apart(registry, mlir::MLIRContext::Threading::DISABLED);
    (void)mlir::parseSourceFile<mlir::ModuleOp>(input, &apart);
  });
  if (!damage)
    return true;
  llvm::errs() << input << ": error: " << llvm::toString(std::move(damage)) << '\n';
  return false;
}

int main(int argc, char **argv) {
  llvm::ArrayRef<char *> words = llvm::ArrayRef(argv, argc).drop_front();
  if (!takesPlugins(words))
    return 1;
  if (!cleave::checkToolFiles("cleave-opt", cleave::listToolFiles(words)))
    return 2;
  cleave::setUpTool("cleave-opt");
  mlir::DialectRegistry registry;
  cleave::registerDialects(registry);
  cleave::registerPasses();
  cleave::registerDebugOptions();
  auto [input, output] = mlir::registerAndParseCLIOptions(argc, argv, "Cleave's pass driver\n", registry);
  if (!isSound(input, registry))
    return 1;
  cleave::keepLocationsInReproducers();
  cleave::printStatistics();
  if (!mlir::MlirOptMainConfig::createFromCLOptions().shouldVerifyDiagnostics())
    cleave::nameNodesInDiagnostics(registry, input);
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, input, output, registry));
}
