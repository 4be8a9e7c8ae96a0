//===- MeshCells.h - the meshes of so many devices --------------*- C++ -*-===//
#ifndef CLEAVE_SEARCH_MESHCELLS_H
#define CLEAVE_SEARCH_MESHCELLS_H

#include "cleave/Plan/Plan.h"
#include "llvm/Support/Error.h"

namespace cleave::spmd {

/// A mesh to look at.
struct MeshCell {
  /// Of its axes, major to minor.
  std::vector<int64_t> sizes;
  /// Axes with which another kind of links begins.
  std::vector<unsigned> borders;
};

/// Meshes with so many ranks: no axis goes over the end of a level of the cluster, so that each has one kind of link, and there are at most
/// `mostAxes`, or as many as levels. The first has one axis for each level: in that passes over parts of an axis find mixtures by themselves.
/// Errors: devices do not fill the groups of a level, or the cluster has fewer.
llvm::Expected<std::vector<MeshCell>> listMeshCells(const Cluster &cluster, int64_t devices, int64_t mostAxes);

/// Axes of these sizes, with names for as long as they have no better ones (`nameAxes`).
std::vector<MeshAxis> makeAxes(llvm::ArrayRef<int64_t> sizes);

} // namespace cleave::spmd

#endif // CLEAVE_SEARCH_MESHCELLS_H
