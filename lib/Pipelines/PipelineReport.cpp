//===- PipelineReport.cpp - what reports say of pipelines -----------------===//
//
// Ranks of a pipeline run programs of their own. The report is that of the busiest: it says what is sent by the rank that
// sends most, and of memory, parameters and compute the most that any rank has. Inputs and outputs are those of all:
//
//   rank 0    20 kB sent,  100 kB peak, inputs x, m         report    20 kB sent, 140 kB peak
//   rank 1     0 kB sent,  140 kB peak, output y                      inputs x, m, output y
//
//===----------------------------------------------------------------------===//
#include "PipelineReport.h"

#include "cleave/Cost/Ranks.h"
#include "cleave/Dialect/Nn/IR/Begins.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Dialect/Spmd/IR/StepRoles.h"
#include "mlir/Support/DebugStringHelper.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace cleave;

SmallVector<func::FuncOp> cleave::getCalled(func::FuncOp func, const SymbolTable &symbols) {
  llvm::SetVector<func::FuncOp> called;
  called.insert(func);
  for (size_t next = 0; next < called.size(); ++next)
    for (Operation &op : func::FuncOp(called[next]).getBody().front())
      if (func::FuncOp callee = cost::getCallee(&op, symbols))
        called.insert(callee);
  return called.takeVector();
}

std::vector<CollectiveReport> cleave::describeMessage(Operation *op) {
  std::vector<CollectiveReport> reports;
  if (!isa<pipe::SendOp, exec::SendOp>(op))
    return reports;
  for (Value value : op->getOperands()) {
    auto type = cast<ShapedType>(value.getType());
    CollectiveReport &report = reports.emplace_back();
    report.kind = "send";
    if (auto axis = op->getParentOfType<ModuleOp>()->getAttrOfType<StringAttr>(pipe::PipeDialect::kAxisAttr))
      report.axes = {axis.str()};
    report.groupSize = 2;
    report.type = debugString(type.getElementType());
    report.operandShape = report.resultShape = type.getShape().vec();
    report.wireBytes = spmd::getBytes(type);
    report.cause = "the next stages are on another rank of the pipeline";
  }
  return reports;
}

/// Distinct parameters of all ranks.
static int64_t countParameterBytes(ArrayRef<func::FuncOp> ranks, const SymbolTable &symbols) {
  llvm::DenseSet<Operation *> params;
  int64_t bytes = 0;
  auto count = [&](StringRef name) {
    if (auto param = symbols.lookup<nn::ParamOp>(name); param && params.insert(param).second)
      bytes += spmd::getBytes(param.getType());
  };
  for (func::FuncOp rank : ranks) {
    for (unsigned index = 0; index < rank.getNumArguments(); ++index)
      if (auto begins = rank.getArgAttr(index, nn::kBeginsAttr); begins && spmd::isParameter(rank, index))
        count(nn::getBeginsParam(begins).getValue());
    for (func::FuncOp func : getCalled(rank, symbols)) {
      llvm::for_each(func.getOps<nn::LoadOp>(), [&](nn::LoadOp load) { count(load.getParam()); });
      llvm::for_each(func.getOps<exec::LoadOp>(), [&](exec::LoadOp load) { count(load.getParam()); });
    }
  }
  return bytes;
}

/// An input may be several ranks' own.
static void addTensors(const std::vector<TensorReport> &from, std::vector<TensorReport> &to) {
  for (const TensorReport &tensor : from)
    if (llvm::none_of(to, [&](const TensorReport &known) { return known.name == tensor.name; }))
      to.push_back(tensor);
}

