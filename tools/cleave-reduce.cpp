//===- cleave-reduce.cpp - makes a failing .mlir file small ---------------===//
//
// Takes a test that says whether a file is interesting, and a pass that reduces by it.
//
//===----------------------------------------------------------------------===//
#include "cleave/Pipelines/Registration.h"
#include "cleave/Support/ToolFiles.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Tools/mlir-reduce/MlirReduceMain.h"

#include <cstdlib>

/// Without such a pass nothing would be reduced, and the file come back as it is.
static bool namesReduction(llvm::ArrayRef<char *> words) {
  for (llvm::StringRef word : words)
    if (word.contains("reduction") || word.starts_with("-help") || word.starts_with("--help") ||
        word.contains("-version"))
      return true;
  llvm::errs()
      << "cleave-reduce: error: nothing says what to keep: give '-reduction-tree=traversal-mode=0 test=SCRIPT', where "
         "SCRIPT exits with 1 for a file that shows what you are after, and with 0 for others\n";
  return false;
}

int main(int argc, char **argv) {
  cleave::setUpTool("cleave-reduce");
  llvm::ArrayRef<char *> words = llvm::ArrayRef(argv, argc).drop_front();
  if (!namesReduction(words) || !cleave::checkToolFiles("cleave-reduce", cleave::listToolFiles(words)))
    return 2;
  mlir::DialectRegistry registry;
  cleave::registerDialects(registry);
  cleave::registerPasses();
  mlir::MLIRContext context(registry);
  return mlir::failed(mlir::mlirReduceMain(argc, argv, context)) ? EXIT_FAILURE : EXIT_SUCCESS;
}
