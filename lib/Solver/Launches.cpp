//===- Launches.cpp - which ops share a kernel ----------------------------===//
//
// Three walks. Backwards, for each node: whether what reads its result would be in the kernel that made it. Forwards: which op made what
// it hands on last, which op its kernel began with, and what that kernel walks. Backwards again: what nobody reads
// but that kernel.
//
// An op joins the first of the kernels that it reads from and may, which nobody else has read from, and others become one with it; from each
// it is cut off once, by the first of the operands that come from there. What comes from others may be sent meanwhile. Movement is part of
// what reads it, or, in front of an output, of what made it; if what is moved is sent, and what made it cannot move it, it is a kernel. Edges
// that go back to a loop are read by another iteration, which is another kernel.
//
//===----------------------------------------------------------------------===//
#include "Launches.h"
#include "cleave/Sharding/Fusion.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

using namespace cleave::spmd;
using namespace llvm;

namespace {
enum class Role : uint8_t {
  End,     ///< inputs and outputs, of loops too: no kernel
  Through, ///< movement, and nodes of values
  Anchor,  ///< has a kernel of its own, as its first op
  Rows,    ///< walks whole rows: a norm, a softmax, a reduction
  Map,     ///< element by element
  Alone,   ///< shares its kernel with nothing
};

/// What is on the way to a node.
struct Made {
  /// The last op that computes, and the first one of its kernel; `kNone` if there is none.
  NodeId by = kNone, kernel = kNone;
  /// What its kernel walks, and, of rows, the op whose they are; `kNone` if it walks none.
  KernelKind kind = KernelKind::Points;
  NodeId rows = kNone;
  /// Whether it has been moved since, by what is no part of that kernel.
  bool isMoved = false;
  /// Whether parts have been put together, which nobody reads through.
  bool isJoined = false;
  /// Whether it is the end of that kernel: a product's tiles, transposed.
  bool isEnd = false;
  /// Whether all of it is that kernel's.
  bool isFull = true;
  /// Whether several read it.
  bool isShared = false;

  bool onTiles() const { return kind == KernelKind::Tiles; }
};

/// Whether a node, or what it hands on to, would be in the kernel of what it reads: of one with an anchor, of another.
struct Reads {
  bool onTiles = false, otherwise = false;
  /// The op whose rows are walked behind; `kNone` if none are.
  NodeId rows = kNone;
  /// Elements are moved on the way.
  bool isMoved = false;
  /// Whatever is sent, nobody reads it but from memory: it is returned, or a product takes it in another shape.
  bool isStored = false;
  bool isOfProducts = false;
};
} // namespace

static Role roleOf(const SearchGraph &graph, NodeId id) {
  NodeKind kind = graph.node(id).kind;
  const ShardingRule &rule = *graph.ruleOf(id).rule;
  if (kind == NodeKind::Input || kind == NodeKind::Output || rule.isLoop)
    return Role::End;
  if (kind != NodeKind::Op || rule.isMovement)
    return Role::Through;
  // A sum of one operand has no tiles.
  if (rule.form == Form::Contraction && rule.flops == 0)
    return Role::Alone;
  if (isAnchorForm(rule.form))
    return Role::Anchor;
  if (isRowForm(rule.form))
    return Role::Rows;
  return isFusableForm(rule.form) ? Role::Map : Role::Alone;
}

/// The shape that an op walks by rows, and which of its dims make one.
static SmallVector<std::pair<int64_t, bool>> describeRows(const ShardingRule &rule) {
  SmallVector<std::pair<int64_t, bool>> dims;
  for (auto [dim, factors] : enumerate(rule.operands.front())) {
    auto &[size, isWalked] = dims.emplace_back(1, is_contained(rule.rowDims, static_cast<int64_t>(dim)));
    for (FactorId factor : factors)
      size *= rule.factorSizes[factor];
  }
  return dims;
}

/// True if one kernel can walk the rows of both: of one shape, along the same dims, and each row at once.
static bool haveSameRows(const SearchGraph &graph, NodeId one, NodeId other) {
  if (other == kNone || one == other)
    return true;
  const ShardingRule &first = *graph.ruleOf(one).rule, &second = *graph.ruleOf(other).rule;
  return first.form != Form::Scan && second.form != Form::Scan && describeRows(first) == describeRows(second);
}

