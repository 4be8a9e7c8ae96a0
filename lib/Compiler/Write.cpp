//===- Write.cpp - a module into a file -----------------------------------===//
//
// Text with locations, for a reader or for a later run, or bytecode. A model of 100,000 ops is written in about the
// time that it takes to print its ops: what would take longer (looking for aliases, verifying once more) is left out
// where it gains nothing.
//
//===----------------------------------------------------------------------===//
#include "State.h"

#include "cleave/Annotations/DevicePlan.h"
#include "cleave/Annotations/Properties.h"
#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "cleave/Dialect/Pipe/Transforms/Passes.h"
#include "cleave/Dialect/Pipe/Transforms/PlanPasses.h"
#include "cleave/Export/Onnx/Export.h"
#include "cleave/Pipelines/Phases.h"
#include "cleave/Plan/FormatPlan.h"
#include "cleave/Reference/Weights.h"
#include "cleave/Support/Beside.h"
#include "cleave/Support/Bytecode.h"
#include "cleave/Support/Status.h"
#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/IR/AsmState.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace cleave;

/// Aliases (`#mesh`, `#loc7`) are for readers, and finding them takes longer than printing all the rest. Nobody reads
/// this many ops; but where types carry shardings, it is aliases that keep the file small. So it is where a node of thousands of
/// operands has become as many ops, each of which has all of their names.
static bool isWithoutAliases(ModuleOp module) {
  constexpr int64_t manyOps = 10000, manyNames = 32;
  int64_t count = 0, names = 0;
  module.walk([&](Operation *op) {
    ++count;
    for (const spmd::NodeInfo &info : spmd::getNodeInfos(op))
      names += info.operands.size();
  });
  bool isLarge = count > manyOps && names < manyNames * count;
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
  std::string bytes;
  llvm::raw_string_ostream buffer(bytes);
  if (failed(writeBytecodeToFile(module, buffer, BytecodeWriterConfig(kBytecodeProducer))))
    return makeError("the module cannot be written as bytecode");
  sealBytecode(bytes);
  os << bytes;
  return llvm::Error::success();
}

/// Printing and checking only read the module, but both ask the context for types and attributes. Checking takes longer: what is
/// printed goes to disk meanwhile.
static llvm::Error writeChecked(ModuleOp module, StringRef path, WriteFn write, CheckFn check) {
  std::optional<Beside> checking;
  llvm::Error checked = llvm::Error::success();
  auto print = [&](llvm::raw_ostream &os) {
    module.getContext()->enableMultithreading();
    checking.emplace([&] { checked = llvm::joinErrors(std::move(checked), check()); });
    return write(module, os);
  };
  return writeFileAtomically(path, print, [&]() -> llvm::Error {
    if (checking) { // else nothing could be written
      checking->wait();
      module.getContext()->disableMultithreading();
    }
    return std::move(checked);
  });
}

llvm::Error cleave::writeModule(ModuleOp module, StringRef path, CheckFn check) {
  if (path.empty() || path == "-")
    return writeText(module, llvm::outs());
  WriteFn write = path.ends_with(".mlirbc") ? writeBytecode : writeText;
  if (check)
    return writeChecked(module, path, write, check);
  return writeFileAtomically(path, [&](llvm::raw_ostream &os) { return write(module, os); });
}

/// Who reads the file will hold every byte of them against it.
bool Compilation::State::digestWeights() {
  return options.sampleDigests || succeeded(reference::digestWeights(*module));
}

/// Weights beside a model are named by paths that begin in its folder.
static llvm::Error checkFolder(const onnx::ModelProto &model, StringRef from, StringRef to) {
  bool isAlone =
      llvm::none_of(model.graph.initializer, [](const onnx::TensorProto &weight) { return weight.isExternal; });
  StringRef source = llvm::sys::path::parent_path(from), target = llvm::sys::path::parent_path(to);
  if (isAlone || source == target ||
      llvm::sys::fs::equivalent(source.empty() ? "." : source, target.empty() ? "." : target))
    return llvm::Error::success();
  return makeError("weights of {0} are next to it: write {1} to the same folder", from, llvm::sys::path::filename(to));
}

/// Stages are decided on the program of one device, which is made of a copy: what is written is said of the whole one.
OwningOpRef<ModuleOp> Compilation::State::assignStages() {
  OwningOpRef<ModuleOp> before = std::exchange(module, OwningOpRef<ModuleOp>(module->clone()));
  bool isDone = true;
  for (const PipelinePhase &step : getShardPhases())
    isDone = isDone && (!isAhead(step.phase, cleave::getPhase(*module)) || runPhase(step, /*isVerified=*/false));
  PassManager manager(context.get());
  manager.addPass(pipe::createAssignStages(handed.pipeline));
  isDone = isDone && succeeded(manager.run(*module));
  OwningOpRef<ModuleOp> staged = std::exchange(module, std::move(before));
  return isDone ? std::move(staged) : nullptr;
}

