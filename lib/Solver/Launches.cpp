//===- Launches.cpp - what is sent makes two kernels of one ---------------===//
//
// Two walks. Forwards, for each node: which op made what it hands on last, and whether the kernel of that op began with a product.
// Backwards: whether what reads a node's result would have been in the kernel that made it. An op joins the last of the kernels that
// it reads from; what comes from an earlier one may be sent meanwhile. Edges that go back to a loop are read by another
// iteration, which is another kernel.
//
//===----------------------------------------------------------------------===//
#include "Launches.h"
#include "llvm/ADT/STLExtras.h"

using namespace cleave::spmd;
using namespace llvm;

namespace {
enum class Role : uint8_t {
  End,     ///< inputs and outputs: no kernel
  Through, ///< movement, and nodes of values
  Product, ///< has a kernel of its own, as its first op
  Rows,    ///< walks whole rows: a norm, a softmax, a reduction
  Map,     ///< element by element
};

/// What is on the way to a node.
struct Made {
  /// The last op that computes; `kNone` if there is none.
  NodeId by = kNone;
  /// Whether its kernel has a product.
  bool onTiles = false;
};

/// Whether a node, or what it hands on to, would be in the kernel of what it reads: of one with a product, of another.
struct Reads {
  bool onTiles = false, otherwise = false;
  bool hasRows = false;
};
} // namespace

static Role roleOf(const SearchGraph &graph, NodeId id) {
  NodeKind kind = graph.node(id).kind;
  if (kind == NodeKind::Input || kind == NodeKind::Output)
    return Role::End;
  const ShardingRule &rule = *graph.ruleOf(id).rule;
  if (kind != NodeKind::Op || rule.isMovement)
    return Role::Through;
  if (rule.flops > 0)
    return Role::Product;
  bool hasRows = !rule.inner.empty() || !rule.orderedFactors.empty();
  for (FactorId factor = 0; factor < static_cast<FactorId>(rule.factorSizes.size()); ++factor)
    hasRows |= rule.isReduction(factor);
  return hasRows ? Role::Rows : Role::Map;
}

static Made findMade(const SearchGraph &graph, ArrayRef<Made> made, NodeId id, Role role) {
  Made last;
  for (const SearchEdge &edge : graph.inEdges(id))
    if (const Made &one = made[edge.producer];
        edge.producer < id && one.by != kNone && (last.by == kNone || one.by > last.by))
      last = one;
  if (role == Role::Through)
    return last;
  return role == Role::End ? Made() : Made{id, role == Role::Product || (role == Role::Map && last.onTiles)};
}

static Reads findReads(const SearchGraph &graph, ArrayRef<Reads> reads, NodeId id, Role role) {
  Reads all;
  if (role == Role::Rows)
    return {/*onTiles=*/false, /*otherwise=*/true, /*hasRows=*/true};
  for (EdgeId edge : graph.outEdges(id))
    if (NodeId consumer = graph.edge(edge).consumer; consumer > id) {
      all.onTiles |= reads[consumer].onTiles;
      all.otherwise |= reads[consumer].otherwise;
      all.hasRows |= reads[consumer].hasRows;
    }
  if (role == Role::Through)
    return all;
  // Cut off from a product's tiles it is made with the rows behind it, if there are any.
  return role == Role::Map ? Reads{!all.hasRows, true, all.hasRows} : Reads();
}

Launches::Launches(const SearchGraph &graph) : splits(graph.numEdges(), false) {
  std::vector<Role> roles;
  std::vector<Made> made;
  for (NodeId node = 0; node < graph.numNodes(); ++node) {
    roles.push_back(roleOf(graph, node));
    made.push_back({});
    made.back() = findMade(graph, made, node, roles.back());
  }
  std::vector<Reads> reads(graph.numNodes());
  for (NodeId node = graph.numNodes(); node-- > 0;) {
    reads[node] = findReads(graph, reads, node, roles[node]);
    Made last = findMade(graph, made, node, Role::Through);
    for (auto [index, edge] : enumerate(graph.inEdges(node))) {
      const Made &from = made[edge.producer];
      bool isLast = edge.producer < node && from.by != kNone && from.by == last.by;
      splits[graph.node(node).firstIn + index] = isLast && (from.onTiles ? reads[node].onTiles : reads[node].otherwise);
    }
  }
}
