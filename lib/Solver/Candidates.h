//===- Candidates.h - what an axis may do where -----------------*- C++ -*-===//
//
// Every annotated atom flows along factors, forward and backward, as far as it gets: no conflict is resolved here. What
// each atom reaches, and from where it came, is all that later steps know of the annotations.
//
//   annotation x: [data, _]     x --> op: factor i takes data --> its result --> the next op: factor i takes data ...
//
// Two classes. *Base*: what follows from annotations. *Fallbacks*: where an atom meets itself on two parallel factors of an
// op, or a factor that pays (a reduction, a halo, a softmax), the op's other parallel factors join in and flow on: they
// give the search a way round the conflict.
//
// An annotation for a partial value goes backward through ops that are linear in an operand, to those that reduce: their
// reduced factors take its atoms.
//
// In a dim of several factors atoms fill the major one first (x=4 on [kv 2, group 4] gives its first half to kv); a
// minor factor lets atoms out only where the majors can be full, else a flatten would leak a split sequence into a replicated
// batch. Atoms flow first come, first served, so causes are shortest chains. Linear in the edges.
//
// Atoms that are free (`Problem::setFree`) come to every factor that some choice splits, behind the annotations of the last level.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_SOLVER_CANDIDATES_H
#define CLEAVE_LIB_SOLVER_CANDIDATES_H

#include "SearchGraph.h"
#include "cleave/Sharding/State.h"
#include "llvm/ADT/bit.h"
#include <array>
#include <cassert>
#include <functional>

namespace cleave::spmd {

/// A set of atoms, bit by bit.
using AtomMask = uint64_t;
inline AtomMask maskOf(AtomId atom) { return AtomMask(1) << atom; }
inline AtomMask maskOf(llvm::ArrayRef<AtomId> atoms) {
  AtomMask mask = 0;
  for (AtomId atom : atoms)
    mask |= maskOf(atom);
  return mask;
}

/// Calls `callback` for each atom of a set, ascending.
template <typename Callback> void forEachAtom(AtomMask mask, Callback callback) {
  for (; mask; mask &= mask - 1)
    callback(static_cast<AtomId>(llvm::countr_zero(mask)));
}

/// An atom that came to a factor that it does not divide.
struct RefusedAtom {
  NodeId node;
  FactorId factor;
  AtomId atom;
};

class Candidates {
public:
  /// With `keepParameters` every reshard of a parameter that an annotation splits counts as moving it, else only where nothing else
  /// asks for its axis. With `maySplit` free atoms come only to those factors of ops for which it is true.
  explicit Candidates(const SearchGraph &graph, bool keepParameters = false,
                      std::function<bool(OpId, FactorId)> maySplit = nullptr);

  /// Priorities that occur in annotations, ascending; never empty.
  llvm::ArrayRef<int64_t> getPriorities() const { return priorities; }
  /// Lets all annotations up to `priority` flow, on top of what flowed before. Call with ascending priorities.
  void activate(int64_t priority);

  //===--------------------------------------------------------------------===//
  // After `activate`
  //===--------------------------------------------------------------------===//

  /// Atoms that annotations bring to a factor, without and with fallbacks.
  AtomMask base(NodeId node, FactorId factor) const { return baseMasks[graph.node(node).firstFactor + factor]; }
  AtomMask all(NodeId node, FactorId factor) const { return allMasks[graph.node(node).firstFactor + factor]; }
  /// The atoms of `base` without those that are there only because they are free.
  AtomMask annotated(NodeId node, FactorId factor) const {
    return annotatedMasks.empty() ? base(node, factor) : annotatedMasks[graph.node(node).firstFactor + factor];
  }
  /// Atoms for which an op may take choice number `choice`, without and with fallbacks.
  std::pair<AtomMask, AtomMask> allowed(NodeId node, unsigned choice) const;
  /// Atoms that annotations bring to the factor that an op holds; 0 where it holds none.
  AtomMask held(NodeId node) const;
  /// True if some factor cannot take the whole axis: its atoms are then worth a look one by one.
  bool isMarked(unsigned axis) const { return marked & axisMasks[axis]; }
  /// True if no annotation of the levels so far says anything about how this input is stored.
  bool isFree(NodeId node) const { return freeNodes[node]; }
  /// The atoms asked for a node that is not an op, per dim, and those it is partial over.
  State annotatedState(NodeId node) const;
  /// Atoms that may be appended to open dims of an annotated node.
  AtomMask openAtoms(NodeId node, unsigned dim) const;

  /// By how much propagation splits the compute of an op; and its writes.
  int64_t split(NodeId node) const { return splits[node]; }
  int64_t wide(NodeId node) const { return wides[node]; }
  /// Atoms that come to an op on a parallel factor and meet no conflict there.
  AtomMask calm(NodeId node) const { return calms[node]; }
  /// Atoms that may split any dim of an output without an annotation: they split some dim of it, or of what it is made of, where an op
  /// on the way cannot go on with them.
  AtomMask freeAtOutput(NodeId output) const;
  /// True if a reshard here moves a parameter that the user sharded, to an op where nothing else asks for its axis.
  bool movesParameter(EdgeId edge) const { return parameterMoves[edge]; }