/// Where the plan asks for no pipeline there are none. False after an error.
bool Compilation::State::findStages(const onnx::GraphProto &graph, std::optional<onnx::NodeStages> &stages) {
  if (!handed.pipeline)
    return true;
  OwningOpRef<ModuleOp> staged = assignStages();
  if (!staged)
    return false;
  std::vector<std::string> split;
  llvm::Expected<onnx::NodeStages> found = onnx::findNodeStages(graph, *staged, *handed.pipeline->pipeline, split);
  if (!found)
    return fail(found.takeError());
  if (!split.empty())
    emitWarning(NameLoc::get(StringAttr::get(context.get(), options.model)))
        << "a node has one stage: of node " << quote(split.front())
        << (split.size() > 1 ? " and of " + std::to_string(split.size() - 1) + " more" : "")
        << " only a part is in the stage that is written, property '" << onnx::kStagesProperty << "' says the rest";
  if (const spmd::PlanPipeline &pipeline = *handed.pipeline->pipeline; pipeline.hasScheduleFile())
    emitWarning(NameLoc::get(StringAttr::get(context.get(), options.model)))
        << "schedule " << quote(pipeline.schedule)
        << " is a file, which is not written: who reads the model has one by name";
  stages = std::move(*found);
  return true;
}

/// A plan with stages that a model said, or with a schedule in a file, is more than its text.
std::optional<onnx::PlanOrigin> Compilation::State::findOrigin(const onnx::NodeStages *stages) {
  if (!plan || plan->mesh.empty())
    return std::nullopt;
  std::string pipeline;
  if (stages) {
    const spmd::PlanPipeline &asked = *plan->pipeline;
    if (!asked.said.isEmpty() || asked.hasScheduleFile())
      return std::nullopt;
    pipeline = stages->property;
    if (!asked.stages.empty())
      pipeline = StringRef(pipeline).drop_back().str() + ", stages: " + spmd::formatStages(asked.stages) + "}";
  }
  return onnx::PlanOrigin{formatPlan(*plan, options.sharding.attention, pipeline), settings};
}

bool Compilation::writeOnnx(StringRef path) {
  assert(getPhase() >= Phase::Propagated && "no sharding has been decided");
  if (!isOnnx() || state->options.model == "-")
    return fail(makeError("device annotations are written to a copy of an ONNX model in a file, and this is none"));
  llvm::Expected<std::shared_ptr<const MappedFile>> file = MappedFile::open(state->options.model);
  if (!file)
    return fail(file.takeError());
  OwningOpRef<ModuleOp> imported = state->importOnnx(*file, /*collectAllErrors=*/false);
  if (!imported)
    return false;
  llvm::Expected<std::unique_ptr<onnx::ModelFile>> read = onnx::readModel(*file);
  if (!read)
    return fail(read.takeError());
  const onnx::ModelProto &model = (*read)->model;
  if (llvm::Error error = checkFolder(model, (*file)->getPath(), path))
    return fail(std::move(error));
  std::optional<onnx::NodeStages> stages;
  if (!state->findStages(model.graph, stages))
    return false;
  onnx::TensorTypes tensors = onnx::collectTensors(*imported);
  const onnx::NodeStages *said = stages ? &*stages : nullptr;
  std::optional<onnx::PlanOrigin> origin = state->findOrigin(said);
  llvm::Error error = writeFileAtomically(path, [&](llvm::raw_ostream &os) {
    return onnx::writeAnnotated(**file, getModule(), tensors, said, origin ? &*origin : nullptr, os);
  });
  return error ? fail(std::move(error)) : true;
}

/// Of a copy, in which each rank of a pipeline has one block.
std::optional<onnx::ExportSummary> Compilation::exportOnnx(StringRef folder, const onnx::ExportOptions &options) {
  assert(getPhase() >= (isPipelined() ? Phase::PerRank : Phase::Optimized) && "there are no programs of ranks");
  SmallVector<func::FuncOp, 4> functions;
  OwningOpRef<ModuleOp> copy;
  if (isPipelined()) {
    copy = getModule().clone();
    PassManager manager(&getContext());
    manager.addPass(pipe::createInline());
    if (failed(manager.run(*copy)))
      return std::nullopt;
    for (auto table : getModule().getOps<pipe::ScheduleOp>())
      copy->push_back(table->clone());
    functions = pipe::getRankFunctions(*copy);
  } else if (func::FuncOp func = getEntry()) {
    functions.push_back(func);
  }
  std::vector<onnx::ExportedProgram> programs;
  for (func::FuncOp func : functions) {
    onnx::OnnxGraphPtr graph = onnx::makeGraph(func, options);
    if (!graph)
      return std::nullopt;
    programs.push_back({std::move(graph), func});
  }
  if (programs.empty())
    return std::nullopt;
  llvm::Expected<onnx::ExportSummary> summary = onnx::writeModels(programs, folder);
  if (summary)
    return *summary;
  // What is wrong with a weight's file has been said at the parameter.
  if (getBlame())
    llvm::consumeError(summary.takeError());
  else
    fail(summary.takeError());
  return std::nullopt;
}
