//===- OrderNodes.cpp - the nodes of a scope, each behind what it reads ---===//
//
// Files may have their nodes in any order (NodeOrder.h). Nodes that read their own results have none: an error at one of them, with
// a note for each of the others.
//
//===----------------------------------------------------------------------===//
#include "GraphImporter.h"
#include "cleave/Onnx/NodeOrder.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

/// What the graphs around a body define is there before all nodes of the body.
FailureOr<std::vector<unsigned>> GraphImporter::orderNodes(const Scope &scope) {
  NodeOrder nodes(scope.nodes, [&](StringRef name) { return find(name, scope).first != nullptr; });
  std::vector<unsigned> order = nodes.sort();
  if (order.size() == scope.nodes.size())
    return order;
  SmallVector<unsigned> cycle = nodes.findCycle(order);
  InFlightDiagnostic diagnostic =
      error(scope.nodes[cycle.front()], *scope.frame, "its operands depend on its own result");
  constexpr size_t most = 8;
  for (unsigned number : llvm::drop_begin(ArrayRef(cycle).take_front(most)))
    diagnostic.attachNote() << printable("by way of " + describe(scope.nodes[number], *scope.frame));
  if (cycle.size() > most)
    diagnostic.attachNote() << "and of " << cycle.size() - most << " more";
  return failure();
}