  llvm::ArrayRef<RefusedAtom> getRefused() const { return refused; }
  /// Where `atom` came from, as a factor number of the whole graph: a factor of the same node (fallbacks, pairs) or of a
  /// neighbor. `kNone` if an annotation says it here; `causeOfPartial(n)` if it follows from node n's annotation to be partial.
  /// Precondition: `all` has the atom.
  uint32_t cause(NodeId node, FactorId factor, AtomId atom) const {
    assert((all(node, factor) & maskOf(atom)) && "the atom did not come here");
    return causes[(graph.node(node).firstFactor + factor) * numAtoms + atom];
  }

  uint32_t causeOfPartial(NodeId node) const { return graph.numFactors() + node; }
  /// Of atoms that no annotation brings.
  uint32_t causeOfFree() const { return graph.numFactors() + graph.numNodes(); }

private:
  struct Arrival {
    NodeId node;
    FactorId factor;
    AtomId atom;
    bool operator==(const Arrival &other) const {
      return node == other.node && factor == other.factor && atom == other.atom;
    }
  };
  /// Atoms over which something may be partial, without and with fallbacks.
  struct PartialAtoms {
    AtomMask base = 0, all = 0;
  };

  // Flow.
  void put(NodeId node, FactorId factor, AtomId atom, uint32_t from);
  void putInDim(NodeId node, const DimFactors &factors, AtomId atom, uint32_t from);
  void restart();
  void seed(NodeId node, int64_t priority);
  void markParts(llvm::ArrayRef<AtomId> atoms);
  void seedPartial(NodeId node);
  void wantPartial(NodeId producer, NodeId annotated);
  void offerFree();
  void flow();
  void flowFrom(const Arrival &arrival);
  void flowAlong(NodeId node, int32_t choice, AtomId atom, uint32_t number);
  void flowFallbacks();
  void offerWaysOn(NodeId annotated);
  void offerWaysAround(NodeId node);
  void offerParallel(NodeId node, AtomId atom, uint32_t from);
  void retryBlocked(NodeId node);
  bool majorsCanBeFull(NodeId node, const FactorPlace &place, AtomId atom) const;
  const DimFactors &factorsAt(NodeId node, const FactorPlace &place) const;
  FactorId placeInDim(const RuleInfo &info, const DimFactors &factors, llvm::ArrayRef<AtomId> atoms, AtomId wanted,
                      bool &isSpread) const;
  void noteLate(NodeId node, AtomId atom);

  // Figures of nodes and edges.
  struct LiveFactors {
    unsigned numLive = 0, numFree = 0;
    bool pays = false;
    FactorId first = -1;
  };
  LiveFactors countLive(NodeId node, AtomId atom, bool withFallbacks) const;
  bool meets(NodeId node, AtomId atom, bool withFallbacks) const;
  void measure(NodeId node);
  template <typename Callback> void forEachFactor(NodeId node, Callback callback) const;
  AtomMask arrivingAt(NodeId node) const;
  AtomMask findDropped(NodeId node) const;
  bool isBrought(NodeId node, FactorId factor, AtomId atom) const;
  PartialAtoms arrivingPartials(NodeId node, const Choice &choice) const;
  void findPartials();
  bool othersBring(NodeId node, unsigned operand, AtomMask atoms) const;
  void findParameterMoves();
  int64_t product(AtomMask atoms) const;

  const SearchGraph &graph;
  const AtomMesh &mesh;
  bool keepParameters;
  std::function<bool(OpId, FactorId)> maySplit;
  unsigned numAtoms;
  llvm::SmallVector<int64_t, 2> priorities;
  llvm::SmallVector<AtomMask, 4> axisMasks;
  /// The level that has been activated.
  int64_t level = 0;
  bool isFallback = false, isOffering = false;

  std::vector<AtomMask> baseMasks, allMasks;
  /// `baseMasks` before free atoms came; empty where none are free.
  std::vector<AtomMask> annotatedMasks;
  std::vector<uint32_t> causes;
  std::vector<Arrival> queue;
  size_t queueHead = 0;
  /// Arrivals that a major factor holds back, by node.
  llvm::DenseMap<NodeId, llvm::SmallVector<Arrival, 2>> blocked, blockedInBase;
  /// By node and choice, of those that split many factors together: atoms that went on to all of them.
  llvm::DenseMap<std::pair<NodeId, int32_t>, AtomMask> flowedAlong;
  /// Ops to look at for fallbacks, in order, and per op the atoms that wait there.
  std::vector<std::pair<NodeId, AtomId>> late;
  std::vector<AtomMask> isLate;
  AtomMask marked = 0;
  std::vector<RefusedAtom> refused;
  /// Per kind and node the atoms over which it had better be partial: for an op after it that is annotated so, or
  /// because of somebody before it. Empty where nothing is annotated so.
  std::array<std::vector<AtomMask>, 4> wantedPartials, carriedPartials;

  /// Per node and kind, of its results.
  std::vector<std::array<PartialAtoms, 4>> partials;
  std::vector<int64_t> splits, wides;
  std::vector<AtomMask> calms, dropMasks;
  std::vector<char> freeNodes, parameterMoves;
};

} // namespace cleave::spmd

#endif // CLEAVE_LIB_SOLVER_CANDIDATES_H
