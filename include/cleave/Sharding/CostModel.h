//===- CostModel.h - what everything costs ----------------------*- C++ -*-===//
//
// The costs of a decision as one value, in integers of a *unit* that whoever fills it in chooses: sending over each
// mesh axis, beginning a collective, computing, writing, and the small terms that keep a decision close to what was
// asked for. The planner of reshards and the solver's objective read the same one, so that a plan costs what was
// decided by.
//
// The default counts bytes: a unit is 1/1024 byte, all axes alike, latency nothing. A model of a known machine (Cluster.h)
// has as unit 1/1024 of the time of a byte over the fastest link, and fills in each axis; the shape of the objective stays.
//
// A collective over several axes goes through them one after the other, the fastest first: over axes of sizes g1, g2,
// .. it sends, of every piece that a rank holds in the end (an all_to_all, of every piece that it is split into),
//
//   all_gather, reduce_scatter, and twice for all_reduce    (g1-1) g2 g3 .. pieces over axis 1, (g2-1) g3 .. over 2, ..
//   all_to_all                                              (g1-1) pieces over axis 1, (g2-1) g1 over axis 2, ..
//
// Both are g1 g2 .. - 1 pieces where all axes cost the same: the cost of one ring over all ranks. An axis over several
// kinds of links counts as several axes.
//
// Latencies of these are those of one flat ring, as NCCL builds it: of its g1 g2 .. - 1 steps g2 .. - 1 leave the nearest group.
//
// What goes point to point has a latency for each *peer*, however the bytes are dealt out: a rank of an all_to_all over g ranks has
// g - 1 of them, one of an exchange as many as it sends to, or gets from, whichever are more. For a rank takes messages one after the
// other, whoever carries them. In NCCL each is a task of its own, and tasks are given out round by round, in each of which a rank has
// one peer to send to and one to receive from (`scheduleP2pTasksToPlan` in enqueue.cc): they share one launch, which is why beginning
// counts once, and each of them waits for its peer. That several rounds may be under way on other channels is not counted. A thread
// of the host copies from one member after the other, and a process writes one frame after the other (lib/Runtime). Peers are as far
// away as they can be: the farthest ones first.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SHARDING_COSTMODEL_H
#define CLEAVE_SHARDING_COSTMODEL_H

#include "cleave/Program/Collective.h"
#include "cleave/Sharding/Mesh.h"
#include "llvm/ADT/StringRef.h"
#include <array>
#include <cassert>
#include <cmath>
#include <limits>

namespace cleave::spmd {

/// Units per byte of the default model.
inline constexpr int64_t kCostUnitsPerByte = 1024;
/// Cost of a reshard that cannot be done, or is beyond counting.
inline constexpr int64_t kImpossibleCost = std::numeric_limits<int64_t>::max() / 1024;
/// What is possible costs this at most: 20 s over a link of 450 GB/s.
inline constexpr int64_t kMostCost = kImpossibleCost - 1;

/// A cost, or kImpossibleCost where it is beyond that.
inline int64_t clampCost(__int128 cost) {
  return cost < kImpossibleCost ? static_cast<int64_t>(cost) : kImpossibleCost;
}

/// A factor on the cost of reshards, as hundredths above 1.
using Surcharge = int32_t;

/// How ranks that differ along one mesh axis are connected. Units; none negative.
struct LinkCost {
  int64_t perByte = kCostUnitsPerByte;
  /// One message, however short: a ring of g ranks has g-1 of them one after the other, an all_reduce twice as many; what goes point
  /// to point has one for each peer.
  int64_t latency = 0;

  bool operator==(const LinkCost &other) const { return perByte == other.perByte && latency == other.latency; }
};

/// A link that connects ranks of an axis in blocks of so many, one behind the other.
struct NearLink {
  int64_t block = 1;
  LinkCost link;
};

/// The models that users name.
enum class Optimize {
  Balanced, ///< bytes on the wire against repeated compute, close to what the user wrote
  Bytes,    ///< bytes on the wire; all else only breaks ties
  Time,     ///< what a step takes on a cluster: bytes, latencies, compute, memory, launches
};
/// How users name them.
constexpr llvm::StringLiteral kOptimizeWords[] = {"balanced", "bytes", "time"};

/// How ranks of a group reach each other; which collective does which way is in the table of all kinds.
using program::Traffic;

struct CostModel {
  /// The default is `Balanced`. `Time` is that of the default cluster.
  static CostModel create(Optimize optimize);

  /// By number of the mesh axis; axes beyond the list are as `anyLink`.
  llvm::SmallVector<LinkCost, 4> links;
  LinkCost anyLink;
  /// By number of the mesh axis, the links that its neighbors have instead, nearest first; may be shorter.
  llvm::SmallVector<llvm::SmallVector<NearLink, 1>, 0> nearLinks;
  /// Units for beginning a collective.
  int64_t perCollective = 0;

