//===- SearchGraph.h - the graph that is searched ---------------*- C++ -*-===//
//
// A problem as nodes that choose and edges that cost: one node per op, and one per
//
//   input      how it is stored
//   hub        a value with several users: the state they share, if need be behind the state that is annotated
//   pinned     a value inside that an annotation names, or a constraint: its state
//   output     the state in which a value is returned
//
//   input --> op --> hub --> op --> output
//                     '----> op
//
// The last four have one value, and the rule of the identity on it. Nodes are numbered so that edges go from lower to
// higher ones. Inputs and outputs that nothing uses, or that are known without search, have no node.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_SOLVER_SEARCHGRAPH_H
#define CLEAVE_LIB_SOLVER_SEARCHGRAPH_H

#include "cleave/Solver/Problem.h"
#include <map>

namespace cleave::spmd {

using NodeId = uint32_t;
using EdgeId = uint32_t;

/// One occurrence of a factor: in a dim of an operand or a result, `position` factors are more major there.
struct FactorPlace {
  bool isResult;
  uint16_t dim, position;
  uint32_t tensor; ///< a concat may have more than 16 bits count
};

/// A rule, and what is asked of it again and again.
struct RuleInfo {
  /// `problem` says what is not split unevenly (null: nothing); nor is dim `evenDim` of any tensor (-1: none).
  explicit RuleInfo(const ShardingRule &rule, const Problem *problem = nullptr, int32_t evenDim = -1);

  unsigned numFactors() const { return rule->factorSizes.size(); }

  const ShardingRule *rule;
  /// Per factor where it stands, operands first.
  std::vector<llvm::SmallVector<FactorPlace, 4>> places;
  /// Per factor the choices that split it together with others. Not the others themselves: a concat has thousands.
  std::vector<llvm::SmallVector<int32_t, 2>> sharedSplits;
  /// Per factor: can be split alone with whole results; and if so, for a cost inside the op.
  llvm::SmallVector<bool, 8> isParallel, isCostly;
  /// Per factor: see `ShardingRule::allowsUneven` and `Problem::keepEven`.
  llvm::SmallVector<bool, 8> allowsUneven;
  /// Per factor the choice that splits it alone, or -1.
  llvm::SmallVector<int, 8> singleSplit;
  /// True if some dim has several factors.
  bool hasDimOfSeveral = false;
};

enum class NodeKind : uint8_t { Input, Op, Hub, Pinned, Output };

struct SearchNode {
  NodeKind kind;
  /// Of the op for `Op`, of the output for `Output`, else of the value. A pinned node of a constraint has its result.
  uint32_t id;
  /// Of its rule in the graph.
  uint32_t rule;
  /// Its factors are numbered from here on among all factors of all nodes.
  uint32_t firstFactor;
  /// Its incoming edges, one per operand, begin here.
  EdgeId firstIn;
  /// Null for ops, hubs, and where nothing is annotated.
  const Annotation *annotation = nullptr;
};

struct SearchEdge {
  NodeId producer, consumer;
  ValueId value;
  uint32_t result, operand;
  /// The first operand of the consumer that reads this value, among its first 16: wanted in the same state, it is there already.
  uint32_t twin;
};

class SearchGraph {
public:
  /// `problem` must outlive this.
  explicit SearchGraph(const Problem &problem);

  const Problem &getProblem() const { return problem; }
  size_t numNodes() const { return nodes.size(); }
  size_t numEdges() const { return edges.size(); }
  size_t numFactors() const { return factorCount; }
  const SearchNode &node(NodeId id) const { return nodes[id]; }
  const RuleInfo &ruleOf(NodeId id) const { return rules[nodes[id].rule]; }
  const SearchEdge &edge(EdgeId id) const { return edges[id]; }
  llvm::ArrayRef<SearchEdge> inEdges(NodeId id) const {
    EdgeId begin = nodes[id].firstIn, end = id + 1 < nodes.size() ? nodes[id + 1].firstIn : edges.size();
    return llvm::ArrayRef<SearchEdge>(edges).slice(begin, end - begin);
  }
  llvm::ArrayRef<EdgeId> outEdges(NodeId id) const {
    return llvm::ArrayRef<EdgeId>(outgoing).slice(firstOut[id], firstOut[id + 1] - firstOut[id]);
  }
  /// The node that a factor number belongs to.
  NodeId nodeOfFactor(uint32_t factor) const;
  /// The value that an input, hub or pinned node or an output stands for.
  ValueId valueOf(NodeId id) const;
  /// Shape of the value of a node that is not an op: the dim of its factor number `factor`.
  unsigned dimOfFactor(NodeId id, FactorId factor) const;

  /// `kNone` where there is no node.
  NodeId nodeOfOp(OpId op) const { return opNodes[op]; }
  NodeId nodeOfOutput(OutputId output) const { return outputNodes[output]; }
  NodeId inputNode(ValueId value) const { return inputNodes[value]; }
  /// The node whose result number `second` the users of a value see.
  std::pair<NodeId, unsigned> portOf(ValueId value) const { return ports[value]; }
  /// The node whose result number `second` is the state of a value that an op makes, as its type says it.
  std::pair<NodeId, unsigned> sharedAt(ValueId value) const;

private:
  uint32_t identityRule(llvm::ArrayRef<int64_t> shape, int32_t evenDim = -1);
  NodeId addNode(NodeKind kind, uint32_t id, uint32_t rule, const Annotation *annotation = nullptr);
  NodeId addValueNode(NodeKind kind, ValueId value, const Annotation *annotation = nullptr);
  void addEdge(ValueId value, unsigned operand);
  void countUses();
  void addInput(ValueId value);
  void addOp(OpId op);
  void publish(ValueId value, NodeId producer, unsigned result);
  void addHubBehind(ValueId value);
  void indexOutgoing();

  const Problem &problem;
  std::deque<ShardingRule> identities;
  std::map<std::pair<std::vector<int64_t>, int32_t>, uint32_t> identityIds;
  std::deque<RuleInfo> rules;
  std::vector<SearchNode> nodes;
  std::vector<SearchEdge> edges;
  std::vector<EdgeId> outgoing;
  std::vector<uint32_t> firstOut;
  std::vector<uint32_t> useCounts;
  std::vector<NodeId> opNodes, outputNodes, inputNodes;
  std::vector<std::pair<NodeId, unsigned>> ports;
  uint32_t factorCount = 0;
};

} // namespace cleave::spmd

#endif // CLEAVE_LIB_SOLVER_SEARCHGRAPH_H
