//===- Write.cpp - a module into a file -----------------------------------===//
//
// Text with locations, for a reader or for a later run, or bytecode. A model of 100,000 ops is written in about the
// time that it takes to print its ops: what would take longer (looking for aliases, verifying once more) is left out
// where it gains nothing.
//
//===----------------------------------------------------------------------===//
#include "State.h"

#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "cleave/Export/Onnx/Annotate.h"
#include "cleave/Export/Onnx/Export.h"
#include "cleave/Support/Status.h"
#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/IR/AsmState.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <future>

using namespace mlir;
using namespace cleave;

/// Aliases (`#mesh`, `#loc7`) are for readers, and finding them takes longer than printing all the rest. Nobody reads
/// this many ops; but where types carry shardings, it is aliases that keep the file small.
static bool isWithoutAliases(ModuleOp module) {
  constexpr unsigned manyOps = 10000;
  unsigned count = 0;
  bool isLarge =
      module.walk([&](Operation *) { return ++count > manyOps ? WalkResult::interrupt() : WalkResult::advance(); })
          .wasInterrupted();
  Phase phase = isLarge ? cleave::getPhase(module) : Phase::Annotated;
  return phase == Phase::Imported || phase >= Phase::Partitioned;
}

using WriteFn = llvm::Error (*)(ModuleOp, llvm::raw_ostream &);
using CheckFn = llvm::function_ref<llvm::Error()>;

static llvm::Error writeText(ModuleOp module, llvm::raw_ostream &os) {
  OpPrintingFlags flags;
  // What is written has been verified: printing need not do so again.
  flags.enableDebugInfo(true).useLocalScope(isWithoutAliases(module)).assumeVerified();
  AsmState state(module, flags);
  module.print(os, state);
  os << '\n';
  return llvm::Error::success();
}

static llvm::Error writeBytecode(ModuleOp module, llvm::raw_ostream &os) {
  if (failed(writeBytecodeToFile(module, os, BytecodeWriterConfig("Cleave"))))
    return makeError("the module cannot be written as bytecode");
  return llvm::Error::success();
}

/// Printing and checking only read the module, but both ask the context for types and attributes.
static llvm::Error writeChecked(ModuleOp module, llvm::raw_ostream &os, WriteFn write, CheckFn check) {
  MLIRContext *context = module.getContext();
  context->enableMultithreading();
  std::future<llvm::Error> checked = std::async(std::launch::async, check);
  llvm::Error error = write(module, os);
  error = llvm::joinErrors(std::move(error), checked.get());
  context->disableMultithreading();
  return error;
}

llvm::Error cleave::writeModule(ModuleOp module, StringRef path, CheckFn check) {
  if (path.empty() || path == "-")
    return writeText(module, llvm::outs());
  WriteFn write = path.ends_with(".mlirbc") ? writeBytecode : writeText;
  return writeFileAtomically(
      path, [&](llvm::raw_ostream &os) { return check ? writeChecked(module, os, write, check) : write(module, os); });
}

/// Weights beside a model are named by paths that begin in its folder.
static llvm::Error checkFolder(const onnx::ModelProto &model, StringRef from, StringRef to) {
  bool isAlone =
      llvm::none_of(model.graph.initializer, [](const onnx::TensorProto &weight) { return weight.isExternal; });
  StringRef source = llvm::sys::path::parent_path(from), target = llvm::sys::path::parent_path(to);
  if (isAlone || source == target ||
      llvm::sys::fs::equivalent(source.empty() ? "." : source, target.empty() ? "." : target))
    return llvm::Error::success();
  return makeError("weights of {0} lie beside it: write {1} to the same folder", from, llvm::sys::path::filename(to));
}

static llvm::Error writeOnnxFile(ModuleOp module, const onnx::TensorTypes &tensors,
                                 const std::shared_ptr<const MappedFile> &file, StringRef path) {
  llvm::Expected<std::unique_ptr<onnx::ModelFile>> read = onnx::readModel(file);
  if (!read)
    return read.takeError();
  if (llvm::Error error = checkFolder((*read)->model, file->getPath(), path))
    return error;
  return writeFileAtomically(path,
                             [&](llvm::raw_ostream &os) { return onnx::writeAnnotated(*file, module, tensors, os); });
}

bool Compilation::writeOnnx(StringRef path) {
  if (!isOnnx() || state->options.model == "-")
    return fail(makeError("device annotations are written to a copy of an ONNX model in a file, and this is none"));
  llvm::Expected<std::shared_ptr<const MappedFile>> file = MappedFile::open(state->options.model);
  if (!file)
    return fail(file.takeError());
  OwningOpRef<ModuleOp> imported = state->importOnnx(*file, /*collectAllErrors=*/false);
  if (!imported)
    return false;
  llvm::Error error = writeOnnxFile(getModule(), onnx::collectTensors(*imported), *file, path);
  return error ? fail(std::move(error)) : true;
}

std::optional<onnx::ExportSummary> Compilation::exportOnnx(StringRef folder, const onnx::ExportOptions &options) {
  func::FuncOp func = getEntry();
  if (!func)
    return std::nullopt;
  if (isPipelined()) {
    fail(makeError("{0}: a model in stages cannot be exported: its ranks run different programs, several times a call",
                   state->options.model));
    return std::nullopt;
  }
  onnx::OnnxGraphPtr graph = onnx::makeGraph(func, options);
  if (!graph)
    return std::nullopt;
  llvm::Expected<onnx::ExportSummary> summary = onnx::writeModels(*graph, func, folder);
  if (summary)
    return *summary;
  // What is wrong with a weight's file has been said at the parameter.
  if (getBlame())
    llvm::consumeError(summary.takeError());
  else
    fail(summary.takeError());
  return std::nullopt;
}
