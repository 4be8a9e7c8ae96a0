//===- ImportBody.cpp - graphs within nodes -------------------------------===//
//
// A branch or the body of a loop is imported like the graph around it, whose names it sees, into the same block. What is
// imported several times gets names of its own each time, `loop/3/node`, and counts against a budget: a small file may ask
// for any number of iterations, in any number of loops within loops.
//
//===----------------------------------------------------------------------===//
#include "GraphImporter.h"

#include "cleave/Support/Status.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

bool GraphImporter::spendNodes(NodeContext &node, int64_t count) {
  repeatedNodes += count;
  return node.check(repeatedNodes <= kMaxRepeatedNodes,
                    "loops and branches that are not known at import expand to more than " + Twine(kMaxRepeatedNodes) +
                        " nodes");
}

std::optional<SmallVector<Bound>> GraphImporter::importBody(NodeContext &node, const GraphProto &graph,
                                                            ArrayRef<Bound> inputs, const Twine &path,
                                                            bool isRepeated) {
  const CallFrame &caller = *node.getScope().frame;
  if (!node.check(caller.depth < kMaxCallDepth, "bodies are nested more than " + Twine(kMaxCallDepth) + " deep") ||
      !node.check(graph.input.size() == inputs.size(),
                  "the body has " + Twine(graph.input.size()) + " inputs, expected " + Twine(inputs.size())))
    return std::nullopt;
  CallFrame frame = caller;
  frame.caller = &caller;
  frame.call = &node.getNode();
  frame.depth = caller.depth + 1;
  frame.isRepeated |= isRepeated;
  if (std::string own = path.str(); !own.empty())
    frame.prefix = saver.save(caller.prefix + own + "/");

  Scope scope;
  scope.parent = &node.getScope();
  scope.frame = &frame;
  scope.nodes = graph.node;
  for (auto [input, bound] : llvm::zip_equal(graph.input, inputs))
    if (!node.check(scope.bindings.try_emplace(input.name, Binding{bound}).second,
                    "the body has input " + quote(input.name) + " twice"))
      return std::nullopt;
  // An error within the body has been reported; the node that has it is where it shows.
  if (failed(bindInitializers(graph, scope)) || failed(importNodes(scope))) {
    node.fail();
    return std::nullopt;
  }
  SmallVector<Bound> outputs;
  for (const ValueInfoProto &output : graph.output) {
    auto [binding, owner] = find(output.name, scope);
    if (!node.check(binding, "the body does not define its output " + quote(output.name)))
      return std::nullopt;
    FailureOr<Bound> bound = getBound(output.name, *binding, *owner);
    if (failed(bound) || !*bound) {
      node.fail();
      return std::nullopt;
    }
    if (!node.check(!rows.contains(bound->value),
                    "output " + quote(output.name) + " of the body has padded rows, which is not supported"))
      return std::nullopt;
    outputs.push_back(*bound);
  }
  return outputs;
}