/// The factors of all dims, major to minor.
static SmallVector<FactorId> flatten(const TensorFactors &dims) {
  SmallVector<FactorId> all;
  for (const DimFactors &factors : dims)
    append_range(all, factors);
  return all;
}

/// A product's tiles may end in one.
static bool isTranspose(const ShardingRule &rule) {
  if (rule.operands.size() != 1)
    return false;
  SmallVector<FactorId> before = flatten(rule.operands.front()), after = flatten(rule.results.front());
  return std::is_permutation(before.begin(), before.end(), after.begin(), after.end());
}

static bool movesElements(const ShardingRule &rule) {
  return rule.isMovement && !rule.isAlias && !rule.operands.empty();
}

/// What the node reads from the last of the kernels before it.
static Made findLast(const SearchGraph &graph, ArrayRef<Made> made, NodeId id) {
  Made last;
  for (const SearchEdge &edge : graph.inEdges(id))
    if (edge.producer < id)
      if (const Made &one = made[edge.producer]; last.by == kNone || (one.by != kNone && one.by > last.by))
        last = one;
  return last;
}

/// True if movement may be part of the kernel that made what it moves.
static bool mayEndInMovement(const Made &last, const ShardingRule &rule) {
  return last.by != kNone && getJoining(last.kind, Form::Movement, isTranspose(rule)) != Joining::Never;
}

/// True if a kernel that walks `rows` can go on with what reads them.
static bool mayFollowRows(const SearchGraph &graph, NodeId rows, const Reads &read) {
  return rows == kNone || (!read.isMoved && haveSameRows(graph, rows, read.rows));
}

/// A kernel that goes on reads what was made as it is.
static bool mayGoOn(const Made &last) { return last.by != kNone && !last.isEnd && !last.isMoved; }

/// True if an op may go on in the kernel that made what it reads along an edge.
static bool mayJoin(const SearchGraph &graph, const Made &from, const SearchEdge &edge, NodeId id, const Reads &read) {
  const ShardingRule &rule = *graph.ruleOf(id).rule;
  if (!mayGoOn(from) || getJoining(from.kind, rule.form, /*transposes=*/false) == Joining::Never)
    return false;
  if (isRowForm(rule.form))
    return mayFollowRows(graph, from.rows, read);
  // What is on tiles is not spread over more of them, and what is computed again for each of these is for its one reader.
  bool isInPlace = rule.operands[edge.operand] == rule.results.front();
  return isInPlace || from.kind == KernelKind::Rows || (from.kind == KernelKind::Points && !from.isShared);
}

/// Movement, or a node of values, hands on what it reads.
static Made handOn(const SearchGraph &graph, Made last, NodeId id, const Reads &read) {
  if (const ShardingRule &rule = *graph.ruleOf(id).rule; movesElements(rule)) {
    bool isPart = mayEndInMovement(last, rule);
    last.isEnd |= isPart && last.onTiles();
    last.isMoved |= !isPart && !read.isStored;
    last.isJoined |= !isPart && !read.isStored && rule.operands.size() > 1;
  }
  return last;
}

/// Of movement, or a node of a value, whose readers do `all`.
static Reads readsThrough(const SearchGraph &graph, NodeId id, Reads all) {
  const ShardingRule &rule = *graph.ruleOf(id).rule;
  if (movesElements(rule)) {
    all.isMoved = true;
    all.onTiles = false;
    if (all.isStored)
      return {isTranspose(rule), /*otherwise=*/true, kNone, /*isMoved=*/true, /*isStored=*/true};
  } else if (graph.node(id).kind == NodeKind::Op && !rule.operands.empty()) {
    // Products read through views, and these have the rank of what they look at.
    all.isStored |= all.isOfProducts && rule.operands.front().size() != rule.results.front().size();
  }
  return all;
}

static Reads findReads(const SearchGraph &graph, ArrayRef<Reads> reads, NodeId id, Role role) {
  if (role == Role::Rows)
    return {/*onTiles=*/false, /*otherwise=*/true, id};
  // Which places are a rank's is found out element by element, in the kernel that made the indices.
  if (graph.ruleOf(id).rule->form == Form::Scatter)
    return {/*onTiles=*/false, /*otherwise=*/true};
  Reads all;
  all.isStored = all.isOfProducts = true;
  for (EdgeId edge : graph.outEdges(id))
    if (NodeId consumer = graph.edge(edge).consumer; consumer > id) {
      const Reads &one = reads[consumer];
      all = {all.onTiles || one.onTiles, all.otherwise || one.otherwise, all.rows == kNone ? one.rows : all.rows,
             all.isMoved || one.isMoved, all.isStored && one.isStored,   all.isOfProducts && one.isOfProducts};
    }
  switch (role) {
  case Role::Map:
    // Cut off from a product's tiles it is made with the rows behind it, if there are any.
    return {all.rows == kNone, true, all.rows};
  case Role::Through:
    return readsThrough(graph, id, all);
  default:
    all = Reads();
    all.isStored = role == Role::End || role == Role::Alone;
    all.isOfProducts = role == Role::Anchor;
    return all;
  }
}

