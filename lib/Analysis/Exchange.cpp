//===- Exchange.cpp - what a point-to-point exchange sends ----------------===//
//
// Rank h holds the box of its coordinates under `from` and sends to every rank g that shares its coordinates outside
// the atoms of `from` what g's box under `to` has of it. The atoms of `to` belong to one dim each, so that the sum over
// all g factors:
//
//   sent(h) = copies * prod over dims d of covered[d](h)  -  prod over dims d of own[d](h)
//
// where covered[d] adds up, over the digits that may differ between h and g, what their intervals of dim d share with
// the interval of h; copies counts the atoms that leave the dims altogether; own is what h keeps for itself. Dims that
// do not change are a common factor. What is left to enumerate are the coordinates of the atoms in dims that change,
// and that stops at the first rank which keeps nothing and sends as much as any can.
//
//===----------------------------------------------------------------------===//
#include "cleave/Analysis/ReshardPlanner.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace cleave::spmd {
namespace {

// One dim that changes. Shard numbers are row-major over the dim's atoms.
struct ChangingDim {
  int64_t extent, fromWidth, toWidth;
  /// Number of shards under `from`, and of digit combinations of the atoms that only `to` has.
  int64_t fromShards, newDigits;
  /// covered[shard * newDigits + digits].
  SmallVector<int64_t, 16> covered;

  int64_t overlap(int64_t fromShard, int64_t toShard) const {
    int64_t low = std::max(fromShard * fromWidth, toShard * toWidth);
    int64_t high = std::min({(fromShard + 1) * fromWidth, (toShard + 1) * toWidth, extent});
    return std::max<int64_t>(0, high - low);
  }
};

// Where one atom counts: what a step of its digit adds to the numbers of the dims it is in.
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

private:
  MovingAtom &moving(AtomId atom);
  void addStrides(const AtomList &fromAtoms, const AtomList &toAtoms, int dim);
  void computeCovered(ChangingDim &dim, const AtomList &toAtoms, const State &from);
  /// Moves on to the next rank; false after the last one.
  bool advance();
  int64_t sentByCurrent() const;

  const AtomMesh &mesh;
  SmallVector<ChangingDim, 4> dims;
  SmallVector<MovingAtom, 8> atoms;
  SmallVector<int, 16> atomIndex;
  int64_t unchanged = 1, copies = 1;
  // The rank under consideration: digits of its atoms, and its shard numbers per dim.
  SmallVector<int64_t, 8> digits;
  SmallVector<int64_t, 4> fromShard, toShard, newDigit;
};

Exchange::Exchange(const AtomMesh &mesh, ArrayRef<int64_t> shape, const State &from, const State &to) : mesh(mesh) {
  atomIndex.assign(mesh.numAtoms(), -1);
  for (auto [extent, fromAtoms, toAtoms] : zip_equal(shape, from.dims, to.dims)) {
    if (fromAtoms == toAtoms) {
      unchanged *= shardExtent(mesh, extent, fromAtoms);
      continue;
    }
    addStrides(fromAtoms, toAtoms, dims.size());
    dims.push_back({extent,
                    shardExtent(mesh, extent, fromAtoms),
                    shardExtent(mesh, extent, toAtoms),
                    mesh.product(fromAtoms),
                    1,
                    {}});
  }
  for (MovingAtom &atom : atoms)
    if (atom.toDim < 0)
      copies *= atom.size;
  unsigned changing = 0;
  for (auto [fromAtoms, toAtoms] : zip_equal(from.dims, to.dims))
    if (fromAtoms != toAtoms)
      computeCovered(dims[changing++], toAtoms, from);
  digits.assign(atoms.size(), 0);
  fromShard.assign(dims.size(), 0);
  toShard.assign(dims.size(), 0);
  newDigit.assign(dims.size(), 0);
}

MovingAtom &Exchange::moving(AtomId atom) {
  if (atomIndex[atom] < 0) {
    atomIndex[atom] = atoms.size();
    atoms.emplace_back().size = mesh.size(atom);
  }
  return atoms[atomIndex[atom]];
}

void Exchange::addStrides(const AtomList &fromAtoms, const AtomList &toAtoms, int dim) {
  int64_t stride = 1;
  for (AtomId id : reverse(fromAtoms)) {
    MovingAtom &atom = moving(id);
    atom.fromDim = dim;
    atom.fromStride = stride;
    stride *= atom.size;
  }
  stride = 1;
  for (AtomId id : reverse(toAtoms)) {
    MovingAtom &atom = moving(id);
    atom.toDim = dim;
    atom.toStride = stride;
    stride *= atom.size;
  }
}

void Exchange::computeCovered(ChangingDim &dim, const AtomList &toAtoms, const State &from) {
  for (AtomId id : reverse(toAtoms)) {
    MovingAtom &atom = moving(id);
    if (atom.fromDim >= 0)
      continue;
    atom.newStride = dim.newDigits;
    dim.newDigits *= atom.size;
  }
  dim.covered.assign(dim.fromShards * dim.newDigits, 0);
  for (int64_t shard = 0, end = mesh.product(toAtoms); shard < end; ++shard) {
    int64_t newDigits = 0;
    for (AtomId id : toAtoms) {
      const MovingAtom &atom = moving(id);
      newDigits += shard / atom.toStride % atom.size * atom.newStride;
    }
    int64_t first = shard * dim.toWidth / dim.fromWidth;
    for (int64_t source = first; source < dim.fromShards && source * dim.fromWidth < (shard + 1) * dim.toWidth;
         ++source)
      dim.covered[source * dim.newDigits + newDigits] += dim.overlap(source, shard);
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
  int64_t sent = copies, kept = 1;
  for (auto [index, dim] : enumerate(dims)) {
    sent *= dim.covered[fromShard[index] * dim.newDigits + newDigit[index]];
    kept *= dim.overlap(fromShard[index], toShard[index]);
  }
  return sent - kept;
}

int64_t Exchange::largestSender() {
  int64_t bound = copies;
  for (ChangingDim &dim : dims)
    bound *= *max_element(dim.covered);
  int64_t most = 0;
  do
    most = std::max(most, sentByCurrent());
  while (most < bound && advance());
  return most * unchanged;
}

} // namespace

int64_t exchangeCost(const AtomMesh &mesh, ArrayRef<int64_t> shape, int64_t elementBytes, const State &from,
                     const State &to) {
  if (from.dims == to.dims || is_contained(shape, 0))
    return 0;
  return Exchange(mesh, shape, from, to).largestSender() * elementBytes * kCostUnitsPerByte;
}

} // namespace cleave::spmd
