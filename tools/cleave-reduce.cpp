//===- cleave-reduce.cpp - makes a failing .mlir file small ---------------===//
//
// Takes a test that says whether a file is interesting, and a pass that reduces by it. What is tried on the way is often no legal
// program, which nobody wants to hear about.
//
//===----------------------------------------------------------------------===//
#include "cleave/Pipelines/Registration.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
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

/// Of all that is said while the file is reduced only what is about the test.
static mlir::LogicalResult say(mlir::Diagnostic &diagnostic) {
  std::string text = diagnostic.str();
  if (llvm::StringRef(text).contains("not interested"))
    llvm::errs() << "cleave-reduce: error: the file is not interesting as it is: the test has to exit with 1 for it\n";
  else if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error && llvm::StringRef(text).contains("test"))
    llvm::errs() << "cleave-reduce: error: " << text << '\n';
  return mlir::success();
}

int main(int argc, char **argv) {
  cleave::setUpTool("cleave-reduce");
  if (!namesReduction(llvm::ArrayRef(argv, argc).drop_front()))
    return 2;
  mlir::DialectRegistry registry;
  cleave::registerDialects(registry);
  cleave::registerReductions(registry);
  cleave::registerPasses();
  for (llvm::StringRef word : llvm::ArrayRef(argv, argc).drop_front())
    if (mlir::MLIRContext first(registry);
        !word.starts_with("-") && word.ends_with(".mlir") && !mlir::parseSourceFile<mlir::ModuleOp>(word, &first))
      return EXIT_FAILURE; // which has been told
  mlir::MLIRContext context(registry);
  context.getDiagEngine().registerHandler(say);
  return mlir::failed(mlir::mlirReduceMain(argc, argv, context)) ? EXIT_FAILURE : EXIT_SUCCESS;
}
