//===- CostModel.cpp - what everything costs ------------------------------===//
//
// A group is brought into levels, one per kind of link of an axis, the fastest first; the formulas of the header then are
// sums over the levels. Equal links give the same in every order.
//
//===----------------------------------------------------------------------===//
#include "cleave/Sharding/CostModel.h"
#include "cleave/Sharding/Cluster.h"
#include "llvm/ADT/STLExtras.h"

using namespace cleave::spmd;
using namespace llvm;

CostModel CostModel::create(Optimize optimize) {
  CostModel model;
  if (optimize == Optimize::Balanced)
    return model;
  if (optimize == Optimize::Time)
    return makeCostModel(Cluster(), {}, {}, optimize);
  constexpr double tieBreak = 1.0 / 1024;
  model.perFlop *= tieBreak;
  model.perRepeatedFlop = kCostUnitsPerByte / 4.0 * tieBreak;
  model.perExtraWrite *= tieBreak;
  model.perMovedByte = 0;
  model.escapeSurcharge = model.tornSurcharge = model.parameterSurcharge = 0;
  return model;
}

bool CostModel::hasLatency() const {
  auto isLate = [](const LinkCost &link) { return link.latency > 0; };
  return perCollective > 0 || isLate(anyLink) || any_of(links, isLate) ||
         any_of(nearLinks, [&](ArrayRef<NearLink> axis) {
           return any_of(axis, [&](const NearLink &near) { return isLate(near.link); });
         });
}

int64_t CostModel::unitsPerToldByte() const {
  int64_t perByte = links.empty() ? anyLink.perByte : links.front().perByte;
  for (const LinkCost &link : links)
    perByte = std::min(perByte, link.perByte);
  for (ArrayRef<NearLink> axis : nearLinks)
    for (const NearLink &near : axis)
      perByte = std::min(perByte, near.link.perByte);
  return std::max<int64_t>(perByte, 1);
}

/// Positions along the axis that differ in the atom only lie in one block of the nearest kind that holds all of the atom.
const LinkCost &CostModel::link(const AtomMesh &mesh, AtomId atom) const {
  unsigned axis = mesh.axisOf(atom);
  if (axis < nearLinks.size()) {
    int64_t spanned = mesh.axisSize(axis) / mesh.preSize(atom);
    for (const NearLink &near : nearLinks[axis])
      if (near.block % spanned == 0)
        return near.link;
  }
  return link(axis);
}

namespace {
/// The part of a group that differs along one axis, over one kind of link.
struct Level {
  unsigned axis;
  const LinkCost *link;
  int64_t ranks = 1;
};
} // namespace

/// The fastest first; of equally fast ones that of the lower axis.
static SmallVector<Level, 4> levelsOf(const AtomMesh &mesh, const CostModel &model, ArrayRef<AtomId> atoms) {
  SmallVector<Level, 4> levels;
  for (AtomId atom : atoms) {
    const LinkCost &link = model.link(mesh, atom);
    unsigned axis = mesh.axisOf(atom);
    auto *found = find_if(levels, [&](const Level &level) { return level.axis == axis && *level.link == link; });
    if (found == levels.end())
      found = &levels.emplace_back(Level{axis, &link});
    found->ranks *= mesh.size(atom);
  }
  auto key = [](const Level &level) { return std::tuple(level.link->perByte, level.link->latency, level.axis); };
  llvm::sort(levels, [&](const Level &lhs, const Level &rhs) { return key(lhs) < key(rhs); });
  return levels;
}

GroupCost cleave::spmd::ringCost(const AtomMesh &mesh, const CostModel &model, ArrayRef<AtomId> atoms) {
  GroupCost cost;
  for (const Level &level : levelsOf(mesh, model, atoms)) {
    cost.perPiece = cost.perPiece * level.ranks + __int128(level.ranks - 1) * level.link->perByte;
    cost.fixed = cost.fixed * level.ranks + (level.ranks - 1) * level.link->latency;
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

// For those who know what is sent, but not of which pieces: reports, and stages of pipelines.
// A ring sends n - 1 pieces of `perPiece`, over any group: what a byte costs follows from both.
double cleave::spmd::collectiveUnits(const AtomMesh &mesh, const CostModel &model, Traffic traffic,
                                     ArrayRef<AtomId> atoms, int64_t bytes) {
  int64_t ranks = mesh.product(atoms);
  if (bytes == 0 || ranks == 1)
    return 0;
  GroupCost group = traffic == Traffic::Pairwise ? pairwiseCost(mesh, model, atoms)
                    : traffic == Traffic::Direct ? directCost(mesh, model, atoms)
                                                 : ringCost(mesh, model, atoms);
  double pieces = traffic == Traffic::Direct ? 1 : static_cast<double>(ranks - 1);
  double turns = traffic == Traffic::TwoRings ? 2 : 1;
  return static_cast<double>(bytes) * static_cast<double>(group.perPiece) / pieces +
         turns * static_cast<double>(group.fixed) + static_cast<double>(model.perCollective);
}
