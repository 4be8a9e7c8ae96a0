//===- cleave-reduce.cpp - makes a failing .mlir file small ---------------===//
//
//   cleave-reduce m.mlir --test=SCRIPT -o small.mlir       what is left shows what the script looks for (Transforms/Reduce.h)
//   cleave-reduce m.mlir -reduction-tree=.. | -opt-reduction-pass=..   passes of MLIR, with a script of their own
//
//===----------------------------------------------------------------------===//
#include "cleave/Pipelines/Registration.h"
#include "cleave/Support/ToolFiles.h"
#include "cleave/Transforms/Reduce.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-reduce/MlirReduceMain.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/ToolOutputFile.h"

#include <cstdlib>

using llvm::StringRef;

/// Says what is wrong, and how to end.
static int fail(const llvm::Twine &message) {
  llvm::errs() << "cleave-reduce: error: " << message << '\n';
  return EXIT_FAILURE;
}

/// Without a test nothing would be reduced, and the file come back as it is.
static bool namesReduction(llvm::ArrayRef<char *> words) {
  for (StringRef word : words)
    if (word.contains("reduction") || word.starts_with("-help") || word.starts_with("--help") ||
        word.contains("-version"))
      return true;
  fail("nothing says what to keep: give '--test=SCRIPT', where SCRIPT exits with 1 for a file that shows what you are "
       "after, and with 0 for "
       "others (or '-reduction-tree=traversal-mode=0 test=SCRIPT', a pass of MLIR)");
  return false;
}

/// What `--test`, with or without `=`, says; takes the words out of the list. Empty: there is none.
static StringRef takeWord(llvm::SmallVectorImpl<StringRef> &words, StringRef option) {
  for (size_t index = 0; index < words.size(); ++index) {
    StringRef word = words[index];
    if (!word.consume_front("--") && !word.consume_front("-"))
      continue;
    if (!word.consume_front(option))
      continue;
    if (word.consume_front("=")) {
      words.erase(words.begin() + index);
      return word;
    }
    if (word.empty() && index + 1 < words.size()) {
      StringRef argument = words[index + 1];
      words.erase(words.begin() + index, words.begin() + index + 2);
      return argument;
    }
  }
  return "";
}

/// Writes candidates to a file, which the script is given. It ends with 1 for one that is interesting; what it prints is not shown.
class Script {
public:
  explicit Script(StringRef path) : path(path) {}
  ~Script() {
    if (!file.empty())
      llvm::sys::fs::remove(file);
  }

  /// Nothing after an error.
  std::optional<int> run(mlir::ModuleOp module) {
    int descriptor;
    if (file.empty() && llvm::sys::fs::createTemporaryFile("cleave-reduce", "mlir", descriptor, file))
      return std::nullopt;
    std::error_code error;
    llvm::raw_fd_ostream os(file, error);
    if (error)
      return std::nullopt;
    module.print(os, mlir::OpPrintingFlags().enableDebugInfo());
    os.close();
    std::optional<StringRef> nowhere[] = {std::nullopt, StringRef(), StringRef()};
    int code = llvm::sys::ExecuteAndWait(path, {path, file}, std::nullopt, nowhere, 0, 0, &message);
    return code < 0 ? std::nullopt : std::optional(code);
  }

  std::string message;

private:
  std::string path;
  llvm::SmallString<128> file;
};

/// Of one file, by a script. The module that is left goes to `output`, or to standard output.
static int reduce(StringRef input, StringRef test, StringRef output, mlir::MLIRContext &context) {
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::parseSourceFile<mlir::ModuleOp>(input, &context);
  if (!module)
    return EXIT_FAILURE;
  Script script(test);
  std::optional<int> code = script.run(*module);
  if (!code)
    return fail(llvm::formatv("'{0}' cannot be run: {1}", test, script.message));
  if (*code != 1)
    return fail(llvm::formatv(
        "nothing to reduce: '{0}' exits with {1} for '{2}' itself, and 1 means that a file shows what you are after",
        test, *code, input));
  cleave::ReduceSummary summary =
      cleave::reduceModule(module, [&](mlir::ModuleOp candidate) { return script.run(candidate) == 1; });
  llvm::errs() << llvm::formatv("cleave-reduce: {0} ops of {1} are left, after {2} tries\n", summary.after,
                                summary.before, summary.tried);
  std::string problem;
  std::unique_ptr<llvm::ToolOutputFile> file = mlir::openOutputFile(output.empty() ? "-" : output, &problem);
  if (!file)
    return fail(problem);
  module->print(file->os());
  file->keep();
  return EXIT_SUCCESS;
}

int main(int argc, char **argv) {
  cleave::setUpTool("cleave-reduce");
  llvm::ArrayRef<char *> words = llvm::ArrayRef(argv, argc).drop_front();
  llvm::SmallVector<StringRef> rest(words.begin(), words.end());
  StringRef test = takeWord(rest, "test"), output = takeWord(rest, "o");
  if ((test.empty() && !namesReduction(words)) ||
      !cleave::checkToolFiles("cleave-reduce", cleave::listToolFiles(words)))
    return 2;
  mlir::DialectRegistry registry;
  cleave::registerDialects(registry);
  cleave::registerPasses();
  mlir::MLIRContext context(registry);
  if (test.empty())
    return mlir::failed(mlir::mlirReduceMain(argc, argv, context)) ? EXIT_FAILURE : EXIT_SUCCESS;
  if (rest.size() != 1)
    return fail(rest.empty() ? "which file?" : "with '--test' there is one file, and no other option but '-o'"), 2;
  return reduce(rest.front(), test, output, context);
}
