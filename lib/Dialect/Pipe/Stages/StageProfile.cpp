//===- StageProfile.cpp - measured times of a model's nodes ---------------===//
//
// An op may be made of several nodes, and a node may have become several ops:
//
//   nodes   a ── op 0          op 0 takes a's time and its share of b's, op 1 the rest of b's
//           b ─┬ op 0          (shares as the modeled times of both are, or even where these are 0)
//              └ op 1
//           c ── op 2          c is not named: op 2 keeps its modeled time
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Pipe/Stages/StageProfile.h"

#include "cleave/Dialect/Spmd/IR/Names.h"
#include "cleave/Schedule/Profile.h"
#include "cleave/Support/Status.h"
#include "cleave/Support/Suggest.h"
#include "llvm/ADT/MapVector.h"

#include <cmath>

using namespace cleave;
using namespace cleave::pipe;

/// Node -> its ops, in the order of the model; none of a node of which a constant is left.
using NodeOps = llvm::MapVector<llvm::StringRef, llvm::SmallVector<uint32_t, 1>>;

static NodeOps findNodes(mlir::func::FuncOp func, const StageGraph &graph) {
  NodeOps nodes;
  for (mlir::Operation &op : func.getBody().front())
    for (const spmd::NodeInfo &info : spmd::getNodeInfos(&op))
      if (!info.node.empty())
        nodes[info.node];
  for (auto [number, op] : llvm::enumerate(graph.ops))
    for (const spmd::NodeInfo &info : spmd::getNodeInfos(op))
      if (auto found = nodes.find(info.node);
          found != nodes.end() && (found->second.empty() || found->second.back() != number))
        found->second.push_back(static_cast<uint32_t>(number));
  return nodes;
}

/// Adds the node's time to its ops.
static void share(double ns, llvm::ArrayRef<uint32_t> ops, const StageGraph &graph,
                  llvm::MapVector<uint32_t, double> &measured) {
  double sum = 0;
  for (uint32_t op : ops)
    sum += static_cast<double>(graph.problem.ops[op].ns);
  for (uint32_t op : ops)
    measured[op] += ns * (sum > 0 ? static_cast<double>(graph.problem.ops[op].ns) / sum : 1.0 / ops.size());
}

llvm::FailureOr<std::string> cleave::pipe::applyProfile(mlir::func::FuncOp func, llvm::StringRef path,
                                                        llvm::StringRef text, StageGraph &graph) {
  auto getLoc = [&](schedule::ProfilePlace place) {
    return mlir::FileLineColLoc::get(func.getContext(), path, place.line, place.column);
  };
  std::vector<schedule::ProfileEntry> entries;
  if (auto problem = schedule::readProfile(text, entries))
    return mlir::emitError(getLoc(problem->place)) << problem->message;
  NodeOps nodes = findNodes(func, graph);
  llvm::SmallVector<llvm::StringRef> names(llvm::make_first_range(nodes));
  llvm::MapVector<uint32_t, double> measured;
  size_t numNamed = 0, numTimed = llvm::count_if(nodes, [](const auto &node) { return !node.second.empty(); });
  for (const schedule::ProfileEntry &known : entries) {
    auto found = nodes.find(known.node);
    if (found == nodes.end())
      return mlir::emitError(getLoc(known.place))
             << "no node is called " << quote(known.node) << suggestNames(known.node, names);
    share(known.ns, found->second, graph, measured);
    numNamed += !found->second.empty();
  }
  for (auto [op, ns] : measured)
    graph.problem.ops[op].ns = std::llround(ns);
  return llvm::formatv("times of {0} of {1} nodes are those of {2}, the others are modeled", numNamed, numTimed, path)
      .str();
}
