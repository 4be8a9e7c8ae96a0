//===- CostModel.cpp - what everything costs ------------------------------===//
//
// A group is brought into levels, one per axis, the fastest first; the formulas of the header then are sums over the
// levels. Equal links give the same in every order.
//
//===----------------------------------------------------------------------===//
#include "cleave/Sharding/CostModel.h"
#include "llvm/ADT/STLExtras.h"

using namespace cleave::spmd;
using namespace llvm;

CostModel CostModel::create(Optimize optimize) {
  CostModel model;
  if (optimize == Optimize::Balanced)
    return model;
  constexpr double tieBreak = 1.0 / 1024;
  model.perFlop *= tieBreak;
  model.perRepeatedFlop *= tieBreak;
  model.perExtraWrite *= tieBreak;
  model.perMovedByte = 0;
  model.escapeSurcharge = model.tornSurcharge = model.parameterSurcharge = 0;
  return model;
}

bool CostModel::hasLatency() const {
  return perCollective > 0 || anyLink.latency > 0 ||
         any_of(links, [](const LinkCost &link) { return link.latency > 0; });
}

int64_t CostModel::unitsPerToldByte() const {
  int64_t perByte = links.empty() ? anyLink.perByte : links.front().perByte;
  for (const LinkCost &link : links)
    perByte = std::min(perByte, link.perByte);
  return std::max<int64_t>(perByte, 1);
}

namespace {
/// The part of a group that differs along one axis.
struct Level {
  unsigned axis;
  const LinkCost *link;
  int64_t ranks = 1;
};
} // namespace

/// The fastest first; of equally fast ones that of the lower axis.
static SmallVector<Level, 4> levelsOf(const AtomMesh &mesh, const CostModel &model, ArrayRef<AtomId> atoms) {
  SmallVector<Level, 4> levels;
  for (unsigned axis = 0; axis < mesh.numAxes(); ++axis) {
    Level level{axis, &model.link(axis)};
    for (AtomId atom : atoms)
      if (mesh.axisOf(atom) == axis)
        level.ranks *= mesh.size(atom);
    if (level.ranks > 1)
      levels.push_back(level);
  }
  auto key = [](const Level &level) { return std::tuple(level.link->perByte, level.link->latency, level.axis); };
  llvm::sort(levels, [&](const Level &lhs, const Level &rhs) { return key(lhs) < key(rhs); });
  return levels;
}

GroupCost cleave::spmd::ringCost(const AtomMesh &mesh, const CostModel &model, ArrayRef<AtomId> atoms) {
  GroupCost cost;
  for (const Level &level : levelsOf(mesh, model, atoms)) {
    cost.perPiece = cost.perPiece * level.ranks + __int128(level.ranks - 1) * level.link->perByte;
    cost.fixed += (level.ranks - 1) * level.link->latency;
  }
  return cost;
}

GroupCost cleave::spmd::pairwiseCost(const AtomMesh &mesh, const CostModel &model, ArrayRef<AtomId> atoms) {
  GroupCost cost;
  __int128 nearer = 1; // Ranks that are reached over faster links, and the rank itself.
  for (const Level &level : levelsOf(mesh, model, atoms)) {
    cost.perPiece += nearer * (level.ranks - 1) * level.link->perByte;
    cost.fixed = std::max(cost.fixed, level.link->latency);
    nearer *= level.ranks;
  }
  return cost;
}

GroupCost cleave::spmd::directCost(const AtomMesh &mesh, const CostModel &model, ArrayRef<AtomId> atoms) {
  GroupCost cost;
  for (const Level &level : levelsOf(mesh, model, atoms)) {
    cost.perPiece = std::max<__int128>(cost.perPiece, level.link->perByte);
    cost.fixed = std::max(cost.fixed, level.link->latency);
  }
  return cost;
}
