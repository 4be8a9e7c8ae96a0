//===- OutlineModules.cpp - the modules of a model as a tree --------------===//
//
//   model.embed_tokens, model.layers.0.mlp, model.layers.1.mlp, lm_head
//
//   (root) ── model ─┬─ embed_tokens
//             │      └─ layers ─┬─ 0 ── mlp       `0` and `1` are equal but for their names: one line, with that of `layers`, which is a list
//             └─ lm_head        └─ 1 ── mlp       and has nothing itself
//
//===----------------------------------------------------------------------===//
#include "cleave/Compiler/Outline.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace cleave;
using llvm::StringRef;

namespace {
struct Node {
  std::string name;
  ModuleOutline own;
  /// Of itself and all below.
  int64_t elements = 0, bytes = 0;
  double flops = 0;
  /// Equal for equal trees, whatever their roots are called.
  std::string shape;
  llvm::MapVector<StringRef, std::unique_ptr<Node>, llvm::StringMap<unsigned>> children;
};
} // namespace

/// Modules on the way that say nothing of themselves have a place as well.
static void insert(Node &root, const ModuleOutline &module) {
  Node *at = &root;
  llvm::SmallVector<StringRef> words;
  StringRef(module.path).split(words, '.', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (StringRef word : words) {
    std::unique_ptr<Node> &child = at->children[word];
    if (!child) {
      child = std::make_unique<Node>();
      child->name = word.str();
    }
    at = child.get();
  }
  at->own = module;
}

/// From below, since the shape of a tree has those of its parts.
static void sum(Node &node) {
  node.elements = node.own.elements;
  node.bytes = node.own.bytes;
  node.flops = node.own.flops;
  std::string below;
  for (auto &[name, child] : node.children) {
    sum(*child);
    node.elements += child->elements;
    node.bytes += child->bytes;
    node.flops += child->flops;
    below += child->name + child->shape;
  }
  node.shape =
      llvm::formatv("({0};{1};{2};{3})", node.own.bytes, node.own.flops, llvm::join(node.own.types, ","), below);
}

static bool isNumber(StringRef name) { return !name.empty() && llvm::all_of(name, llvm::isDigit); }

/// A list of modules, as torch's `ModuleList`: it has nothing itself, and what is in it is called by numbers.
static bool isList(const Node &node) {
  return node.own.types.empty() && node.own.flops == 0 && !node.children.empty() &&
         llvm::all_of(node.children, [](const auto &entry) { return isNumber(entry.first); });
}

/// `3`, `{0,1}`, `{0..11}`.
static std::string formatNumbers(llvm::ArrayRef<const Node *> nodes) {
  if (nodes.size() == 1)
    return nodes.front()->name;
  return "{" + nodes.front()->name + (nodes.size() == 2 ? "," : "..") + nodes.back()->name + "}";
}

/// Lines of what is in `node`. Of equal siblings the first stands for all; a list has no line of its own, but its name goes before
/// those of what is in it.
static void addLines(const Node &node, const std::string &prefix, unsigned depth, std::vector<ModuleGroup> &lines) {
  llvm::SmallVector<const Node *> children;
  for (const auto &[name, child] : node.children)
    children.push_back(child.get());
  for (llvm::ArrayRef<const Node *> left = children; !left.empty();) {
    const Node &first = *left.front();
    size_t count = 1;
    while (isNumber(first.name) && count < left.size() && isNumber(left[count]->name) &&
           left[count]->shape == first.shape)
      ++count;
    std::string name = prefix + formatNumbers(left.take_front(count));
    left = left.drop_front(count);
    if (isList(first)) {
      addLines(first, name + ".", depth, lines);
      continue;
    }
    lines.push_back({depth, std::move(name), count, first.elements, first.bytes, first.flops, first.own.types});
    addLines(first, "", depth + 1, lines);
  }
}

// Side by side, and equal in all that is below them: one line with their numbers.
std::vector<ModuleGroup> cleave::groupModules(llvm::ArrayRef<ModuleOutline> modules) {
  Node root;
  for (const ModuleOutline &module : modules)
    insert(root, module);
  sum(root);
  std::vector<ModuleGroup> lines;
  addLines(root, "", 0, lines);
  return lines;
}
