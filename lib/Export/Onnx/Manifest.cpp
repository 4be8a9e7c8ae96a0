//===- Manifest.cpp - what exported files say of themselves ---------------===//
//
// Whoever runs the files has to know which is whose, how to cut inputs and how to put outputs together. The words are those of
// docs/interface.md: they are added to, and never changed.
//
//===----------------------------------------------------------------------===//
#include "Manifest.h"

#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Dialect/Spmd/IR/Names.h"
#include "cleave/Import/Onnx/DevicePlan.h"
#include "llvm/Support/JSON.h"

#include <set>

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;
using spmd::SpmdDialect;

std::string cleave::onnx::formatMesh(spmd::MeshAttr mesh) {
  std::string text;
  for (auto [name, size] : llvm::zip_equal(mesh.getNames(), mesh.getSizes()))
    text += (text.empty() ? "" : ",") + name.str() + "=" + std::to_string(size);
  return text;
}

bool cleave::onnx::isCollective(const Node &node) { return !node.domain.empty(); }

std::vector<std::pair<std::string, int64_t>> cleave::onnx::getDomains(const OnnxGraph &graph) {
  std::set<std::string> domains = {""};
  for (const Node &node : graph.nodes)
    domains.insert(node.domain);
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
};
} // namespace

/// A function that was partitioned says of each argument and result what it is a shard of.
static Port makePort(const TensorInfo &info, Attribute attribute) {
  auto type = dyn_cast_if_present<TypeAttr>(attribute);
  auto global = type ? cast<RankedTensorType>(type.getValue()) : info.type;
  return {info.name, global, info.type, spmd::getSharding(global), ""};
}

static std::vector<Port> getInputs(const OnnxGraph &graph, func::FuncOp func) {
  std::vector<Port> ports;
  for (auto [index, info] : llvm::enumerate(graph.inputs))
    ports.push_back(makePort(info, func.getArgAttr(index, SpmdDialect::kGlobalTypeAttr)));
  return ports;
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

static std::string formatShape(ArrayRef<int64_t> shape) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << '[';
  llvm::interleaveComma(shape, os);
  os << ']';
  return text;
}

/// `[4, 16] [data, _]`: the whole shape, and how it is cut, in the words of plans.
static std::string describe(const Port &port) {
  std::string text = formatShape(port.global.getShape());
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

/// Element types by their number in onnx.proto; of each dim the axes that cut it, major to minor.
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
  });
}

void cleave::onnx::writeManifest(const OnnxGraph &graph, func::FuncOp func, ArrayRef<ExportedFile> files,
                                 llvm::raw_ostream &os) {
  llvm::json::OStream json(os, /*IndentSize=*/2);
  json.object([&] {
    json.attribute("version", 1);
    json.attributeArray("mesh", [&] {
      for (size_t axis = 0; axis < graph.mesh.getNames().size(); ++axis)
        json.object([&] {
          json.attribute("axis", graph.mesh.getNames()[axis]);
          json.attribute("size", graph.mesh.getSizes()[axis]);
        });
    });
    json.attribute("ranks", graph.mesh.getNumRanks());
    if (!graph.mesh.getDevices().empty())
      writeNumbers(json, "devices", graph.mesh.getDevices());
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
    json.attributeArray("inputs",
                        [&] { llvm::for_each(getInputs(graph, func), [&](const Port &port) { write(json, port); }); });
    json.attributeArray("outputs",
                        [&] { llvm::for_each(getOutputs(graph, func), [&](const Port &port) { write(json, port); }); });
    json.attributeArray("collectives", [&] {
      for (const Node &node : graph.nodes)
        if (isCollective(node))
          json.object([&] {
            json.attribute("op", (node.domain + "." + node.opType));
            json.attribute("output", node.outputs.front());
          });
    });
  });
  os << '\n';
}
