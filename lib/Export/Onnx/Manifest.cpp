//===- Manifest.cpp - what exported files say of themselves ---------------===//
//
// Whoever runs the files has to know which is whose, how to split inputs and how to put outputs together. The words are those of
// docs/report.md: they are added to, and never changed.
//
//===----------------------------------------------------------------------===//
#include "Manifest.h"

#include "cleave/Annotations/Properties.h"
#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Dialect/Spmd/IR/Names.h"
#include "llvm/Support/InterleavedRange.h"
#include "llvm/Support/JSON.h"

#include <set>

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;
using spmd::SpmdDialect;

bool cleave::onnx::isCollective(const Node &node) { return !node.domain.empty(); }

std::vector<std::pair<std::string, int64_t>> cleave::onnx::getDomains(const OnnxGraph &graph) {
  std::set<std::string> domains = {""};
  graph.walk([&](const Node &node) { domains.insert(node.domain); });
  std::vector<std::pair<std::string, int64_t>> versions;
  for (const std::string &domain : domains)
    versions.emplace_back(domain, domain.empty() ? kOpset : kOwnVersion);
  return versions;
}

namespace {
/// An input or output.
struct Port {
  std::string name;
  RankedTensorType global, local;
  spmd::ShardingAttr sharding; ///< null: all ranks have all of it
  StringRef state;
  std::vector<int64_t> ranks; ///< of a pipeline: those that have it
};
} // namespace

/// A function that was partitioned says of each argument and result what it is a shard of.
static Port makePort(const TensorInfo &info, Attribute attribute) {
  auto type = dyn_cast_if_present<TypeAttr>(attribute);
  auto global = type ? cast<RankedTensorType>(type.getValue()) : info.type;
  return {info.name, global, info.type, spmd::getSharding(global), "", {}};
}

static std::vector<Port> getArguments(const OnnxGraph &graph, func::FuncOp func, bool areFixed) {
  std::vector<Port> ports;
  for (auto [index, info] : llvm::enumerate(graph.inputs))
    if (info.isFixed == areFixed)
      ports.push_back(makePort(info, func.getArgAttr(index, SpmdDialect::kGlobalTypeAttr)));
  return ports;
}

static std::vector<Port> getInputs(const OnnxGraph &graph, func::FuncOp func) {
  return getArguments(graph, func, /*areFixed=*/false);
}

/// Inputs of the model that files do not take: they hold for the value that these had.
static std::vector<Port> getFixed(const OnnxGraph &graph, func::FuncOp func) {
  return getArguments(graph, func, /*areFixed=*/true);
}

/// An output may be what an input is at the next call: a cache that stays in the ranks.
static std::vector<Port> getOutputs(const OnnxGraph &graph, func::FuncOp func) {
  std::vector<Port> ports;
  for (auto [index, info] : llvm::enumerate(graph.outputs)) {
    Port port = makePort(info, func.getResultAttr(index, SpmdDialect::kGlobalTypeAttr));
    if (auto state = func.getResultAttrOfType<StringAttr>(index, SpmdDialect::kStateAttr))
      port.state = state.getValue();
    ports.push_back(port);
  }
  return ports;
}

/// `[4, 16] [data, _]`: the whole shape, and how it is split, in the words of plans.
static std::string describe(const Port &port) {
  std::string text = llvm::interleaved_array(port.global.getShape()).str();
  return port.sharding ? text + " " + spmd::formatSharding(port.sharding) : text;
}

std::vector<std::pair<std::string, std::string>> cleave::onnx::getProperties(const OnnxGraph &graph,
                                                                             func::FuncOp func) {
  std::vector<std::pair<std::string, std::string>> properties = {{kMeshProperty.str(), formatMesh(graph.mesh)}};
  for (const Port &port : getInputs(graph, func))
    properties.emplace_back("cleave.input." + port.name, describe(port));
  for (const Port &port : getOutputs(graph, func))
    properties.emplace_back("cleave.output." + port.name, describe(port));
  return properties;
}

static void writeNumbers(llvm::json::OStream &json, StringRef key, ArrayRef<int64_t> numbers) {
  json.attributeArray(key, [&] { llvm::for_each(numbers, [&](int64_t number) { json.value(number); }); });
}

static void writeAxes(llvm::json::OStream &json, ArrayRef<spmd::AxisAttr> axes) {
  json.array([&] { llvm::for_each(axes, [&](spmd::AxisAttr axis) { json.value(spmd::formatAxis(axis)); }); });
}

