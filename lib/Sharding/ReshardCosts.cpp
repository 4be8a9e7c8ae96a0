//===- ReshardCosts.cpp - what reshards cost, each planned once ------------===//
//
// Three tables, each asked where the one before has nothing:
//
//   numbers of a core and two states      what a search asks again and again
//   the same, less what stays as it is    [x, y] to [x] of 64 rows is as [y] to [] of 64 / x rows: atoms that begin a dim in both states, or
//                                         are partial in both, are never moved, and those that are in neither are not there at all
//   a plan (ReshardPlanner::listCosts)
//
// What is left is written with atoms by their order and the links that they are over, for more is asked of no atom: all decisions of a
// route go by order, size and what divides. So [x] to [] and [y] to [] are one, where x and y are parts of axes over equal links. Of atoms
// that stay it is written over which links they are: an exchange within a dim is priced by all that split it.
//
//===----------------------------------------------------------------------===//
#include "cleave/Sharding/ReshardPlanner.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/SmallString.h"

#include <cassert>
#include <numeric>

using namespace llvm;

namespace cleave::spmd {

/// The number of an equal one that came before, or the next.
ShapeId ReshardCosts::addShape(ArrayRef<int64_t> shape, int64_t elementBytes) {
  SmallVector<int64_t, 8> words(shape);
  words.push_back(elementBytes);
  ShapeId id = shapeIndex.find(hashWords<int64_t>(words), [&](ShapeId other) {
    return shapes[other].elementBytes == elementBytes && ArrayRef<int64_t>(shapes[other].extents) == shape;
  });
  if (id == shapes.size())
    shapes.push_back({SmallVector<int64_t, 4>(shape), elementBytes});
  return id;
}

/// Elements of a core have as many bytes as there are ranks, so that its all_reduces send whole bytes, too.
void ReshardCosts::findCore(ShapeId id) {
  int64_t ranks = planner.getMesh().numRanks();
  SmallVector<int64_t, 4> extents;
  __int128 times = shapes[id].elementBytes, bytes = ranks;
  for (int64_t extent : shapes[id].extents) {
    extents.push_back(std::gcd(extent, ranks));
    times *= extent / extents.back();
    bytes *= extents.back();
  }
  if (bytes >= kImpossibleCost || times >= kImpossibleCost)
    return;
  shapes[id].core = addShape(extents, ranks); // Of a deque, so that shapes stay where they are.
  shapes[id].scale = static_cast<int64_t>(times);
}

ShapeId ReshardCosts::internShape(ArrayRef<int64_t> shape, int64_t elementBytes) {
  size_t known = shapes.size();
  ShapeId id = addShape(shape, elementBytes);
  if (shapes.size() > known)
    findCore(id);
  return id;
}

//===----------------------------------------------------------------------===//
// What is equal of two reshards
//===----------------------------------------------------------------------===//

/// By atom a number of the link that it is over; of atoms over equal links and of one size it is the same. Where near blocks take an atom
/// apart it depends on its neighbors, and each has a number of its own.
static SmallVector<uint8_t, 16> numberLinks(const AtomMesh &mesh, const CostModel &model) {
  SmallVector<std::tuple<int64_t, int64_t, int64_t>, 8> kinds; // size, bytes, latency
  SmallVector<uint8_t, 16> numbers;
  for (AtomId atom = 0; atom < mesh.numAtoms(); ++atom) {
    unsigned axis = mesh.axisOf(atom);
    auto spanOf = [&](AtomId id) { return mesh.axisSize(axis) / mesh.preSize(id); };
    const LinkCost *link = &model.link(axis);
    bool isApart = false;
    for (const NearLink &near : reverse(model.near(axis))) {
      bool isBorder = near.block >= mesh.axisSize(axis)
                          ? near.block % mesh.axisSize(axis) == 0
                          : any_of(mesh.atomsOf(axis), [&](AtomId id) { return spanOf(id) == near.block; });
      isApart |= !isBorder;
      if (near.block >= spanOf(atom))
        link = &near.link;
    }
    std::tuple<int64_t, int64_t, int64_t> kind(mesh.size(atom), link->perByte, link->latency);
    if (isApart)
      kind = {-1 - int64_t(atom), 0, 0};
    auto *found = find(kinds, kind);
    numbers.push_back(found - kinds.begin());
    if (found == kinds.end())
      kinds.push_back(kind);
  }
  return numbers;
}

namespace {
/// A reshard of the least tensor that it is the same for.
struct Reduced {
  SmallVector<int64_t, 4> extents;
  /// Ranks along all atoms that are moved, or may be.
  int64_t ranks = 1;
  /// Elements of the tensor given that a group of ranks has which atoms that stay do not tell apart, and those of this one.
  __int128 given = 1, size = 1;
  /// Equal if nothing that a route goes by differs.
  SmallString<64> key;
};
} // namespace

/// Precondition: shards of both states divide.
static Reduced reduceReshard(const AtomMesh &mesh, ArrayRef<uint8_t> links, ArrayRef<int64_t> shape, const State &from,
                             const State &to) {
  Reduced less;
  bool isOneKind = from.kind == to.kind;
  SmallVector<char, 32> isLeft(mesh.numAtoms(), false);
  SmallVector<size_t, 4> kept; // per dim
  for (auto [before, after] : zip_equal(from.dims, to.dims)) {
    kept.push_back(std::mismatch(before.begin(), before.end(), after.begin(), after.end()).first - before.begin());
    for (AtomId atom : concat<const AtomId>(drop_begin(before, kept.back()), drop_begin(after, kept.back())))
      isLeft[atom] = true;
  }
  for (AtomId atom : concat<const AtomId>(from.partial, to.partial))
    isLeft[atom] = !(isOneKind && from.isPartialOver(atom) && to.isPartialOver(atom));
  // Numbers of dims and atoms come first, so that no two lists can be read as one.
  less.key.push_back(static_cast<char>(shape.size()));
  less.key.push_back(static_cast<char>(llvm::count(isLeft, true)));
  SmallVector<uint8_t, 32> numbers(mesh.numAtoms(), 0);
  uint8_t next = 0;
  for (AtomId atom = 0; atom < mesh.numAtoms(); ++atom)
    if (isLeft[atom]) {
      numbers[atom] = next++;
      less.key.push_back(static_cast<char>(links[atom]));
      less.ranks *= mesh.size(atom);
    }
  auto write = [&](ArrayRef<AtomId> atoms) {
    size_t place = less.key.size();
    less.key.push_back(0);
    for (AtomId atom : atoms)
      if (isLeft[atom])
        less.key.push_back(static_cast<char>(numbers[atom]));
    less.key[place] = static_cast<char>(less.key.size() - place);
  };
  for (const State *state : {&from, &to}) {
    for_each(state->dims, write);
    write(state->partial);
    less.key.push_back(static_cast<char>(state->kind));
  }
  for (auto [extent, atoms, count] : zip_equal(shape, from.dims, kept)) {
    ArrayRef<AtomId> staying = ArrayRef(atoms).take_front(count);
    int64_t shards = mesh.product(staying), local = extent / shards, least = std::gcd(local, less.ranks);
    less.given *= local;
    less.size *= least;
    less.extents.push_back(least * shards);
    less.key.append(StringRef(reinterpret_cast<const char *>(&least), sizeof(least)));
    // An exchange is as slow as the links of all atoms of its dims.
    less.key.push_back(static_cast<char>(count));
    size_t place = less.key.size();
    for (AtomId atom : staying)
      less.key.push_back(static_cast<char>(links[atom]));
    std::sort(less.key.begin() + place, less.key.end());
  }
  return less;
}

/// Pieces are whole bytes, as those of the core: elements have a byte for each rank that something is moved along.
ReshardCosts::CoreRoutes ReshardCosts::routesOf(ShapeId core, StateId from, StateId to) {
  const AtomMesh &mesh = planner.getMesh();
  auto [entry, isNew] = ofCores.try_emplace({core, uint64_t(from) << 32 | to});
  auto divides = [&](StateId state) { return !isUneven(mesh, shapes[core].extents, states[state]); };
  if (!isNew || !divides(from) || !divides(to))
    return entry->second;
  if (links.empty())
    links = numberLinks(mesh, planner.getCosts());
  Reduced less = reduceReshard(mesh, links, shapes[core].extents, states[from], states[to]);
  auto [known, isFirst] = ofReduced.try_emplace(less.key);
  if (isFirst) {
    ++numPlanned;
    if (auto found = planner.listCosts(less.extents, less.ranks, states[from], states[to])) {
      known->second = {static_cast<uint32_t>(routes.size()), static_cast<uint32_t>(found->size())};
      append_range(routes, *found);
    }
  }
  CoreRoutes found = known->second;
  __int128 times = less.given / less.size * (shapes[core].elementBytes / less.ranks);
  for (const SizedCost &route : ArrayRef(routes).slice(found.first, found.count))
    if (route.varying * times >= kImpossibleCost)
      return entry->second; // Beyond counting here.
  found.times = static_cast<int64_t>(times);
  return entry->second = found;
}

//===----------------------------------------------------------------------===//
// Costs
//===----------------------------------------------------------------------===//

/// A search asks for far more costs than it has shapes and states: each of these is looked for once, and a cost by numbers alone.
int64_t ReshardCosts::costOfPlanned(ShapeId shape, StateId from, StateId to) {
  constexpr uint32_t kUnknown = ~uint32_t(0);
  auto known = [&](std::vector<uint32_t> &numbers, uint32_t own, auto find) {
    if (own >= numbers.size())
      numbers.resize(own + 1, kUnknown);
    if (numbers[own] == kUnknown)
      numbers[own] = find();
    return numbers[own];
  };
  auto stateOf = [&](StateId id) { return known(shared.states, id, [&] { return planned->internState(states[id]); }); };
  ShapeId theirs = known(shared.shapes, shape,
                         [&] { return planned->internShape(shapes[shape].extents, shapes[shape].elementBytes); });
  return planned->cost(theirs, stateOf(from), stateOf(to));
}

int64_t ReshardCosts::cost(ShapeId id, StateId from, StateId to) {
  if (from == to)
    return 0;
  if (planned)
    return costOfPlanned(id, from, to);
  const Shape &shape = shapes[id];
  if (shape.core != kNoCore)
    if (auto [first, count, times] = routesOf(shape.core, from, to); count > 0) {
      if (shape.scale == 0) // Nothing moves of a tensor without elements.
        return 0;
      // An all_reduce alone rounds up, and there is one at most: rounding the sum is the same.
      int64_t ranks = planner.getMesh().numRanks(), least = kMostCost;
      for (const SizedCost &route : ArrayRef(routes).slice(first, count))
        least = std::min(least,
                         clampCost((__int128(route.varying) * times * shape.scale + ranks - 1) / ranks + route.fixed));
      return least;
    }
  auto [entry, isNew] = ofShapes.try_emplace({id, uint64_t(from) << 32 | to}, kImpossibleCost);
  if (!isNew)
    return entry->second;
  ++numPlanned;
  if (std::optional<ReshardPlan> found = plan(id, from, to, /*wantsSteps=*/false))
    entry->second = std::min(found->cost, kMostCost);
  return entry->second;
}

std::optional<ReshardPlan> ReshardCosts::plan(ShapeId shape, StateId from, StateId to, bool wantsSteps) const {
  return planner.plan(shapes[shape].extents, shapes[shape].elementBytes, states[from], states[to], wantsSteps);
}

//===----------------------------------------------------------------------===//
// PlannedCosts
//===----------------------------------------------------------------------===//

bool PlannedCosts::isOf(const AtomMesh &mesh, const CostModel &model) const {
  return areSame(planner.getMesh(), mesh) && areSame(planner.getCosts(), model);
}

bool areSame(const AtomMesh &lhs, const AtomMesh &rhs) {
  if (lhs.numAxes() != rhs.numAxes() || lhs.numAtoms() != rhs.numAtoms())
    return false;
  return all_of(seq<unsigned>(0, lhs.numAtoms()),
                [&](AtomId atom) { return lhs.size(atom) == rhs.size(atom) && lhs.axisOf(atom) == rhs.axisOf(atom); });
}

bool areSame(const CostModel &lhs, const CostModel &rhs) {
  auto areNear = [](ArrayRef<NearLink> one, ArrayRef<NearLink> other) {
    return equal(one, other,
                 [](const NearLink &a, const NearLink &b) { return a.block == b.block && a.link == b.link; });
  };
  auto key = [](const CostModel &model) {
    return std::tuple(model.perCollective, model.perNs, model.perMemoryByte, model.perCacheByte, model.cacheBytes,
                      model.perLaunch, model.flopShares, model.perFlop, model.perRepeatedFlop, model.repetitionSlack,
                      model.perExtraWrite, model.perMovedByte, model.perReshard, model.perMadePartial,
                      model.perKeptPartial, model.fallbackSurcharge, model.tornSurcharge, model.parameterSurcharge);
  };
  return key(lhs) == key(rhs) && lhs.anyLink == rhs.anyLink && lhs.links == rhs.links &&
         equal(lhs.nearLinks, rhs.nearLinks, areNear);
}

} // namespace cleave::spmd
