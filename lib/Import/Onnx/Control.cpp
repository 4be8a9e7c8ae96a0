//===- Control.cpp - If, where the branch is known ------------------------===//
//
// A program here is one block of straight-line code. The condition is computed from constants, the taken branch is
// inlined, and the other one is never looked at: it may well not fit the shapes at hand.
//
//===----------------------------------------------------------------------===//
#include "GraphImporter.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

static void importIf(NodeContext &node) {
  const GraphProto *thenBranch = node.graphAttr("then_branch"), *elseBranch = node.graphAttr("else_branch");
  if (node.failed())
    return;
  std::optional<reference::Tensor> condition = node.tryConstant(0);
  if (!node.check(condition.has_value(), "the condition must be known at import" + node.explainUnknown()))
    return;
  bool holds = node.constantInt(0) != 0;
  if (node.failed())
    return;
  auto results = node.getImporter().inlineBranch(node, holds ? *thenBranch : *elseBranch);
  if (!results)
    return;
  for (auto [i, value] : llvm::enumerate(*results))
    node.result(i, value);
}

void cleave::onnx::registerControl(Registry &registry) { registry.add("If", {1, 1, Arity::kAny}, importIf); }
