//===- NodeOrder.cpp - nodes in the order of what they read ---------------===//
//
// Generative builders write nodes as they come upon them, and other runtimes sort them. A graph that is sorted already is taken as
// it is; of another, a node comes as early in the file's order as what it reads allows (Kahn's algorithm over a heap of numbers). What
// a body reads of the graphs around it, the node that has the body reads.
//
//===----------------------------------------------------------------------===//
#include "cleave/Onnx/NodeOrder.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

#include <queue>

using namespace llvm;
using namespace cleave;
using namespace cleave::onnx;

void cleave::onnx::addDefinitions(const GraphProto &graph, SmallVectorImpl<StringRef> &names) {
  for (const ValueInfoProto &input : graph.input)
    names.push_back(input.name);
  for (const TensorProto &tensor : graph.initializer)
    names.push_back(tensor.name);
  for (const SparseTensorProto &tensor : graph.sparseInitializer)
    names.push_back(tensor.values.name);
  for (const NodeProto &node : graph.node)
    llvm::copy_if(node.output, std::back_inserter(names), [](StringRef name) { return !name.empty(); });
}

void cleave::onnx::addReads(const NodeProto &node, SmallVectorImpl<StringRef> &reads) {
  llvm::copy_if(node.input, std::back_inserter(reads), [](StringRef name) { return !name.empty(); });
  bool isGradient = node.opType == "Gradient" && node.domain == "ai.onnx.preview.training";
  for (const AttributeProto &attr : node.attribute) {
    if (isGradient && attr.type == AttributeProto::String)
      reads.push_back(attr.s);
    if (isGradient)
      llvm::append_range(reads, attr.strings);
    SmallVector<const GraphProto *, 1> bodies;
    if (attr.g)
      bodies.push_back(attr.g.get());
    for (const auto &graph : attr.graphs)
      bodies.push_back(graph.get());
    for (const GraphProto *body : bodies) {
      SmallVector<StringRef> inner, names;
      addDefinitions(*body, names);
      llvm::DenseSet<StringRef> own(names.begin(), names.end());
      for (const NodeProto &at : body->node)
        addReads(at, inner);
      for (const ValueInfoProto &output : body->output)
        inner.push_back(output.name);
      llvm::copy_if(inner, std::back_inserter(reads), [&](StringRef name) { return !own.contains(name); });
    }
  }
}

NodeOrder::NodeOrder(ArrayRef<NodeProto> nodes, llvm::function_ref<bool(StringRef)> isBound) : sources(nodes.size()) {
  llvm::DenseMap<StringRef, unsigned> definitions;
  definitions.reserve(nodes.size());
  for (auto [number, node] : llvm::enumerate(nodes))
    for (StringRef name : node.output)
      if (!name.empty())
        definitions.try_emplace(name, number);
  SmallVector<StringRef> reads;
  for (auto [number, node] : llvm::enumerate(nodes)) {
    reads.clear();
    addReads(node, reads);
    for (StringRef name : reads)
      // What is there before all nodes is not made anew.
      if (auto it = definitions.find(name); it != definitions.end() && !isBound(name)) {
        sources[number].push_back(it->second);
        isSorted &= it->second < number;
      }
  }
}

/// Ready nodes are in a heap by their numbers, so that of all legal orders this one is next to the file's. Linear in edges, but for
/// the heap.
std::vector<unsigned> NodeOrder::sort() const {
  std::vector<unsigned> order, missing(sources.size());
  if (isSorted) {
    llvm::append_range(order, llvm::seq<unsigned>(0, sources.size()));
    return order;
  }
  std::vector<SmallVector<unsigned, 1>> users(sources.size());
  std::priority_queue<unsigned, std::vector<unsigned>, std::greater<>> ready;
  for (unsigned number = 0; number < sources.size(); ++number) {
    missing[number] = sources[number].size();
    for (unsigned source : sources[number])
      users[source].push_back(number);
    if (missing[number] == 0)
      ready.push(number);
  }
  while (!ready.empty()) {
    unsigned number = ready.top();
    ready.pop();
    order.push_back(number);
    for (unsigned user : users[number])
      if (--missing[user] == 0)
        ready.push(user);
  }
  return order;
}

/// Whatever was left out reads something that was left out: going from one to the next must come back to one that was met.
SmallVector<unsigned> NodeOrder::findCycle(ArrayRef<unsigned> sorted) const {
  assert(sorted.size() < sources.size() && "all nodes have an order");
  std::vector<bool> isDone(sources.size());
  for (unsigned number : sorted)
    isDone[number] = true;
  SmallVector<unsigned> path;
  llvm::DenseMap<unsigned, unsigned> places;
  unsigned at = llvm::find(isDone, false) - isDone.begin();
  while (places.try_emplace(at, path.size()).second) {
    path.push_back(at);
    at = *llvm::find_if(sources[at], [&](unsigned source) { return !isDone[source]; });
  }
  return SmallVector<unsigned>(llvm::drop_begin(path, places[at]));
}
