//===- MeshCells.cpp - the meshes of so many devices ----------------------===//
//
// Devices fill the groups of each level, the nearest first; what is used of a level is then written as a product in every way.
//
//===----------------------------------------------------------------------===//
#include "cleave/Search/MeshCells.h"
#include "cleave/Support/Status.h"
#include "llvm/ADT/STLExtras.h"

using namespace cleave::spmd;
using namespace llvm;

/// Devices of each level that are used, the farthest first.
static Expected<std::vector<int64_t>> fillLevels(const Cluster &cluster, int64_t devices) {
  // First: of what the machine does not have, no number near it would do.
  if (int64_t all = cluster.getNumDevices(); all != 0 && devices > all)
    return cleave::makeError("'{0}' has {1} device{2}, {3} are asked for", cluster.name, all, all == 1 ? "" : "s",
                             devices);
  std::vector<int64_t> sizes;
  int64_t left = devices, group = 1;
  for (const ClusterLevel &level : cluster.levels) {
    bool isLast = level.devices == 0 || left <= level.devices;
    if (!isLast && left % level.devices != 0) {
      int64_t nodes = group * level.devices;
      return cleave::makeError("{0} devices do not fill nodes of {1} of '{2}': {3} or {4} would", devices, nodes,
                               cluster.name, devices / nodes * nodes, (devices / nodes + 1) * nodes);
    }
    sizes.insert(sizes.begin(), isLast ? left : level.devices);
    left = isLast ? 1 : left / level.devices;
    group *= level.devices;
    if (isLast)
      break;
  }
  return sizes;
}

/// All ways to write `size` as a product of up to `most` factors above 1, in order.
static void factorize(int64_t size, size_t most, std::vector<int64_t> &front, std::vector<std::vector<int64_t>> &all) {
  if (size == 1 || most == 0) {
    if (size == 1)
      all.push_back(front);
    return;
  }
  for (int64_t factor = size; factor > 1; --factor) {
    if (size % factor != 0)
      continue;
    front.push_back(factor);
    factorize(size / factor, most - 1, front, all);
    front.pop_back();
  }
}

Expected<std::vector<MeshCell>> cleave::spmd::listMeshCells(const Cluster &cluster, int64_t devices, int64_t mostAxes) {
  Expected<std::vector<int64_t>> levels = fillLevels(cluster, devices);
  if (!levels)
    return levels.takeError();
  std::vector<MeshCell> cells{{}};
  for (int64_t level : *levels) {
    std::vector<std::vector<int64_t>> ways;
    std::vector<int64_t> front;
    factorize(level, mostAxes, front, ways);
    std::vector<MeshCell> longer;
    for (const MeshCell &cell : cells)
      for (const std::vector<int64_t> &way : ways) {
        MeshCell &made = longer.emplace_back(cell);
        if (!made.sizes.empty() && !way.empty())
          made.borders.push_back(made.sizes.size());
        made.sizes.insert(made.sizes.end(), way.begin(), way.end());
      }
    cells = std::move(longer);
  }
  erase_if(cells, [&](const MeshCell &cell) {
    return cell.sizes.size() > std::max(static_cast<size_t>(mostAxes), levels->size());
  });
  // One device has an axis of one rank.
  for (MeshCell &cell : cells)
    if (cell.sizes.empty())
      cell.sizes.push_back(1);
  // Few axes first, and of as many, large ones first.
  llvm::sort(cells, [](const MeshCell &lhs, const MeshCell &rhs) {
    return lhs.sizes.size() != rhs.sizes.size() ? lhs.sizes.size() < rhs.sizes.size() : lhs.sizes > rhs.sizes;
  });
  return cells;
}

std::vector<MeshAxis> cleave::spmd::makeAxes(ArrayRef<int64_t> sizes) {
  std::vector<MeshAxis> axes;
  for (auto [index, size] : llvm::enumerate(sizes))
    axes.push_back({"axis" + std::to_string(index), size, {}});
  return axes;
}
