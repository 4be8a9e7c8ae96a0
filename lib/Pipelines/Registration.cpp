//===- Registration.cpp - dialects and passes for the tools ---------------===//
//
// One place for what all tools need, so that a dialect or a pass that is new is known to each of them. LLVM's libraries
// register options of their own in every program that links them; tools hide these.
//
//===----------------------------------------------------------------------===//
#include "cleave/Pipelines/Registration.h"

#include "OlderNames.h"

#include "cleave/Dialect/Exec/IR/Exec.h"
#include "cleave/Dialect/Exec/Transforms/Passes.h"
#include "cleave/Dialect/Nn/IR/Nn.h"
#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "cleave/Dialect/Pipe/Transforms/Passes.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "cleave/Dialect/Spmd/Transforms/Passes.h"
#include "cleave/Pipelines/Canonicalize.h"
#include "cleave/Program/Exhaustion.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/Statistic.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Debug.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/ManagedStatic.h"
#include "llvm/Support/PrettyStackTrace.h"

void cleave::registerDialects(mlir::DialectRegistry &registry) {
  registry.insert<mlir::func::FuncDialect, nn::NnDialect, spmd::SpmdDialect, exec::ExecDialect, pipe::PipeDialect>();
  // Passes of spmd make ops of the dialect that they split, also where a file has none of it.
  registry.addExtension(
      +[](mlir::MLIRContext *context, spmd::SpmdDialect *) { context->loadDialect<nn::NnDialect>(); });
}

void cleave::setUpTool(const char *tool) {
  program::endWhenExhausted(tool, 1);
  llvm::install_bad_alloc_error_handler([](void *, const char *, bool) { program::endWithoutMemory(); });
  llvm::setBugReportMsg(
      "This is a bug of Cleave: please report it to the project, with the file and the command that show "
      "it and the stack below.\n");
  for (auto &entry : llvm::cl::getRegisteredOptions())
    if (!entry.first.starts_with("help") && entry.first != "version")
      entry.second->setHiddenFlag(llvm::cl::ReallyHidden);
}

void cleave::keepLocationsInReproducers() {
  auto &options = llvm::cl::getRegisteredOptions();
  if (options.lookup("mlir-pass-pipeline-crash-reproducer")->getNumOccurrences() ||
      options.lookup("mlir-generate-reproducer")->getNumOccurrences())
    static_cast<llvm::cl::opt<bool> *>(options.lookup("mlir-print-debuginfo"))->setValue(true);
}

namespace {
/// MlirOptMain shuts LLVM down, and with it the counters.
struct StatisticsPrinter {
  ~StatisticsPrinter() { llvm::PrintStatistics(llvm::errs()); }
};
} // namespace
static llvm::ManagedStatic<StatisticsPrinter> statisticsPrinter;

void cleave::printStatistics() {
  if (!llvm::cl::getRegisteredOptions().lookup("mlir-pass-statistics")->getNumOccurrences())
    return;
  llvm::EnableStatistics(/*DoPrintOnExit=*/false);
  (void)llvm::GetStatistics(); // made first, they go last
  (void)*statisticsPrinter;
}

void cleave::registerDebugOptions() {
#ifndef NDEBUG
  static std::vector<std::string> types;
  static llvm::cl::list<std::string> option("debug-only", llvm::cl::CommaSeparated, llvm::cl::value_desc("passes"),
                                            llvm::cl::desc("print what these passes note for those who work on them"),
                                            llvm::cl::callback([](const std::string &type) {
                                              llvm::DebugFlag = true;
                                              types.push_back(type);
                                              auto names = llvm::map_to_vector(
                                                  types, [](const std::string &name) { return name.c_str(); });
                                              llvm::setCurrentDebugTypes(names.data(), names.size());
                                            }));
#endif
}

void cleave::registerPasses() {
  // On any IR: canonicalize, cse, symbol-dce, strip-debuginfo, ...
  mlir::registerTransformsPasses();
  registerNnPipelines();
  spmd::registerSpmdPasses();
  exec::registerExecPasses();
  pipe::registerPipePasses();
  registerOlderNames();
}