/// Element types by their number in onnx.proto; of each dim the axes that split it, major to minor.
static void write(llvm::json::OStream &json, const Port &port) {
  json.object([&] {
    json.attribute("name", port.name);
    json.attribute("type", *getDataType(port.local.getElementType()));
    writeNumbers(json, "shape", port.global.getShape());
    writeNumbers(json, "local_shape", port.local.getShape());
    json.attributeArray("dims", [&] {
      for (int64_t dim = 0; dim < port.global.getRank(); ++dim)
        writeAxes(json, port.sharding ? port.sharding.getDims()[dim].getAxes() : ArrayRef<spmd::AxisAttr>());
    });
    if (port.sharding && port.sharding.isPartial()) {
      json.attributeBegin("partial");
      writeAxes(json, port.sharding.getPartial());
      json.attributeEnd();
      json.attribute("partial_kind", spmd::stringifyReductionKind(port.sharding.getPartialKind()));
    }
    if (!port.state.empty())
      json.attribute("state_of", port.state);
    if (!port.ranks.empty())
      writeNumbers(json, "ranks", port.ranks);
  });
}

/// Ranks on different places of a pipeline may take the same input; each output is of one place.
static std::vector<Port> collectPorts(ArrayRef<ExportedProgram> programs,
                                      std::vector<Port> (*get)(const OnnxGraph &, func::FuncOp)) {
  std::vector<Port> all;
  for (const ExportedProgram &program : programs)
    for (Port &port : get(*program.graph, program.func)) {
      if (program.graph->pipelineAxis)
        port.ranks = program.graph->getRanks();
      auto known = llvm::find_if(all, [&](const Port &other) { return other.name == port.name; });
      if (known == all.end())
        all.push_back(std::move(port));
      else
        llvm::append_range(known->ranks, port.ranks);
    }
  return all;
}

/// What a runtime that does not take microbatches as they come wants to know: actions are those of `cleave schedule --table`.
static void writePipeline(llvm::json::OStream &json, ArrayRef<ExportedProgram> programs) {
  const OnnxGraph &graph = *programs.front().graph;
  if (!graph.pipelineAxis)
    return;
  auto module = func::FuncOp(programs.front().func)->getParentOfType<ModuleOp>();
  json.attributeObject("pipeline", [&] {
    json.attribute("axis", graph.mesh.getNames()[*graph.pipelineAxis]);
    json.attribute("microbatches", pipe::getMicrobatches(module).value_or(1));
    for (auto schedule : module.getOps<pipe::ScheduleOp>()) {
      writeNumbers(json, "stages", schedule.getPlacement());
      json.attributeArray("rows", [&] {
        for (auto row : schedule.getBody().getOps<pipe::RankOp>())
          json.value(row.getActions());
      });
    }
  });
}

/// In the order in which a rank comes to them, those of a body once.
static void writeMeetings(llvm::json::OStream &json, const OnnxGraph &graph) {
  graph.walk([&](const Node &node) {
    if (isCollective(node))
      json.object([&] {
        json.attribute("op", (node.domain + "." + node.opType));
        if (!node.outputs.empty())
          json.attribute("output", node.outputs.front());
        else
          json.attribute("operand", node.inputs.front());
        if (graph.pipelineAxis)
          json.attribute("pipeline_rank", graph.pipelineRank);
      });
  });
}

void cleave::onnx::writeManifest(ArrayRef<ExportedProgram> programs, ArrayRef<ExportedFile> files,
                                 llvm::raw_ostream &os) {
  spmd::MeshAttr mesh = programs.front().graph->mesh;
  llvm::json::OStream json(os, /*IndentSize=*/2);
  auto writePorts = [&](StringRef key, auto get) {
    json.attributeArray(key, [&] {
      for (const Port &port : collectPorts(programs, get))
        write(json, port);
    });
  };
  json.object([&] {
    json.attribute("version", 1);
    json.attributeArray("mesh", [&] {
      for (size_t axis = 0; axis < mesh.getNames().size(); ++axis)
        json.object([&] {
          json.attribute("axis", mesh.getNames()[axis]);
          json.attribute("size", mesh.getSizes()[axis]);
        });
    });
    json.attribute("ranks", mesh.getNumRanks());
    if (!mesh.getDevices().empty())
      writeNumbers(json, "devices", mesh.getDevices());
    writePipeline(json, programs);
    json.attribute("opset", kOpset);
    json.attributeArray("files", [&] {
      for (const ExportedFile &file : files)
        json.object([&] {
          json.attribute("model", file.model);
          if (!file.data.empty())
            json.attribute("data", file.data);
          json.attribute("weight_bytes", file.bytes);
          writeNumbers(json, "ranks", file.ranks);
        });
    });
    writePorts("inputs", getInputs);
    if (!collectPorts(programs, getFixed).empty())
      writePorts("fixed_inputs", getFixed);
    writePorts("outputs", getOutputs);
    json.attributeArray("collectives", [&] {
      for (const ExportedProgram &program : programs)
        writeMeetings(json, *program.graph);
    });
  });
  os << '\n';
}
