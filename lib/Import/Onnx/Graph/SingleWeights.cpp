//===- SingleWeights.cpp - weights of one number --------------------------===//
//
//   y = x W + b     W: [k, 1], b: [1]      b is a bias: it belongs to a column of a weight
//   y = x / s       s: [1]                 s is a constant, as sqrt(64) is one
//
//===----------------------------------------------------------------------===//
#include "cleave/Import/Onnx/SingleWeights.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"

using namespace cleave;
using namespace cleave::onnx;
using llvm::ArrayRef;
using llvm::StringRef;

/// The inputs of an op that are weights whatever their size, as bits. Of a batch norm the statistics are none.
static unsigned getWeightInputs(StringRef opType) {
  auto bits = [](std::initializer_list<unsigned> inputs) {
    unsigned set = 0;
    for (unsigned input : inputs)
      set |= 1u << input;
    return set;
  };
  return llvm::StringSwitch<unsigned>(opType)
      .Cases({"Conv", "ConvTranspose", "FusedConv", "Gemm", "FusedGemm"}, bits({1, 2}))
      .Cases({"MatMul", "FusedMatMul"}, bits({0, 1}))
      .Cases({"BatchNormalization", "InstanceNormalization", "LayerNormalization", "GroupNormalization"}, bits({1, 2}))
      .Cases({"PRelu", "RMSNormalization", "SimplifiedLayerNormalization"}, bits({1}))
      .Cases({"RNN", "GRU", "LSTM"}, bits({1, 2, 3, 7}))
      .Default(0);
}

namespace {
class SingleWeights {
public:
  llvm::StringSet<> find(const GraphProto &graph);

private:
  void visit(const GraphProto &graph);
  bool isColumn(StringRef product) const;

  /// Of a body within the graph, too: one that hides a name is taken to be what it hides.
  llvm::StringMap<ArrayRef<int64_t>> dims;
  llvm::StringSet<> singles, found;
  llvm::StringMap<const NodeProto *> makers;
};
} // namespace

/// Whether it is a product with a weight of one column, which may be transposed or cast before.
bool SingleWeights::isColumn(StringRef product) const {
  const NodeProto *node = makers.lookup(product);
  if (!node || !llvm::is_contained({"MatMul", "FusedMatMul", "Einsum"}, node->opType))
    return false;
  return llvm::any_of(node->input, [&](StringRef name) {
    // Weights of a cyclic graph have no end; real ones go through two nodes.
    for (unsigned step = 0; step < 4; ++step)
      if (const NodeProto *maker = makers.lookup(name);
          maker && !maker->input.empty() &&
          llvm::is_contained({"Transpose", "Cast", "DequantizeLinear", "Identity"}, maker->opType))
        name = maker->input.front();
    auto weight = dims.find(name);
    return weight != dims.end() && (weight->second.size() == 1 || llvm::is_contained(weight->second, 1));
  });
}

void SingleWeights::visit(const GraphProto &graph) {
  for (const TensorProto &tensor : graph.initializer) {
    dims[tensor.name] = tensor.dims;
    if (llvm::all_of(tensor.dims, [](int64_t dim) { return dim == 1; }))
      singles.insert(tensor.name);
  }
  for (const NodeProto &node : graph.node)
    for (StringRef output : node.output)
      makers[output] = &node;
  for (const NodeProto &node : graph.node) {
    unsigned weights = getWeightInputs(node.opType);
    for (auto [index, name] : llvm::enumerate(node.input)) {
      if (!singles.contains(name))
        continue;
      bool isBias = node.opType == "Add" && node.input.size() == 2 && !dims.lookup(name).empty() &&
                    isColumn(node.input[1 - index]);
      if (isBias || (index < 32 && weights >> index & 1))
        found.insert(name);
    }
    for (const AttributeProto &attribute : node.attribute)
      if (attribute.g)
        visit(*attribute.g);
  }
}

llvm::StringSet<> SingleWeights::find(const GraphProto &graph) {
  visit(graph);
  return std::move(found);
}

llvm::StringSet<> cleave::onnx::findSingleWeights(const GraphProto &graph) { return SingleWeights().find(graph); }