/// Readers that walk rows of two kinds are two kernels.
static bool haveReadersOfOneKind(const SearchGraph &graph, ArrayRef<Reads> reads, NodeId node) {
  NodeId rows = kNone;
  for (EdgeId edge : graph.outEdges(node)) {
    NodeId other = reads[graph.edge(edge).consumer].rows;
    if (rows != kNone && !haveSameRows(graph, rows, other))
      return false;
    rows = other == kNone ? rows : other;
  }
  return true;
}

/// Per node, whether its result is one of the function's.
static std::vector<char> findReturned(const SearchGraph &graph) {
  std::vector<char> isReturned(graph.numNodes(), false);
  const Problem &problem = graph.getProblem();
  for (OutputId output = 0; output < problem.numOutputs(); ++output)
    isReturned[graph.portOf(problem.outputValue(output)).first] = true;
  return isReturned;
}

namespace {
/// The walk forwards: kernels, and which edges split them.
class Forwards {
public:
  Forwards(const SearchGraph &graph, ArrayRef<Role> roles, ArrayRef<Reads> reads)
      : graph(graph), roles(roles), reads(reads) {}

  /// The first op of the kernel of what was made; `kNone` for what none has made.
  NodeId kernelOf(const Made &one) const;
  /// Adds the next node; `cuts` are the positions of those of its edges along which it would be cut off from the kernel that it goes on
  /// in. Sets `last`, the last of the kernels that it reads from, or the first one that it goes on in.
  void add(NodeId id, Made &last, SmallVectorImpl<size_t> &boundaries);

  std::vector<Made> made;

private:
  SmallVector<size_t, 4> join(NodeId id, Made &own, SmallVectorImpl<size_t> &others);
  void closeOthers(NodeId id, const Made &own);

  const SearchGraph &graph;
  ArrayRef<Role> roles;
  ArrayRef<Reads> reads;
  /// By op, another one of its kernel, the first one of which is its own.
  DenseMap<NodeId, NodeId> merged;
  /// Kernels that have been read by others: each runs before its first reader.
  DenseSet<NodeId> closed;
};
} // namespace

NodeId Forwards::kernelOf(const Made &one) const {
  NodeId kernel = one.kernel;
  if (kernel == kNone) // no key of a DenseMap
    return kNone;
  for (auto found = merged.find(kernel); found != merged.end(); found = merged.find(kernel))
    kernel = found->second;
  return kernel;
}

/// Kernels that an op reads from become one with it, in the order of its operands, as far as they may: positions of edges. It could as well
/// go on in `others`, which cannot become one with those.
SmallVector<size_t, 4> Forwards::join(NodeId id, Made &own, SmallVectorImpl<size_t> &others) {
  SmallVector<size_t, 4> joined;
  for (auto [index, edge] : enumerate(graph.inEdges(id))) {
    if (edge.producer >= id || !mayJoin(graph, made[edge.producer], edge, id, reads[id]))
      continue;
    const Made &from = made[edge.producer];
    NodeId kernel = kernelOf(from);
    if (closed.contains(kernel))
      continue;
    bool isOwn = kernel == kernelOf(own);
    Joining merging = isOwn ? Joining::Any : getMerging(own.kind, from.kind);
    if (merging == Joining::Never || (merging == Joining::SameRows && !haveSameRows(graph, own.rows, from.rows))) {
      others.push_back(index);
      continue;
    }
    joined.push_back(index);
    if (isOwn)
      continue;
    if (NodeId before = kernelOf(own); before != id)
      merged[before] = kernel;
    else
      own.kernel = kernel;
    if (own.kind == KernelKind::Points) {
      own.kind = from.kind;
      own.rows = from.rows;
    }
  }
  return joined;
}

