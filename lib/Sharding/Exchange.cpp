//===- Exchange.cpp - what a point-to-point exchange sends ----------------===//
//
// Rank h holds the box of its coordinates under `from` and sends to every rank g that shares its coordinates outside
// the atoms of `from` what g's box under `to` has of it. The atoms of `to` belong to one dim each, so that the sum over
// all g factors:
//
//   sent(h) = copies * prod over dims d of covered[d](h)  -  prod over dims d of own[d](h)
//
// where covered[d] adds up, over the digits that may differ between h and g, what their intervals of dim d share with
// the interval of h; copies counts the atoms that leave the dims altogether; own is what h keeps for itself.
//
// A dim is *even* if it does not change, or if one of its lists begins the other and the sizes divide: then covered and
// own are the same for every rank, up to dims that end in a short shard. What is left to enumerate are the coordinates
// of the atoms in the other dims, and that stops at the first rank which keeps nothing and sends as much as any can.
// The ranks that h sends to, and those that it gets from, are counted alike: with the number of shards of the other state that h's box has
// a part of for covered, and 1 for own if h is among them.
//
//===----------------------------------------------------------------------===//
#include "cleave/Sharding/ReshardPlanner.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace cleave::spmd {
namespace {

// One dim that is not even. Shard numbers are row-major over the dim's atoms.
struct UnevenDim {
  int64_t extent, fromWidth, toWidth;
  /// Digit combinations of the atoms that split nothing under `from`.
  int64_t newDigits = 1;
  /// Rows of [shard * newDigits + digits]; empty if newDigits is 1, because then all rows of a shard are covered.
  SmallVector<int64_t, 16> coveredTable;
  /// The same of shards under `to`, in place of rows.
  SmallVector<int64_t, 16> targetTable;

  int64_t overlap(int64_t fromShard, int64_t toShard) const {
    int64_t low = std::max(fromShard * fromWidth, toShard * toWidth);
    int64_t high = std::min({(fromShard + 1) * fromWidth, (toShard + 1) * toWidth, extent});
    return std::max<int64_t>(0, high - low);
  }
  int64_t covered(int64_t shard, int64_t digits) const {
    if (coveredTable.empty())
      return std::max<int64_t>(0, std::min(fromWidth, extent - shard * fromWidth));
    return coveredTable[shard * newDigits + digits];
  }
  /// Shards of width `other` that share a position with one of width `width`.
  int64_t countShards(int64_t shard, int64_t width, int64_t other) const {
    int64_t begin = shard * width, end = std::min(begin + width, extent);
    return begin < end ? (end - 1) / other - begin / other + 1 : 0;
  }
  int64_t targets(int64_t shard, int64_t digits) const {
    return targetTable.empty() ? countShards(shard, fromWidth, toWidth) : targetTable[shard * newDigits + digits];
  }
  int64_t sources(int64_t shard) const { return countShards(shard, toWidth, fromWidth); }
  int64_t mostCovered() const { return coveredTable.empty() ? fromWidth : *max_element(coveredTable); }
};

// Where one atom counts: what a step of its digit adds to the numbers of the uneven dims that it is in.
struct MovingAtom {
  int64_t size;
  int fromDim = -1, toDim = -1;
  int64_t fromStride = 0, toStride = 0, newStride = 0;
};

class Exchange {
public:
  Exchange(const AtomMesh &mesh, ArrayRef<int64_t> shape, const State &from, const State &to);
  /// Elements sent by the busiest rank.
  int64_t largestSender();
  /// Others that a rank sends to, or gets from, at most.
  int64_t mostPeers();

private:
  bool addIfEven(int64_t extent, ArrayRef<AtomId> fromAtoms, ArrayRef<AtomId> toAtoms);
  void addUneven(int64_t extent, const AtomList &fromAtoms, const AtomList &toAtoms);
  void computeCovered(UnevenDim &dim, int64_t fromShards, const AtomList &toAtoms);
  MovingAtom &moving(AtomId atom);
  /// Moves on to the next rank; false after the last one.
  bool advance();
  int64_t sentByCurrent() const;
  int64_t peersOfCurrent() const;

