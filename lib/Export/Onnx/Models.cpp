//===- Models.cpp - a graph as the files of all ranks ---------------------===//
//
// Two ranks have equal models if they have equal places in all groups that an initializer asks about: with `data=2, model=2`, and
// weights that are split over `model` alone, ranks 0 and 2 share a file, and 1 and 3.
//
//   rank-0.onnx  rank-0.data  rank-1.onnx  rank-1.data  export.json
//
// Weights go from their file to the rank's in runs, through a buffer: what a model weighs does not matter.
//
//===----------------------------------------------------------------------===//
#include "Elements.h"
#include "GraphBuilder.h"
#include "Manifest.h"
#include "ShardWriter.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Onnx/WireWriter.h"
#include "cleave/Sharding/RankGroups.h"
#include "cleave/Support/Status.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <map>

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;
using spmd::AxisAttr;

//===----------------------------------------------------------------------===//
// Messages of onnx.proto
//===----------------------------------------------------------------------===//

static WireMessage encodeBody(const OnnxGraph &graph, StringRef name);

/// An attribute says which of its fields counts; numbers are f32, integers i64.
static WireMessage encode(const NodeAttribute &attribute) {
  enum Kind { Float = 1, Int = 2, String = 3, Graph = 5, Ints = 7, Strings = 8 };
  WireMessage message;
  message.text(1, attribute.name);
  Kind kind = Int;
  if (const auto *number = std::get_if<int64_t>(&attribute.value)) {
    message.integer(3, *number);
  } else if (const auto *real = std::get_if<double>(&attribute.value)) {
    message.real(2, static_cast<float>(*real));
    kind = Float;
  } else if (const auto *text = std::get_if<std::string>(&attribute.value)) {
    message.text(4, *text);
    kind = String;
  } else if (const auto *numbers = std::get_if<std::vector<int64_t>>(&attribute.value)) {
    for (int64_t number : *numbers)
      message.integer(8, number);
    kind = Ints;
  } else if (const auto *body = std::get_if<std::shared_ptr<const OnnxGraph>>(&attribute.value)) {
    message.message(6, encodeBody(**body, attribute.name));
    kind = Graph;
  } else {
    for (const std::string &text : std::get<std::vector<std::string>>(attribute.value))
      message.text(9, text);
    kind = Strings;
  }
  message.integer(20, kind);
  return message;
}

static WireMessage encode(const Node &node) {
  WireMessage message;
  for (const std::string &input : node.inputs)
    message.text(1, input);
  for (const std::string &output : node.outputs)
    message.text(2, output);
  message.text(3, node.name);
  message.text(4, node.opType);
  for (const NodeAttribute &attribute : node.attributes)
    message.message(5, encode(attribute));
  if (!node.domain.empty())
    message.text(7, node.domain);
  return message;
}

/// All shapes are static.
static WireMessage encode(const TensorInfo &info) {
  WireMessage shape, tensor, type, message;
  for (int64_t extent : info.type.getShape()) {
    WireMessage dim;
    dim.integer(1, extent);
    shape.message(1, std::move(dim));
  }
  tensor.integer(1, *getDataType(info.type.getElementType()));
  tensor.message(2, std::move(shape));
  type.message(1, std::move(tensor));
  message.text(1, info.name);
  message.message(2, std::move(type));
  return message;
}

/// What is between the initializers of a graph: nodes before them, what is said of values behind.
static void addNodes(const OnnxGraph &graph, StringRef name, WireMessage &message) {
  for (const Node &node : graph.nodes)
    message.message(1, encode(node));
  message.text(2, name);
}

static void addValues(const OnnxGraph &graph, WireMessage &message) {
  for (const TensorInfo &input : graph.inputs)
    if (!input.isFixed)
      message.message(11, encode(input));
  for (const TensorInfo &output : graph.outputs)
    message.message(12, encode(output));
  for (const TensorInfo &value : graph.values)
    message.message(13, encode(value));
}

static WireMessage encodeBody(const OnnxGraph &graph, StringRef name) {
  WireMessage message;
  addNodes(graph, name, message);
  addValues(graph, message);
  return message;
}

static WireMessage encodePair(StringRef key, StringRef value) {
  WireMessage pair;
  pair.text(1, key);
  pair.text(2, value);
  return pair;
}