void Forwards::closeOthers(NodeId id, const Made &own) {
  for (const SearchEdge &edge : graph.inEdges(id))
    if (edge.producer < id && made[edge.producer].by != kNone)
      if (NodeId kernel = kernelOf(made[edge.producer]); kernel != kernelOf(own))
        closed.insert(kernel);
}

void Forwards::add(NodeId id, Made &last, SmallVectorImpl<size_t> &boundaries) {
  last = findLast(graph, made, id);
  Form form = graph.ruleOf(id).rule->form;
  Made own;
  switch (roles[id]) {
  case Role::Through:
    own = handOn(graph, last, id, reads[id]);
    break;
  case Role::Rows:
  case Role::Map:
    own = {id, id, getKernelKind(form), isRowForm(form) ? id : kNone};
    if (SmallVector<size_t, 4> joined = join(id, own, boundaries); !joined.empty()) {
      last = made[graph.inEdges(id)[joined.front()].producer];
      // Cut off from one kernel, it goes on in another, which is the last one: what comes from others may be sent meanwhile.
      boundaries = boundaries.empty() ? joined : SmallVector<size_t, 4>{boundaries.back()};
    }
    break;
  case Role::Anchor:
  case Role::Alone:
    own = {id, id, getKernelKind(form)};
    own.isEnd = roles[id] == Role::Alone;
    break;
  case Role::End:
    break;
  }
  if (roles[id] != Role::Through)
    closeOthers(id, own);
  own.isShared |= graph.outEdges(id).size() > 1;
  made.push_back(own);
}

Launches::Launches(const SearchGraph &graph, const CostModel &costs)
    : splits(graph.numEdges(), false), moves(graph.numEdges(), false), joins(graph.numEdges(), false),
      alone(graph.numNodes(), false), shares(graph.numEdges(), false), kept(graph.numNodes(), false) {
  if (!costs.isTime())
    return;
  std::vector<Role> roles;
  for (NodeId node = 0; node < graph.numNodes(); ++node)
    roles.push_back(roleOf(graph, node));
  std::vector<Reads> reads(graph.numNodes());
  for (NodeId node = graph.numNodes(); node-- > 0;)
    reads[node] = findReads(graph, reads, node, roles[node]);
  Forwards forwards(graph, roles, reads);
  std::vector<Made> &made = forwards.made;
  for (NodeId node = 0; node < graph.numNodes(); ++node) {
    Made last;
    SmallVector<size_t, 4> boundaries;
    forwards.add(node, last, boundaries);
    const ShardingRule &rule = *graph.ruleOf(node).rule;
    alone[node] =
        roles[node] == Role::Through && reads[node].isStored && movesElements(rule) && !mayEndInMovement(last, rule);
    bool isFull = true;
    SmallVector<NodeId, 2> splitOff; // kernels
    for (auto [index, edge] : enumerate(graph.inEdges(node))) {
      if (edge.producer >= node)
        continue;
      const Made &from = made[edge.producer];
      EdgeId id = graph.node(node).firstIn + index;
      moves[id] = from.isMoved;
      joins[id] = from.isJoined;
      bool mayShare =
          mayGoOn(from) && (from.onTiles() ? reads[node].onTiles
                                           : reads[node].otherwise && mayFollowRows(graph, from.rows, reads[node]));
      shares[id] = mayShare && from.isFull && forwards.kernelOf(from) == forwards.kernelOf(last) && edge.operand < 63;
      isFull &= shares[id];
      bool isOne = boundaries.empty() ? from.by == last.by : is_contained(boundaries, index);
      if (!mayGoOn(from) || !isOne || is_contained(splitOff, from.kernel))
        continue;
      splits[id] = mayShare;
      splitOff.push_back(from.kernel);
    }
    made[node].isFull = roles[node] == Role::Through ? isFull : rule.results.size() == 1;
  }
  for (NodeId node = 0; node < graph.numNodes(); ++node)
    kernels.push_back(made[node].by == node ? forwards.kernelOf(made[node]) : kNone);
  std::vector<char> isReturned = findReturned(graph);
  for (NodeId node = graph.numNodes(); node-- > 0;) {
    auto staysAlong = [&](EdgeId edge) {
      NodeId consumer = graph.edge(edge).consumer;
      return shares[edge] && (roles[consumer] != Role::Through || kept[consumer]);
    };
    kept[node] = !isReturned[node] && !graph.outEdges(node).empty() && haveReadersOfOneKind(graph, reads, node) &&
                 all_of(graph.outEdges(node), staysAlong);
  }
}
