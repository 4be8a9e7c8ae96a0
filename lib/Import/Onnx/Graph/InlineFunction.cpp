//===- InlineFunction.cpp - function calls become their bodies ------------===//
//
// A body is imported like a graph, in a scope of its own: names do not leak either way, and nodes and tensors are
// called `call/inner`, so that a plan can address each call's. Recursion is refused by walking up the callers, of which
// there are at most kMaxCallDepth; what functions of functions expand to is bounded in all.
//
//===----------------------------------------------------------------------===//
#include "GraphImporter.h"

#include "cleave/Support/Status.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

static std::string makeKey(StringRef domain, StringRef name, StringRef overload) {
  // Names come from the file and may hold anything, so the parts are told apart by their lengths.
  return llvm::formatv("{0} {1} {2}{3}{4}", domain.size(), name.size(), domain, name, overload);
}

const FunctionProto *GraphImporter::findOwnFunction(const NodeProto &node) {
  if (file.model.functions.empty())
    return nullptr;
  if (functions.empty())
    for (const FunctionProto &function : file.model.functions)
      functions.try_emplace(makeKey(function.domain, function.name, function.overload), &function);
  return functions.lookup(makeKey(node.domain, node.opType, node.overload));
}

void GraphImporter::inlineFunction(NodeContext &node, const FunctionProto &function) {
  const CallFrame &caller = *node.getScope().frame;
  for (const CallFrame *at = &caller; at; at = at->caller)
    if (!node.check(at->function != &function, "function " + quote(function.name) + " calls itself"))
      return;
  if (!node.check(caller.depth < kMaxCallDepth, "calls are nested more than " + Twine(kMaxCallDepth) + " deep") ||
      !node.check(node.getNumOperands() <= function.input.size(), "has more operands than its function has inputs") ||
      !node.check(node.getNumResults() <= function.output.size(), "has more outputs than its function has"))
    return;

  CallFrame frame;
  frame.function = &function;
  frame.caller = &caller;
  frame.call = &node.getNode();
  frame.depth = caller.depth + 1;
  frame.isRepeated = caller.isRepeated;
  frame.prefix = node.getNode().name.empty() ? caller.prefix : saver.save(caller.prefix + node.getNode().name + "/");
  for (const OperatorSetIdProto &opset : function.opsetImport)
    frame.opsets[opset.domain == "ai.onnx" ? StringRef() : opset.domain] = opset.version;
  for (const AttributeProto &attr : function.attributeProto)
    frame.attributes[attr.name] = &attr;
  for (StringRef name : function.attribute)
    if (const AttributeProto *attr = node.findAttr(name))
      frame.attributes[name] = attr;
  for (const AttributeProto &attr : function.attributeProto)
    if (const AttributeProto *given = node.findAttr(attr.name))
      frame.attributes[attr.name] = given;
  for (const AttributeProto &attr : node.getNode().attribute)
    if (!node.check(llvm::is_contained(function.attribute, attr.name) || frame.attributes.contains(attr.name),
                    "attribute " + quote(attr.name) + " is not known to its function"))
      return;

  Scope scope;
  scope.frame = &frame;
  scope.nodes = function.node;
  // What the call leaves out is left out of the nodes that take it.
  for (auto [i, name] : llvm::enumerate(function.input))
    if (!node.check(scope.bindings.try_emplace(name, Binding{node.bound(i)}).second, "its function repeats an input"))
      return;
  // An error within the body has been reported; the call is where it shows.
  if (failed(importNodes(scope)))
    return node.fail();
  for (auto [i, name] : llvm::enumerate(function.output)) {
    auto it = scope.bindings.find(name);
    if (node.wantsResult(i) && !node.check(it != scope.bindings.end() && it->second.bound,
                                           "its function does not define output " + quote(name)))
      return;
    if (it != scope.bindings.end())
      node.result(i, it->second.bound);
  }
}