/// Attributes as what they are made of: numbers, texts, lists, objects.
static llvm::json::Value toJson(Attribute attribute) {
  if (auto number = dyn_cast<IntegerAttr>(attribute))
    return number.getInt();
  if (auto number = dyn_cast<FloatAttr>(attribute))
    return number.getValueAsDouble();
  if (auto text = dyn_cast<StringAttr>(attribute))
    return text.str();
  if (auto list = dyn_cast<ArrayAttr>(attribute)) {
    llvm::json::Array made;
    for (Attribute entry : list)
      made.push_back(toJson(entry));
    return made;
  }
  llvm::json::Object made;
  if (auto object = dyn_cast<DictionaryAttr>(attribute))
    for (NamedAttribute entry : object)
      made[entry.getName().str()] = toJson(entry.getValue());
  return made;
}

/// What passes noted of stages and their schedule while they were decided. Nothing for a file of a pipeline that says nothing.
static std::optional<llvm::json::Object> describePipeline(ModuleOp module) {
  auto boundaries = module->getAttrOfType<DictionaryAttr>(pipe::PipeDialect::kBoundariesAttr);
  if (!boundaries)
    return std::nullopt;
  llvm::json::Value made = toJson(boundaries);
  llvm::json::Object pipeline = std::move(*made.getAsObject());
  if (auto axis = module->getAttrOfType<StringAttr>(pipe::PipeDialect::kAxisAttr))
    pipeline["axis"] = axis.str();
  pipeline["microbatches"] = pipe::getMicrobatches(module).value_or(1);
  return pipeline;
}

void cleave::printPipeline(llvm::raw_ostream &os, const llvm::json::Object &pipeline) {
  const llvm::json::Array *stages = pipeline.getArray("stages");
  if (const llvm::json::Object *schedule = pipeline.getObject("schedule"))
    os << llvm::formatv(
        "schedule {0}: {1} microbatches, {2:f1} us as modeled, of which ranks have nothing to do {3:f1} %\n",
        schedule->getString("schedule").value_or(""), pipeline.getInteger("microbatches").value_or(1),
        schedule->getNumber("makespan_ns").value_or(0) / 1e3, schedule->getNumber("bubble").value_or(0) * 100);
  for (size_t number = 0; stages && number < stages->size(); ++number) {
    const llvm::json::Object *stage = (*stages)[number].getAsObject();
    if (!stage)
      continue;
    int64_t sent = 0;
    if (const llvm::json::Array *sends = stage->getArray("sends"))
      for (const llvm::json::Value &send : *sends)
        sent += send.getAsObject() ? send.getAsObject()->getInteger("bytes").value_or(0) : 0;
    os << llvm::formatv("stage {0}: {1} ops, {2:f1} us, parameters {3}, sends {4}\n", number,
                        stage->getInteger("nodes").value_or(0), double(stage->getInteger("ns").value_or(0)) / 1e3,
                        formatBytes(stage->getInteger("parameters_bytes").value_or(0)), formatBytes(sent));
  }
}

/// Ranks run against each other. Once memory is planned streams wait for each other, too, which is no matter here.
static std::optional<cost::RanksTime> predict(ArrayRef<func::FuncOp> ranks, const SymbolTable &symbols,
                                              ArrayRef<cost::OpTimes> times) {
  std::vector<std::vector<cost::RankStep>> steps;
  for (auto [rank, own] : llvm::zip_equal(ranks, times))
    steps.push_back(cost::listSteps(rank, symbols, own));
  return cost::simulateRanks(steps);
}

/// Each rank of a pipeline stands for all that are at its place along the others' axes, and goes by the slowest of their devices.
std::vector<cost::OpTimes> cleave::makeTimes(ModuleOp module, size_t numRanks, const spmd::Cluster &cluster) {
  spmd::MeshAttr mesh = spmd::getMesh(module), whole = pipe::getWholeMesh(module);
  auto axis = module->getAttrOfType<StringAttr>(pipe::PipeDialect::kAxisAttr);
  std::vector<cost::OpTimes> times;
  for (size_t rank = 0; rank < numRanks; ++rank)
    times.emplace_back(axis && !cluster.unlike.empty()
                           ? spmd::makeAlike(cluster, spmd::listDevices(spmd::getClusterMesh(whole), axis.getValue(),
                                                                        static_cast<int64_t>(rank)))
                           : cluster,
                       mesh, whole);
  return times;
}

