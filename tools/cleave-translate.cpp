//===- cleave-translate.cpp - between ONNX, MLIR and programs -------------===//
//
// One step at each end of the way and nothing else: what was imported, before any canonical form; what an ordered module
// becomes, whoever wrote it. Tests of both see with it what happens there.
//
//===----------------------------------------------------------------------===//
#include "cleave/Assembly/Assembly.h"
#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "cleave/Import/Onnx/Import.h"
#include "cleave/Pipelines/Registration.h"
#include "cleave/Program/File.h"
#include "cleave/Reference/Weights.h"
#include "cleave/Support/ToolFiles.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
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

/// The file of `-o`, opened where neither the command line nor the weights of `module` would be lost by it; null after a message.
static std::unique_ptr<llvm::ToolOutputFile> openOutput(StringRef path, cleave::runtime::CommandFiles files,
                                                        ModuleOp module) {
  for (const std::string &weights : cleave::reference::listWeightFiles(module))
    files.addInput("a file of the weights", weights);
  if (!cleave::checkToolFiles("cleave-translate", files))
    return nullptr;
  std::string message;
  auto file = openOutputFile(path, &message);
  if (!file)
    llvm::errs() << "error: " << message << "\n";
  return file;
}

enum class Translation { ImportOnnx, ExecToProgram };

/// The program of the function `main` of an MLIR file, or of its functions for the ranks of a pipeline.
/// By value: linking sets all options back.
static int translateToProgram(std::string input, std::string output, const cleave::runtime::CommandFiles &files) {
  DialectRegistry registry;
  cleave::registerDialects(registry);
  MLIRContext context(registry);
  context.loadAllAvailableDialects();
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(input, &context);
  if (!module)
    return 1;
  SmallVector<func::FuncOp, 4> functions = cleave::pipe::getRankFunctions(*module);
  if (auto func = module->lookupSymbol<func::FuncOp>("main"))
    functions = {func};
  if (functions.empty())
    return llvm::errs() << "error: there is no function @main\n", 1;
  std::unique_ptr<cleave::Assembly> assembly = cleave::assemble(functions, cleave::AssemblyOptions());
  if (!assembly)
    return 1;
  auto file = openOutput(output, files, *module);
  if (!file)
    return 1;
  file->os() << cleave::program::writeProgram(assembly->program);
  file->keep();
  return 0;
}

int main(int argc, char **argv) {
  cleave::setUpTool("cleave-translate");
  cl::opt<Translation> translation(
      cl::desc("translation"), cl::Required,
      cl::values(
          clEnumValN(Translation::ImportOnnx, "import-onnx", "import an ONNX model into the nn dialect"),
          clEnumValN(Translation::ExecToProgram, "exec-to-program", "make a program file of an ordered module")));
  cl::opt<std::string> input(cl::Positional, cl::desc("MODEL"), cl::Required);
  cl::opt<std::string> output("o", cl::desc("output file"), cl::init("-"));
  cl::list<std::string> dims("dim", cl::CommaSeparated, cl::desc("value of a symbolic dim: batch=8"));
  cl::list<std::string> shapes("shape", cl::desc("shape of an input: x=8x128"));
  cl::opt<bool> all("all-errors", cl::desc("report all errors, not only the first"));
  registerAsmPrinterCLOptions();
  cleave::registerDebugOptions();
  cl::ParseCommandLineOptions(argc, argv, "translates between ONNX, MLIR and program files\n");

  cleave::runtime::CommandFiles files = cleave::listToolFiles(llvm::ArrayRef(argv, argc).drop_front());
  if (!cleave::checkToolFiles("cleave-translate", files))
    return 2;
  if (translation == Translation::ExecToProgram)
    return translateToProgram(input, output, files);
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
  auto file = openOutput(output, files, *module);
  if (!file)
    return 1;
  module->print(file->os(), OpPrintingFlags());
  file->keep();
  return 0;
}