/// A tensor without its elements.
static WireMessage encodeHead(const Initializer &initializer) {
  WireMessage message;
  for (int64_t extent : initializer.type.getShape())
    message.integer(1, extent);
  message.integer(2, *getDataType(initializer.type.getElementType()));
  message.text(8, initializer.name);
  return message;
}

//===----------------------------------------------------------------------===//
// Which ranks have equal models
//===----------------------------------------------------------------------===//

namespace {
/// Writes all models of one graph.
class ModelWriter {
public:
  ModelWriter(const ExportedProgram &program, StringRef folder, std::vector<ExportedFile> &files)
      : graph(*program.graph), func(program.func), folder(folder), shards(func->getParentOfType<ModuleOp>()),
        files(files) {}

  llvm::Error run();

private:
  std::vector<std::vector<int64_t>> groupRanks() const;
  llvm::Error write(ArrayRef<int64_t> ranks);
  WireMessage encodeGraph(int64_t rank, StringRef dataFile) const;

  const OnnxGraph &graph;
  func::FuncOp func;
  StringRef folder;
  ShardWriter shards;
  std::vector<ExportedFile> &files;
  /// Where each initializer that is a shard lies in the file that is being written.
  std::vector<std::pair<int64_t, int64_t>> places;
};
} // namespace