  /// Units per nanosecond; 0: a unit is no time.
  double perNs = 0;
  /// Units per byte that an op reads or writes, where that takes longer than its flops; 0: that is not counted.
  double perMemoryByte = 0;
  /// The same where it is no more than `cacheBytes`, together.
  double perCacheByte = 0;
  int64_t cacheBytes = 0;
  /// Units for a kernel to start; 0: that is not counted.
  int64_t perLaunch = 0;
  /// What a flop on elements of 1, 2, 4 and 8 bytes costs of one on f32.
  std::array<double, 4> flopShares = {1, 1, 1, 1};

  /// Units per flop of a rank: the balance of a large GPU; above 1/64 byte it changes minima.
  double perFlop = kCostUnitsPerByte / 128.0;
  /// Units more for each flop beyond `repetitionSlack` times its share of the split that propagation found: what
  /// propagation splits stays split. Padding is not repetition, hence the slack.
  double perRepeatedFlop = kCostUnitsPerByte / 64.0, repetitionSlack = 1.25;
  /// Units per byte written beyond the share that propagation found: no reward for splitting pointwise work further.
  double perExtraWrite = kCostUnitsPerByte / 256.0;
  /// Units per byte of its activations that a contraction pays for leaving its uncontested factor: context parallelism
  /// stays what was asked for.
  double perMovedByte = kCostUnitsPerByte * (1.0 / 3);

  /// Units for each reshard: all_reduce rather than scatter and gather.
  int64_t perReshard = kCostUnitsPerByte / 2;
  /// Units for a whole operand made partial: no spmd.keep_on_first on every rank for nothing.
  int64_t perMadePartial = kCostUnitsPerByte / 8;
  /// Units for an op that keeps a partial: reduce late.
  int64_t perKeptPartial = -kCostUnitsPerByte / 32;

  /// On reshards next to a fallback, which must save something.
  Surcharge fallbackSurcharge = 10;
  /// On reshards next to an axis split in two although it fits. Without it, halves of an axis are as good as the whole,
  /// and the solver looks at each.
  Surcharge tornSurcharge = 25;
  /// On reshards of a parameter that was asked to be split, to an op where nothing else brings its axis: Megatron stays
  /// Megatron at any batch.
  Surcharge parameterSurcharge = 6300;

  const LinkCost &link(unsigned axis) const { return axis < links.size() ? links[axis] : anyLink; }
  /// What its neighbors have instead, nearest first.
  llvm::ArrayRef<NearLink> near(unsigned axis) const {
    return axis < nearLinks.size() ? llvm::ArrayRef<NearLink>(nearLinks[axis]) : llvm::ArrayRef<NearLink>();
  }
  /// True if a plan of fewer collectives may cost less although it sends more.
  bool hasLatency() const;
  /// True if a byte over some link costs more than over another.
  bool hasSeveralLinks() const;
  /// Units for reading and writing so many bytes in one kernel.
  double memoryUnits(double bytes) const {
    return bytes * (bytes <= static_cast<double>(cacheBytes) ? perCacheByte : perMemoryByte);
  }
  /// Costs are told as bytes over the fastest link: its units per byte.
  int64_t unitsPerToldByte() const;
  /// Of `flopShares`, by the width of an element; what lies between two widths counts as the smaller one.
  double getFlopShare(int64_t elementBytes) const {
    return flopShares[elementBytes >= 8 ? 3 : elementBytes >= 4 ? 2 : elementBytes >= 2 ? 1 : 0];
  }
  /// True if costs are times, and nothing else.
  bool isTime() const { return perMemoryByte > 0; }
  /// What told bytes stand for. Precondition: a unit is a time.
  int64_t toNs(int64_t toldBytes) const {
    assert(isTime() && "units that are no time");
    return std::llround(static_cast<double>(toldBytes) * static_cast<double>(unitsPerToldByte()) / perNs);
  }
  /// Units as such bytes, rounded down.
  int64_t toBytes(int64_t units) const { return units / unitsPerToldByte(); }
};

/// What a collective over some atoms costs: `perPiece` for each byte of a piece, and `fixed` for taking place.
struct GroupCost {
  __int128 perPiece = 0, fixed = 0;
};

/// A ring: all_gather, reduce_scatter; an all_reduce is two of them, begun once.
GroupCost ringCost(const AtomMesh &mesh, const CostModel &model, llvm::ArrayRef<AtomId> atoms);
/// Every rank to every other, one after the other: all_to_all.
GroupCost pairwiseCost(const AtomMesh &mesh, const CostModel &model, llvm::ArrayRef<AtomId> atoms);
/// Point to point over links of all these atoms, for bytes the slowest: an exchange. A piece is all that the busiest rank sends.
/// \param peers to so many others a rank sends at most, or gets from so many: the farthest of those that there are
GroupCost directCost(const AtomMesh &mesh, const CostModel &model, llvm::ArrayRef<AtomId> atoms, int64_t peers);

/// Units of one collective over `atoms` of which the busiest rank sends `bytes`, its beginning included: what the formulas
/// above make of these bytes. Nothing is begun to send nothing.
/// \param peers as above, of what goes directly; nothing else asks
double collectiveUnits(const AtomMesh &mesh, const CostModel &model, Traffic traffic, llvm::ArrayRef<AtomId> atoms,
                       int64_t bytes, int64_t peers);

} // namespace cleave::spmd

#endif // CLEAVE_SHARDING_COSTMODEL_H
