//===- Mesh.h - a mesh split into atoms -------------------------*- C++ -*-===//
//
// Every mesh axis is split into *atoms*, its prime factors, major first:
//
//   axis      x = 4     y = 6     z = 1
//   atoms     2  2      2  3      (none)
//   id        0  1      2  3
//
// A whole axis or a sub-axis is then a run of atoms, and everything that decides about shardings works on lists of
// atoms. Where a plan names a sub-axis that the ascending primes would not show (the digit (3)2 of an axis of 6), the
// mesh is built with that sub-axis as an annotation, and the axis is split as 3, 2 instead.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SHARDING_MESH_H
#define CLEAVE_SHARDING_MESH_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <optional>
#include <string>

namespace cleave::spmd {

/// Number of an atom: dense, axis by axis in mesh order, major to minor inside an axis.
using AtomId = uint8_t;
/// Atoms of one dim, major to minor, or any other short list of atoms.
using AtomList = llvm::SmallVector<AtomId, 2>;

/// The digit of `size` of mesh axis number `axis` whose more-major digits have product `preSize`. A whole axis has
/// `preSize` 1 and the axis size as `size`.
struct SubAxis {
  unsigned axis = 0;
  int64_t preSize = 1;
  int64_t size = 1;

  bool operator==(const SubAxis &other) const {
    return axis == other.axis && preSize == other.preSize && size == other.size;
  }
};

/// A mesh by its axis sizes, split into atoms. At most 255 atoms, which is far beyond any mesh of 64-bit size.
class AtomMesh {
public:
  /// The mesh without annotations. Precondition: all sizes >= 1.
  explicit AtomMesh(llvm::ArrayRef<int64_t> axisSizes);

  /// The mesh with every sub-axis of `annotations` falling on atom borders. An error if a size is below 1, an annotation does not
  /// divide its axis, or two annotations of an axis exclude each other (the digits (1)2 and (1)3 of an axis of 6); it calls an axis
  /// by its entry in `names`, or else its number.
  static llvm::Expected<AtomMesh> create(llvm::ArrayRef<int64_t> axisSizes, llvm::ArrayRef<SubAxis> annotations,
                                         llvm::ArrayRef<llvm::StringRef> names = {});

  unsigned numAxes() const { return axisSizes.size(); }
  int64_t axisSize(unsigned axis) const { return axisSizes[axis]; }
  /// Product of all axis sizes.
  int64_t numRanks() const { return ranks; }

  unsigned numAtoms() const { return sizes.size(); }
  int64_t size(AtomId atom) const { return sizes[atom]; }
  unsigned axisOf(AtomId atom) const { return axes[atom]; }
  /// Product of the more-major atoms of the same axis.
  int64_t preSize(AtomId atom) const { return preSizes[atom]; }
  /// First atom of `axis`; its atoms are [firstAtom, firstAtom + numAtoms(axis)).
  AtomId firstAtom(unsigned axis) const { return first[axis]; }
  unsigned numAtoms(unsigned axis) const { return first[axis + 1] - first[axis]; }
  /// Atoms of `axis`, major to minor.
  AtomList atomsOf(unsigned axis) const;
  /// Product of the sizes of `atoms`; 1 for none.
  int64_t product(llvm::ArrayRef<AtomId> atoms) const;
  /// Digit of `atom` in the coordinates of `rank` (rank = row-major index over the axes).
  int64_t coordinate(int64_t rank, AtomId atom) const { return rank / strides[atom] % sizes[atom]; }
  /// What a step of one in the digit of `atom` adds to the rank.
  int64_t stride(AtomId atom) const { return strides[atom]; }

  /// Atoms of a (sub-)axis, major to minor; nothing if it does not fall on atom borders.
  std::optional<AtomList> atomsOf(const SubAxis &subAxis) const;
  /// The shortest list of (sub-)axes that means `atoms`: neighbors of one axis in ascending order merge.
  llvm::SmallVector<SubAxis, 2> subAxesOf(llvm::ArrayRef<AtomId> atoms) const;

private:
  AtomMesh() = default;
  void addAxis(int64_t size, llvm::ArrayRef<int64_t> borders);
  void computeStrides();

  llvm::SmallVector<int64_t, 4> axisSizes;
  llvm::SmallVector<int64_t, 8> sizes, preSizes, strides;
  llvm::SmallVector<unsigned, 8> axes;
  /// First atom of each axis, and the number of atoms at the end.
  llvm::SmallVector<AtomId, 5> first;
  int64_t ranks = 1;
};

} // namespace cleave::spmd

#endif // CLEAVE_SHARDING_MESH_H