/// In order of their first ranks.
std::vector<std::vector<int64_t>> ModelWriter::groupRanks() const {
  std::vector<SmallVector<AxisAttr>> lists;
  auto add = [&](SmallVector<AxisAttr> axes) {
    if (!axes.empty() && !llvm::is_contained(lists, axes))
      lists.push_back(std::move(axes));
  };
  for (const Initializer &initializer : graph.initializers) {
    if (const auto *place = std::get_if<Initializer::OfPlace>(&initializer.value)) {
      add(place->axes);
    } else if (const auto *load = std::get_if<nn::LoadOp>(&initializer.value)) {
      if (auto sharding = dyn_cast_if_present<spmd::ShardingAttr>(nn::LoadOp(*load).getShardingAttr()))
        for (spmd::DimShardingAttr dim : sharding.getDims())
          add(llvm::to_vector(dim.getAxes()));
    }
  }
  std::vector<spmd::RankGroups> groups;
  for (const SmallVector<AxisAttr> &axes : lists)
    groups.push_back(graph.mesh.getRankGroups(axes));
  std::map<std::vector<int64_t>, size_t> known;
  std::vector<std::vector<int64_t>> sets;
  for (int64_t rank : graph.getRanks()) {
    std::vector<int64_t> key;
    for (const spmd::RankGroups &group : groups)
      key.push_back(group.indexOf(rank));
    auto [entry, isNew] = known.try_emplace(std::move(key), sets.size());
    if (isNew)
      sets.emplace_back();
    sets[entry->second].push_back(rank);
  }
  return sets;
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

/// Names all the others.
static constexpr StringRef kManifest = "export.json";

static std::string getPathIn(StringRef folder, StringRef name) {
  SmallString<128> path(folder);
  llvm::sys::path::append(path, name);
  return path.str().str();
}

/// Numbers that a rank knows by its place.
static std::string encodeNumbers(ArrayRef<int64_t> numbers, Type element) {
  std::string bytes;
  for (int64_t number : numbers)
    if (element.isInteger(1))
      bytes += static_cast<char>(number);
    else
      bytes.append(reinterpret_cast<const char *>(&number), sizeof(number));
  return bytes;
}

/// Small constants stand in the model, so that shape inference can read them: what Reshape and Slice are told. Weights lie beside it.
WireMessage ModelWriter::encodeGraph(int64_t rank, StringRef dataFile) const {
  WireMessage message;
  addNodes(graph, func::FuncOp(func).getName(), message);
  size_t shard = 0;
  for (const Initializer &initializer : graph.initializers) {
    WireMessage tensor = encodeHead(initializer);
    if (const auto *bytes = std::get_if<std::string>(&initializer.value)) {
      tensor.text(9, *bytes);
    } else if (const auto *place = std::get_if<Initializer::OfPlace>(&initializer.value)) {
      tensor.text(9, encodeNumbers(place->get(rank), initializer.type.getElementType()));
    } else {
      auto [offset, length] = places[shard++];
      tensor.message(13, encodePair("location", dataFile));
      tensor.message(13, encodePair("offset", std::to_string(offset)));
      tensor.message(13, encodePair("length", std::to_string(length)));
      tensor.integer(14, 1);
    }
    message.message(5, std::move(tensor));
  }
  addValues(graph, message);
  return message;
}

/// Weights first, as where they lie stands in the model.
llvm::Error ModelWriter::write(ArrayRef<int64_t> ranks) {
  std::string name = "rank-" + std::to_string(ranks.front()), data = name + ".data";
  bool hasShards = llvm::any_of(graph.initializers,
                                [](const Initializer &one) { return std::holds_alternative<nn::LoadOp>(one.value); });
  places.clear();
  int64_t end = 0, bytes = 0;
  auto writeShards = [&](llvm::raw_ostream &os) -> llvm::Error {
    for (const Initializer &initializer : graph.initializers)
      if (const auto *load = std::get_if<nn::LoadOp>(&initializer.value)) {
        // Runtimes map what begins at a page; small ones would be mostly padding there.
        constexpr int64_t page = 4096, line = 64;
        int64_t length =
            initializer.type.getNumElements() * reference::getElementBytes(initializer.type.getElementType());
        int64_t offset = llvm::alignTo(end, length < page ? line : page);
        os.write_zeros(offset - end);
        if (llvm::Error error = shards.write(*load, graph.getInnerRank(ranks.front()), os))
          return error;
        places.emplace_back(offset, length);
        end = offset + length;
        bytes += length;
      }
    return llvm::Error::success();
  };
  if (hasShards)
    if (llvm::Error error = writeFileAtomically(getPathIn(folder, data), writeShards))
      return error;
  std::string list;
  llvm::raw_string_ostream listing(list);
  llvm::interleave(ranks, listing, ",");
  WireMessage model;
  model.integer(1, kFileVersion);
  model.text(2, "cleave");
  model.message(7, encodeGraph(ranks.front(), data));
  for (const auto &[domain, version] : getDomains(graph)) {
    WireMessage opset;
    opset.text(1, domain);
    opset.integer(2, version);
    model.message(8, std::move(opset));
  }
  for (const auto &[key, value] : getProperties(graph, func))
    model.message(14, encodePair(key, value));
  model.message(14, encodePair("cleave.ranks", list));
  files.push_back({name + ".onnx", hasShards ? data : "", ranks.vec(), bytes});
  return writeFileAtomically(getPathIn(folder, files.back().model), [&](llvm::raw_ostream &os) {
    model.write(os);
    return llvm::Error::success();
  });
}

llvm::Error ModelWriter::run() {
  for (const std::vector<int64_t> &ranks : groupRanks())
    if (llvm::Error error = write(ranks))
      return error;
  return llvm::Error::success();
}

bool cleave::onnx::isExportedName(std::string_view name) {
  StringRef number = name;
  unsigned rank;
  return number == kManifest || (number.consume_front("rank-") && !number.consumeInteger(10, rank) &&
                                 (number == ".onnx" || number == ".data"));
}

/// The manifest comes last: where it is, all that it names is there.
llvm::Expected<ExportSummary> cleave::onnx::writeModels(ArrayRef<ExportedProgram> programs, StringRef folder) {
  if (std::error_code code = llvm::sys::fs::create_directories(folder))
    return makeError("cannot create {0}: {1}", quote(folder), code.message());
  std::string manifest = getPathIn(folder, kManifest);
  llvm::sys::fs::remove(manifest);
  std::vector<ExportedFile> files;
  ExportSummary summary;
  for (const ExportedProgram &program : programs) {
    if (llvm::Error error = ModelWriter(program, folder, files).run())
      return std::move(error);
    program.graph->walk([&](const Node &node) {
      ++summary.nodes;
      summary.collectives += isCollective(node);
    });
  }
  auto writeAll = [&](llvm::raw_ostream &os) {
    writeManifest(programs, files, os);
    return llvm::Error::success();
  };
  if (llvm::Error error = writeFileAtomically(manifest, writeAll))
    return std::move(error);
  summary.ranks = programs.front().graph->mesh.getNumRanks();
  summary.files = int64_t(files.size());
  for (const ExportedFile &file : files)
    summary.bytes += file.bytes;
  return summary;
}