  const AtomMesh &mesh;
  const State &from;
  /// Products over the even dims.
  int64_t evenCovered = 1, evenKept = 1, evenTargets = 1, evenSources = 1;
  int64_t copies = 1;
  SmallVector<UnevenDim, 4> dims;
  SmallVector<MovingAtom, 8> atoms;
  SmallVector<int, 16> atomIndex;
  // The rank under consideration: digits of its atoms, and its shard numbers per uneven dim.
  SmallVector<int64_t, 8> digits;
  SmallVector<int64_t, 4> fromShard, toShard, newDigit;
};

Exchange::Exchange(const AtomMesh &mesh, ArrayRef<int64_t> shape, const State &from, const State &to)
    : mesh(mesh), from(from) {
  atomIndex.assign(mesh.numAtoms(), -1);
  for (auto [extent, fromAtoms, toAtoms] : zip_equal(shape, from.dims, to.dims)) {
    for (AtomId atom : fromAtoms)
      if (!to.splits(atom))
        copies *= mesh.size(atom);
    if (!addIfEven(extent, fromAtoms, toAtoms))
      addUneven(extent, fromAtoms, toAtoms);
  }
  digits.assign(atoms.size(), 0);
  fromShard.assign(dims.size(), 0);
  toShard.assign(dims.size(), 0);
  newDigit.assign(dims.size(), 0);
}

bool Exchange::addIfEven(int64_t extent, ArrayRef<AtomId> fromAtoms, ArrayRef<AtomId> toAtoms) {
  int64_t fromWidth = shardExtent(mesh, extent, fromAtoms), toWidth = shardExtent(mesh, extent, toAtoms);
  if (fromAtoms != toAtoms) {
    size_t shorter = std::min(fromAtoms.size(), toAtoms.size());
    if (fromAtoms.take_front(shorter) != toAtoms.take_front(shorter) || extent % mesh.product(fromAtoms) ||
        extent % mesh.product(toAtoms))
      return false;
  }
  int64_t newDigits = 1;
  for (AtomId atom : toAtoms)
    if (!from.splits(atom))
      newDigits *= mesh.size(atom);
  evenCovered *= fromWidth / newDigits;
  if (toAtoms.size() > fromAtoms.size())
    evenTargets *= mesh.product(toAtoms.drop_front(fromAtoms.size())) / newDigits;
  else
    evenSources *= mesh.product(fromAtoms.drop_front(toAtoms.size()));
  evenKept *= std::min(fromWidth, toWidth);
  return true;
}

MovingAtom &Exchange::moving(AtomId atom) {
  if (atomIndex[atom] < 0) {
    atomIndex[atom] = atoms.size();
    atoms.emplace_back().size = mesh.size(atom);
  }
  return atoms[atomIndex[atom]];
}

void Exchange::addUneven(int64_t extent, const AtomList &fromAtoms, const AtomList &toAtoms) {
  int index = dims.size();
  UnevenDim &dim = dims.emplace_back(
      UnevenDim{extent, shardExtent(mesh, extent, fromAtoms), shardExtent(mesh, extent, toAtoms), 1, {}, {}});
  int64_t stride = 1;
  for (AtomId id : reverse(fromAtoms)) {
    MovingAtom &atom = moving(id);
    atom.fromDim = index;
    atom.fromStride = stride;
    stride *= atom.size;
  }
  stride = 1;
  for (AtomId id : reverse(toAtoms)) {
    MovingAtom &atom = moving(id);
    atom.toDim = index;
    atom.toStride = stride;
    stride *= atom.size;
    if (from.splits(id))
      continue;
    atom.newStride = dim.newDigits;
    dim.newDigits *= atom.size;
  }
  if (dim.newDigits > 1)
    computeCovered(dim, mesh.product(fromAtoms), toAtoms);
}

void Exchange::computeCovered(UnevenDim &dim, int64_t fromShards, const AtomList &toAtoms) {
  dim.coveredTable.assign(fromShards * dim.newDigits, 0);
  dim.targetTable.assign(fromShards * dim.newDigits, 0);
  SmallVector<const MovingAtom *, 8> newAtoms;
  for (AtomId id : toAtoms)
    if (moving(id).newStride)
      newAtoms.push_back(&moving(id));
  for (int64_t shard = 0; shard * dim.toWidth < dim.extent; ++shard) {
    int64_t newDigits = 0;
    for (const MovingAtom *atom : newAtoms)
      newDigits += shard / atom->toStride % atom->size * atom->newStride;
    int64_t end = std::min((shard + 1) * dim.toWidth, dim.extent);
    for (int64_t source = shard * dim.toWidth / dim.fromWidth; source * dim.fromWidth < end; ++source) {
      dim.coveredTable[source * dim.newDigits + newDigits] += dim.overlap(source, shard);
      ++dim.targetTable[source * dim.newDigits + newDigits];
    }
  }
}

bool Exchange::advance() {
  for (auto [digit, atom] : zip(digits, atoms)) {
    int64_t step = digit + 1 < atom.size ? 1 : -digit;
    digit += step;
    if (atom.fromDim >= 0)
      fromShard[atom.fromDim] += step * atom.fromStride;
    if (atom.toDim >= 0) {
      toShard[atom.toDim] += step * atom.toStride;
      newDigit[atom.toDim] += step * atom.newStride;
    }
    if (step == 1)
      return true;
  }
  return false;
}

int64_t Exchange::sentByCurrent() const {
  int64_t sent = copies * evenCovered, kept = evenKept;
  for (auto [index, dim] : enumerate(dims)) {
    sent *= dim.covered(fromShard[index], newDigit[index]);
    kept *= dim.overlap(fromShard[index], toShard[index]);
  }
  return sent - kept;
}

int64_t Exchange::largestSender() {
  int64_t bound = copies * evenCovered;
  for (UnevenDim &dim : dims)
    bound *= dim.mostCovered();
  int64_t most = 0;
  do
    most = std::max(most, sentByCurrent());
  while (most < bound && advance());
  return most;
}

int64_t Exchange::peersOfCurrent() const {
  int64_t targets = copies * evenTargets, sources = evenSources, own = 1;
  for (auto [index, dim] : enumerate(dims)) {
    targets *= dim.targets(fromShard[index], newDigit[index]);
    sources *= dim.sources(toShard[index]);
    own *= dim.overlap(fromShard[index], toShard[index]) > 0 ? 1 : 0;
  }
  return std::max(targets, sources) - own;
}

int64_t Exchange::mostPeers() {
  int64_t most = 0;
  do
    most = std::max(most, peersOfCurrent());
  while (advance());
  return most;
}

} // namespace

int64_t exchangeBytes(const AtomMesh &mesh, ArrayRef<int64_t> shape, int64_t elementBytes, const State &from,
                      const State &to) {
  if (from.dims == to.dims || is_contained(shape, 0))
    return 0;
  return clampCost(__int128(Exchange(mesh, shape, from, to).largestSender()) * elementBytes);
}

int64_t exchangePeers(const AtomMesh &mesh, ArrayRef<int64_t> shape, const State &from, const State &to) {
  return from.dims == to.dims || is_contained(shape, 0) ? 0 : Exchange(mesh, shape, from, to).mostPeers();
}

} // namespace cleave::spmd
