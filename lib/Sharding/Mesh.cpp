//===- Mesh.cpp - a mesh split into atoms ---------------------------------===//
//
// An axis of size n is first split at its *borders*, the products that annotated sub-axes begin and end at. Sorted, each
// border must divide the next one, or no split of the axis shows them all:
//
//   axis of 12, annotation (3)2:    1 . . 3 . 6 . 12    pieces 3, 2, 2
//
// Each piece is then split into its primes, ascending.
//
//===----------------------------------------------------------------------===//
#include "cleave/Sharding/Mesh.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/Twine.h"

#include "cleave/Support/Status.h"
#include <cassert>

using namespace llvm;

namespace cleave::spmd {

AtomMesh::AtomMesh(ArrayRef<int64_t> axisSizes) {
  assert(all_of(axisSizes, [](int64_t size) { return size >= 1; }) && "an axis without devices");
  for (int64_t size : axisSizes)
    addAxis(size, {1, size});
  computeStrides();
}

// Sets `error` where the caller wants it; returns what a failing factory returns.
static llvm::Error fail(const Twine &message) { return makeError("{0}", message.str()); }

static std::string digitText(int64_t preSize, int64_t size) {
  return "(" + std::to_string(preSize) + ")" + std::to_string(size);
}

/// Collects the borders of each axis, and refuses those that no one way to split it has.
Expected<AtomMesh> AtomMesh::create(ArrayRef<int64_t> axisSizes, ArrayRef<SubAxis> annotations,
                                    ArrayRef<StringRef> names) {
  auto describe = [&](unsigned axis) {
    return "mesh axis " + (axis < names.size() ? "\"" + names[axis].str() + "\"" : std::to_string(axis));
  };
  SmallVector<SmallVector<int64_t, 4>, 4> borders;
  for (auto [axis, size] : enumerate(axisSizes)) {
    if (size < 1)
      return fail(describe(axis) + " has size " + Twine(size) + ", expected at least 1");
    borders.push_back({1, size});
  }
  for (const SubAxis &annotation : annotations) {
    if (annotation.axis >= axisSizes.size())
      return fail("sub-axis of " + describe(annotation.axis) + ", but the mesh has " + Twine(axisSizes.size()));
    int64_t axisSize = axisSizes[annotation.axis];
    if (annotation.preSize < 1 || annotation.size < 1 || axisSize % annotation.preSize ||
        axisSize / annotation.preSize % annotation.size)
      return fail("sub-axis " + digitText(annotation.preSize, annotation.size) + " does not divide " +
                  describe(annotation.axis) + " of size " + Twine(axisSize));
    borders[annotation.axis].append({annotation.preSize, annotation.preSize * annotation.size});
  }
  AtomMesh mesh;
  for (auto [axis, list] : enumerate(borders)) {
    sort(list);
    list.erase(std::unique(list.begin(), list.end()), list.end());
    for (size_t i = 1; i < list.size(); ++i)
      if (list[i] % list[i - 1])
        return fail("sub-axes of " + describe(axis) + " of size " + Twine(axisSizes[axis]) + " need borders at " +
                    Twine(list[i - 1]) + " and " + Twine(list[i]) + ", which exclude each other");
    mesh.addAxis(axisSizes[axis], list);
  }
  mesh.computeStrides();
  return mesh;
}

// Appends the primes of `piece`, ascending, as atoms of the axis under construction.
static void splitIntoPrimes(int64_t piece, SmallVectorImpl<int64_t> &atoms) {
  for (int64_t prime = 2; piece > 1; ++prime) {
    if (prime * prime > piece)
      prime = piece;
    for (; piece % prime == 0; piece /= prime)
      atoms.push_back(prime);
  }
}

/// Atoms are numbered through all axes; `first` says where each axis begins, and `preSizes` what lies before an atom in
/// it.
void AtomMesh::addAxis(int64_t size, ArrayRef<int64_t> borders) {
  unsigned axis = axisSizes.size();
  axisSizes.push_back(size);
  if (first.empty())
    first.push_back(0);
  for (auto [low, high] : zip(borders.drop_back(), borders.drop_front()))
    splitIntoPrimes(high / low, sizes);
  for (int64_t preSize = 1; preSizes.size() < sizes.size(); preSize *= sizes[preSizes.size() - 1]) {
    preSizes.push_back(preSize);
    axes.push_back(axis);
  }
  first.push_back(sizes.size());
}

/// The last atom is the minor one: neighbors along it are neighbors in rank.
void AtomMesh::computeStrides() {
  if (first.empty())
    first.push_back(0);
  strides.assign(sizes.size(), 1);
  ranks = 1;
  for (unsigned atom = sizes.size(); atom-- > 0; ranks *= sizes[atom])
    strides[atom] = ranks;
}

AtomList AtomMesh::atomsOf(unsigned axis) const {
  AtomList atoms;
  append_range(atoms, seq<AtomId>(first[axis], first[axis + 1]));
  return atoms;
}

int64_t AtomMesh::product(ArrayRef<AtomId> atoms) const {
  int64_t result = 1;
  for (AtomId atom : atoms)
    result *= sizes[atom];
  return result;
}

std::optional<AtomList> AtomMesh::atomsOf(const SubAxis &subAxis) const {
  if (subAxis.axis >= axisSizes.size())
    return std::nullopt;
  AtomList atoms;
  int64_t covered = 1;
  for (AtomId atom : seq<AtomId>(first[subAxis.axis], first[subAxis.axis + 1]))
    // Atoms from its beginning until it is covered: it must begin and end where atoms do.
    if (preSizes[atom] >= subAxis.preSize && covered < subAxis.size) {
      if (atoms.empty() && preSizes[atom] != subAxis.preSize)
        return std::nullopt;
      atoms.push_back(atom);
      covered *= sizes[atom];
    }
  if (covered != subAxis.size)
    return std::nullopt;
  return atoms;
}

/// Neighbors of one axis read as one digit, so that a whole axis in atoms is printed as that axis.
SmallVector<SubAxis, 2> AtomMesh::subAxesOf(ArrayRef<AtomId> atoms) const {
  SmallVector<SubAxis, 2> result;
  for (auto [position, atom] : enumerate(atoms)) {
    if (position && atoms[position - 1] + 1 == atom && axes[atom] == result.back().axis)
      result.back().size *= sizes[atom];
    else
      result.push_back({axes[atom], preSizes[atom], sizes[atom]});
  }
  return result;
}

} // namespace cleave::spmd
