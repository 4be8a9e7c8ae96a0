//===- ModulePaths.cpp - modules of the exporter's model ------------------===//
//
// Text of the model may hold anything: what is no list of scopes says nothing.
//
//   initializer w ──▶ node of model.fc                          w is read by model.fc
//   initializer v ──▶ Cast, of no module ──▶ node of model.fc   and so is v: an optimizer that adds nodes does not say whose they are
//
//===----------------------------------------------------------------------===//
#include "cleave/Import/Onnx/ModulePaths.h"

#include "cleave/Dialect/Spmd/IR/Names.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace cleave;
using namespace cleave::onnx;
using llvm::SmallVector;
using llvm::StringRef;

/// What torch has for nodes that belong to no module.
static constexpr StringRef kNoModule = "_empty_nn_module_stack_from_metadata_hook";

/// The strings of a list as Python prints it: `['', 'm']`.
static SmallVector<std::string> readPythonList(StringRef text) {
  SmallVector<std::string> strings;
  while (true) {
    size_t start = text.find_first_of("'\"");
    if (start == StringRef::npos)
      return strings;
    char quote = text[start];
    text = text.substr(start + 1);
    std::string &string = strings.emplace_back();
    while (!text.empty() && text.front() != quote) {
      text.consume_front("\\");
      string += text.take_front().str();
      text = text.substr(1); // Of a file that ends here nothing is left.
    }
    text = text.substr(1);
  }
}

/// `layers.0.fc` of `layers.0.fc@1`: torch.export numbers the calls of a module that is called several times. The second one is of the same
/// module.
static std::string dropCallNumbers(StringRef path) {
  SmallVector<StringRef> words;
  path.split(words, '.');
  for (StringRef &word : words)
    if (auto [name, number] = word.rsplit('@'); llvm::all_of(number, llvm::isDigit) && !number.empty())
      word = name;
  return llvm::join(words, ".");
}

// Nodes of other exporters have none.
std::string cleave::onnx::readModulePath(const NodeProto &node) {
  SmallVector<std::string> scopes = readPythonList(node.nameScopes);
  if (scopes.empty()) {
    SmallVector<StringRef> entries;
    node.namespaceText.split(entries, '/');
    for (StringRef entry : entries)
      scopes.push_back(entry.split(": ").first.str());
  }
  if (scopes.size() < 2 || scopes.end()[-2] == kNoModule)
    return "";
  return dropCallNumbers(scopes.end()[-2]);
}

namespace {
/// The nodes of a graph by what they read.
class Readers {
public:
  explicit Readers(const GraphProto &graph);

  void collect(StringRef tensor, llvm::SmallVectorImpl<std::string> &modules, unsigned depth = 0) const;

private:
  void add(const GraphProto &graph);

  llvm::StringMap<SmallVector<const NodeProto *, 1>> byTensor;
  llvm::StringSet<> initializers;
};
} // namespace

Readers::Readers(const GraphProto &graph) { add(graph); }

/// Bodies read tensors around them by the same names; one that hides such a name is taken to read it.
void Readers::add(const GraphProto &graph) {
  for (const TensorProto &tensor : graph.initializer)
    initializers.insert(tensor.name);
  for (const NodeProto &node : graph.node) {
    for (StringRef input : node.input)
      if (!input.empty())
        byTensor[input].push_back(&node);
    for (const AttributeProto &attribute : node.attribute)
      if (attribute.g)
        add(*attribute.g);
  }
}

/// A cycle, which import refuses later, ends here too.
void Readers::collect(StringRef tensor, llvm::SmallVectorImpl<std::string> &modules, unsigned depth) const {
  constexpr unsigned kMostSteps = 8;
  auto found = byTensor.find(tensor);
  if (found == byTensor.end() || depth == kMostSteps)
    return;
  for (const NodeProto *node : found->second) {
    std::string path = readModulePath(*node);
    if (path.empty())
      path = spmd::getFolders(node->name);
    bool unpacks = path.empty() && llvm::all_of(node->input, [&](StringRef input) {
                     return input.empty() || input == tensor || initializers.contains(input);
                   });
    if (!path.empty() && !llvm::is_contained(modules, path))
      modules.push_back(std::move(path));
    else if (unpacks)
      for (StringRef output : node->output)
        collect(output, modules, depth + 1);
  }
}

// Through nodes of no module, such as a transposition that an optimizer has put in between.
llvm::StringMap<SmallVector<std::string, 1>> cleave::onnx::findReadingModules(const GraphProto &graph) {
  llvm::StringMap<SmallVector<std::string, 1>> modules;
  Readers readers(graph);
  for (const TensorProto &tensor : graph.initializer)
    readers.collect(tensor.name, modules[tensor.name]);
  for (const NodeProto &node : graph.node)
    if (node.opType == "Constant")
      for (StringRef output : node.output)
        readers.collect(output, modules[output]);
  return modules;
}
