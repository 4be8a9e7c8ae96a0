//===- PageLayers.cpp - a graph whose equal layers are one ----------------===//
//
// A layer ends where the next op is of another block, another direction of a step, or another stage:
//
//   ops      embed  norm  q  k  v  ..   norm  q  k  v  ..   head       blocks  0 | 1 1 1 1 .. | 2 2 2 2 .. | 0
//   layers   [embed][      1         ][      2          ][ head ]      2 is like 1: its ops, types and sendings are, and what they read
//
// What has no block goes with the op before it. Where nothing repeats, or a layer is longer than a picture, it is split by number of ops.
//
//===----------------------------------------------------------------------===//
#include "PageLayers.h"

#include "cleave/Support/NumberedName.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"

using namespace cleave;
using llvm::StringRef;

/// More in one layer, and nobody finds anything in its picture.
static constexpr unsigned kMostDrawn = 120;

namespace {
enum class Direction { Forward, Backward, Update };
struct LayerKey {
  unsigned part = 0, block = 0;
  Direction direction = Direction::Forward;
  /// The weight of an update.
  StringRef weight;

  bool operator==(const LayerKey &other) const {
    return std::tie(part, block, direction, weight) == std::tie(other.part, other.block, other.direction, other.weight);
  }
};
} // namespace

/// By the names that the passes of a step give their nodes (docs/training.md). Rates, losses and what has no node go with what is before them.
static LayerKey findKey(const GraphOp &op, const LayerKey &last, const std::map<std::string, unsigned> &blocks) {
  LayerKey key = last;
  if (op.part != last.part)
    key = LayerKey();
  key.part = op.part;
  StringRef node = op.node;
  bool isUpdate = node.consume_front("update("), isGradient = node.consume_front("grad(");
  if (isUpdate || isGradient)
    node = node.drop_back();
  auto known = blocks.find(node.str());
  if (isUpdate) {
    key.direction = Direction::Update;
    key.weight = node;
    key.block = 0;
  } else if (isGradient || known != blocks.end() || !op.module.empty()) {
    key.direction = isGradient ? Direction::Backward : Direction::Forward;
    key.weight = "";
    if (known != blocks.end())
      key.block = known->second;
    else if (key.direction != last.direction)
      key.block = 0;
  }
  return key;
}

/// All that equal layers have in common: numbers in names are not, nor what comes from other layers.
static std::string sign(const ProgramGraph &graph, const PageLayer &layer) {
  std::string text;
  for (unsigned number = layer.first; number < layer.last; ++number) {
    const GraphOp &op = graph.ops[number];
    text += op.op + ' ' + NumberedName(op.node).getStarred() + ' ' + op.type;
    for (unsigned read : op.reads)
      text += read < layer.first ? " <" : " " + std::to_string(read - layer.first);
    for (const CollectiveReport &sent : op.sent)
      text += llvm::formatv(" {0} {1:$[,]} {2}", sent.kind, llvm::make_range(sent.axes.begin(), sent.axes.end()),
                            sent.wireBytes)
                  .str();
    text += '\n';
  }
  return text;
}

/// The modules that all ops of it are in, as far as they agree; without any the first node, or the part.
static std::string findTitle(const ProgramGraph &graph, const PageLayer &layer) {
  std::optional<std::string> common;
  std::string node;
  for (unsigned number = layer.first; number < layer.last; ++number) {
    const GraphOp &op = graph.ops[number];
    if (node.empty())
      node = op.node;
    if (op.module.empty())
      continue;
    if (!common)
      common = op.module;
    while (!common->empty() && op.module != *common && !StringRef(op.module).starts_with(*common + "."))
      *common = StringRef(*common).contains('.') ? StringRef(*common).rsplit('.').first.str() : "";
  }
  if (common && !common->empty())
    return *common;
  return node.empty() ? graph.parts[layer.part] : node;
}

static std::vector<PageLayer> splitLayers(const ProgramGraph &graph, const std::map<std::string, unsigned> &blocks) {
  std::vector<PageLayer> layers;
  LayerKey last;
  for (auto [number, op] : llvm::enumerate(graph.ops)) {
    LayerKey key = findKey(op, last, blocks);
    if (layers.empty() || !(key == last) || number - layers.back().first >= kMostDrawn)
      layers.push_back({static_cast<unsigned>(number), 0, op.part, 0, "", {}});
    layers.back().last = static_cast<unsigned>(number) + 1;
    last = key;
  }
  return layers;
}

std::vector<PageLayer> cleave::foldLayers(const ProgramGraph &graph, const std::map<std::string, unsigned> &blocks) {
  std::vector<PageLayer> layers = splitLayers(graph, blocks);
  llvm::StringMap<unsigned> known;
  std::vector<unsigned> layerOf(graph.ops.size());
  for (auto [number, layer] : llvm::enumerate(layers)) {
    layer.like = known.try_emplace(sign(graph, layer), number).first->second;
    layer.title = findTitle(graph, layer);
    llvm::SetVector<unsigned> reads;
    for (unsigned op = layer.first; op < layer.last; ++op) {
      layerOf[op] = static_cast<unsigned>(number);
      for (unsigned read : graph.ops[op].reads)
        if (layerOf[read] != number)
          reads.insert(layerOf[read]);
    }
    layer.reads.assign(reads.begin(), reads.end());
  }
  return layers;
}
