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
  model.fallbackSurcharge = model.tornSurcharge = model.parameterSurcharge = 0;
  return model;
}

bool CostModel::hasLatency() const {
  auto isLate = [](const LinkCost &link) { return link.latency > 0; };
  return perCollective > 0 || isLate(anyLink) || any_of(links, isLate) ||
         any_of(nearLinks, [&](ArrayRef<NearLink> axis) {
           return any_of(axis, [&](const NearLink &near) { return isLate(near.link); });
         });
}

bool CostModel::hasSeveralLinks() const {
  auto differs = [&](const LinkCost &link) { return link.perByte != anyLink.perByte; };
  return any_of(links, differs) || any_of(nearLinks, [&](ArrayRef<NearLink> axis) {
           return any_of(axis, [&](const NearLink &near) { return differs(near.link); });
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
  auto add = [&](unsigned axis, const LinkCost &link, int64_t ranks) {
    auto *found = find_if(levels, [&](const Level &level) { return level.axis == axis && *level.link == link; });
    if (found == levels.end())
      found = &levels.emplace_back(Level{axis, &link});
    found->ranks *= ranks;
  };
  SmallVector<AtomId, 8> sorted(atoms);
  if (!llvm::is_sorted(sorted)) // They mostly are.
    llvm::sort(sorted);
  // Atoms side by side are one run of so many positions, which near blocks take apart wherever they lie: nodes of 8 among 24 ranks, whose
  // atoms are 2, 2, 2 and 3.
  for (size_t first = 0, end = 0; first < sorted.size(); first = end) {
    unsigned axis = mesh.axisOf(sorted[first]);
    int64_t ranks = 1;
    for (; end < sorted.size() && sorted[end] == sorted[first] + (end - first) && mesh.axisOf(sorted[end]) == axis;
         ++end)
      ranks *= mesh.size(sorted[end]);
    int64_t span = mesh.axisSize(axis) / mesh.preSize(sorted[first]), reached = span / ranks;
    for (const NearLink &near : model.near(axis)) {
      int64_t upTo = near.block % span == 0 ? span : near.block;
      if (upTo > reached && upTo % reached == 0 && span % upTo == 0) {
        add(axis, near.link, upTo / reached);
        reached = upTo;
      }
    }
    if (reached < span)
      add(axis, model.link(axis), span / reached);
  }
  auto key = [](const Level &level) { return std::tuple(level.link->perByte, level.link->latency, level.axis); };
  llvm::sort(levels, [&](const Level &lhs, const Level &rhs) { return key(lhs) < key(rhs); });
  return levels;
}

GroupCost cleave::spmd::ringCost(const AtomMesh &mesh, const CostModel &model, ArrayRef<AtomId> atoms) {
  GroupCost cost;
  for (const Level &level : levelsOf(mesh, model, atoms)) {
    cost.perPiece = cost.perPiece * level.ranks + __int128(level.ranks - 1) * level.link->perByte;
    cost.fixed = cost.fixed * level.ranks + __int128(level.ranks - 1) * level.link->latency;
  }
  return cost;
}

/// Of so many messages one after the other, as many over the latest links as ranks are behind these.
static __int128 sumLatencies(ArrayRef<Level> levels, int64_t peers) {
  SmallVector<std::pair<int64_t, __int128>, 4> reached; // latency, ranks
  __int128 nearer = 1; // Ranks that are reached over faster links, and the rank itself.
  for (const Level &level : levels) {
    reached.push_back({level.link->latency, nearer * (level.ranks - 1)});
    nearer *= level.ranks;
  }
  llvm::sort(reached, std::greater<>());
  __int128 sum = 0, left = peers;
  for (auto [latency, ranks] : reached) {
    __int128 count = std::min(left, ranks);
    sum += count * latency;
    left -= count;
  }
  return sum;
}

GroupCost cleave::spmd::pairwiseCost(const AtomMesh &mesh, const CostModel &model, ArrayRef<AtomId> atoms) {
  GroupCost cost;
  __int128 nearer = 1;
  SmallVector<Level, 4> levels = levelsOf(mesh, model, atoms);
  for (const Level &level : levels) {
    cost.perPiece += nearer * (level.ranks - 1) * level.link->perByte;
    nearer *= level.ranks;
  }
  cost.fixed = sumLatencies(levels, mesh.product(atoms) - 1);
  return cost;
}

GroupCost cleave::spmd::directCost(const AtomMesh &mesh, const CostModel &model, ArrayRef<AtomId> atoms,
                                   int64_t peers) {
  GroupCost cost;
  SmallVector<Level, 4> levels = levelsOf(mesh, model, atoms);
  for (const Level &level : levels)
    cost.perPiece = std::max<__int128>(cost.perPiece, level.link->perByte);
  cost.fixed = sumLatencies(levels, peers);
  return cost;
}

// For those who know what is sent, but not of which pieces: reports, and stages of pipelines.
// A ring sends n - 1 pieces of `perPiece`, over any group: what a byte costs follows from both.
double cleave::spmd::collectiveUnits(const AtomMesh &mesh, const CostModel &model, Traffic traffic,
                                     ArrayRef<AtomId> atoms, int64_t bytes, int64_t peers) {
  int64_t ranks = mesh.product(atoms);
  if (bytes == 0 || ranks == 1)
    return 0;
  GroupCost group = traffic == Traffic::Pairwise ? pairwiseCost(mesh, model, atoms)
                    : traffic == Traffic::Direct ? directCost(mesh, model, atoms, peers)
                                                 : ringCost(mesh, model, atoms);
  double pieces = traffic == Traffic::Direct ? 1 : static_cast<double>(ranks - 1);
  double turns = traffic == Traffic::TwoRings ? 2 : 1;
  return static_cast<double>(bytes) * static_cast<double>(group.perPiece) / pieces +
         turns * static_cast<double>(group.fixed) + static_cast<double>(model.perCollective);
}