/// How much a rank takes beyond what its device has: of several ranks the one where that is most is told.
static int64_t getExcess(const Report &report) {
  return report.memory ? report.peakBytesPerRank - report.memory->deviceBytes : std::numeric_limits<int64_t>::min();
}

/// Of the rank that sends most, but for the maxima over all.
Report cleave::makePipelineReport(ArrayRef<func::FuncOp> ranks, StringRef model, const spmd::Cluster *cluster) {
  assert(!ranks.empty() && "no ranks");
  auto module = func::FuncOp(ranks.front())->getParentOfType<ModuleOp>();
  const SymbolTable symbols(module);
  std::vector<cost::OpTimes> times;
  if (cluster)
    times = makeTimes(module, ranks.size(), *cluster);
  std::vector<Report> reports;
  for (auto [number, rank] : llvm::enumerate(ranks))
    reports.push_back(makeReport(rank, model, symbols, times.empty() ? nullptr : &times[number]));
  Report whole =
      *llvm::max_element(reports, [](const Report &a, const Report &b) { return a.getWireBytes() < b.getWireBytes(); });
  if (auto mesh = module->getAttrOfType<spmd::MeshAttr>(pipe::PipeDialect::kMeshAttr)) {
    whole.mesh.clear();
    for (auto [name, size] : llvm::zip_equal(mesh.getNames(), mesh.getSizes()))
      whole.mesh.push_back({name.str(), size});
    whole.ranks = mesh.getNumRanks();
  }
  whole.parameterBytes = countParameterBytes(ranks, symbols);
  whole.pipeline = describePipeline(module);
  whole.inputs.clear();
  whole.outputs.clear();
  whole.flops = 0;
  whole.memory =
      llvm::max_element(reports, [](const Report &a, const Report &b) { return getExcess(a) < getExcess(b); })->memory;
  // What a schedule keeps differs from rank to rank, and so does what is left of a device.
  if (whole.pipeline) {
    (*whole.pipeline)["peak_bytes_of_ranks"] =
        llvm::json::Array(llvm::map_range(reports, [](const Report &report) { return report.peakBytesPerRank; }));
    if (whole.train)
      (*whole.pipeline)["memory_of_ranks"] = llvm::json::Array(llvm::map_range(reports, [](const Report &report) {
        llvm::json::Object roles;
        for (const auto &[role, bytes] : report.memoryByRole)
          roles[role] = bytes;
        return llvm::json::Value(std::move(roles));
      }));
  }
  int64_t inner = spmd::getMesh(module).getNumRanks();
  for (const Report &report : reports) {
    addTensors(report.inputs, whole.inputs);
    addTensors(report.outputs, whole.outputs);
    whole.parameterBytesPerRank = std::max(whole.parameterBytesPerRank, report.parameterBytesPerRank);
    if (report.peakBytesPerRank >= whole.peakBytesPerRank) {
      whole.peakBytesPerRank = report.peakBytesPerRank;
      whole.memoryByRole = report.memoryByRole;
    }
    if (report.offload && (!whole.offload || report.offload->bytes > whole.offload->bytes))
      whole.offload = report.offload;
    if (report.arena && (!whole.arena || report.arena->bytes > whole.arena->bytes))
      whole.arena = report.arena;
    whole.flopsPerRank = std::max(whole.flopsPerRank, report.flopsPerRank);
    whole.flops += report.flopsPerRank * static_cast<double>(inner);
    // All of one rank: what overlaps there is part of what that one computes and sends.
    if (whole.time && report.time->getNs() > whole.time->getNs())
      whole.time = report.time;
  }
  if (!times.empty())
    whole.time->ranks = predict(ranks, symbols, times);
  return whole;
}
