//===- cleave-translate.cpp - between ONNX and MLIR -----------------------===//
//
// Imports and nothing else: no folder of options, no canonical form. Tests of the importer see with it what was
// imported.
//
//===----------------------------------------------------------------------===//
#include "cleave/Import/Onnx/Import.h"
#include "cleave/Pipelines/Registration.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;
namespace cl = llvm::cl;

/// Splits `name=1x2` at the last `=`; the number of `separator`-separated sizes is open.
static bool parseSizes(StringRef text, char separator, StringRef &name, SmallVectorImpl<int64_t> &sizes) {
  StringRef list;
  std::tie(name, list) = text.rsplit('=');
  SmallVector<StringRef> parts;
  list.split(parts, separator, -1, /*KeepEmpty=*/false);
  return llvm::all_of(parts, [&](StringRef part) { return !part.getAsInteger(10, sizes.emplace_back()); });
}

/// `model.onnx: error: ...`
static LogicalResult printDiagnostic(Diagnostic &diagnostic) {
  auto file = dyn_cast<NameLoc>(diagnostic.getLocation());
  DiagnosticSeverity severity = diagnostic.getSeverity();
  StringRef kind = severity == DiagnosticSeverity::Error     ? "error: "
                   : severity == DiagnosticSeverity::Warning ? "warning: "
                                                             : "remark: ";
  std::string place = file ? file.getName().str() + ": " : "";
  llvm::errs() << place << kind << diagnostic << "\n";
  for (Diagnostic &note : diagnostic.getNotes())
    llvm::errs() << place << "note: " << note << "\n";
  return success();
}

int main(int argc, char **argv) {
  cleave::setUpTool();
  cl::opt<bool> importOnnx("import-onnx", cl::desc("import an ONNX model into the nn dialect"), cl::Required);
  cl::opt<std::string> input(cl::Positional, cl::desc("MODEL"), cl::Required);
  cl::opt<std::string> output("o", cl::desc("output file"), cl::init("-"));
  cl::list<std::string> dims("dim", cl::CommaSeparated, cl::desc("value of a symbolic dim: batch=8"));
  cl::list<std::string> shapes("shape", cl::desc("shape of an input: x=8x128"));
  cl::opt<bool> all("all-errors", cl::desc("report all errors, not only the first"));
  registerAsmPrinterCLOptions();
  cl::ParseCommandLineOptions(argc, argv, "translates between ONNX and MLIR\n");

  cleave::onnx::ImportOptions options;
  options.collectAllErrors = all;
  StringRef name;
  for (StringRef text : dims) {
    SmallVector<int64_t> sizes;
    if (!parseSizes(text, ',', name, sizes) || sizes.size() != 1)
      return llvm::errs() << "error: --dim wants NAME=SIZE, got '" << text << "'\n", 2;
    options.dims[name] = sizes.front();
  }
  for (StringRef text : shapes) {
    SmallVector<int64_t> sizes;
    if (!parseSizes(text, 'x', name, sizes))
      return llvm::errs() << "error: --shape wants NAME=SIZExSIZE.., got '" << text << "'\n", 2;
    options.shapes[name] = sizes;
  }
  MLIRContext context;
  context.getDiagEngine().registerHandler(printDiagnostic);
  OwningOpRef<ModuleOp> module = cleave::onnx::importOnnx(&context, input, options);
  if (!module)
    return 1;
  std::string message;
  auto file = openOutputFile(output, &message);
  if (!file)
    return llvm::errs() << "error: " << message << "\n", 1;
  module->print(file->os(), OpPrintingFlags());
  file->keep();
  return 0;
}
