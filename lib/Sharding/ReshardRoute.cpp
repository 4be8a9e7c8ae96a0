//===- ReshardRoute.cpp - one way from state to state ---------------------===//
//
// An atom's *own place* is the minor end of the dim where it belongs, once all more-major atoms of the target are there
// and nothing else is. Atoms are appended in their own place where they can be; where another atom is in the way the
// start of the route says whether they wait or go somewhere else for now (which makes every later step smaller).
//
// The all_to_all takes, from the minor end of every dim, the atoms that belong to other dims, and puts each in its own
// place. A dim may not lose and gain at once: [x|y] to [y|x] is an exchange.
//
//===----------------------------------------------------------------------===//
#include "ReshardRoute.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace cleave::spmd {

//===----------------------------------------------------------------------===//
// The cost of a step, from the states before and after
//===----------------------------------------------------------------------===//

// True if shards over `wide` consist of whole shards over `narrow`, which begins with `wide`.
static bool nests(const AtomMesh &mesh, int64_t extent, ArrayRef<AtomId> wide, ArrayRef<AtomId> narrow) {
  if (wide.empty() || wide.size() == narrow.size())
    return true;
  int64_t pieces = mesh.product(narrow.drop_front(wide.size()));
  return shardExtent(mesh, extent, wide) == pieces * shardExtent(mesh, extent, narrow);
}

namespace {
// Local extents of a step's two sides.
struct StepSizes {
  /// Bytes before, and of the pieces that ranks send each other (split on every dim).
  int64_t before, piece;
  bool legal = true;
};
} // namespace

static StepSizes measure(const ReshardProblem &problem, const State &before, const State &after) {
  StepSizes sizes{problem.elementBytes, problem.elementBytes};
  for (auto [extent, left, right] : zip_equal(problem.shape, before.dims, after.dims)) {
    int64_t leftExtent = shardExtent(problem.mesh, extent, left);
    sizes.before *= leftExtent;
    // No collective takes an atom from a dim and brings it another: as many are the same. Of an exchange nobody asks.
    if (left.size() == right.size()) {
      sizes.piece *= leftExtent;
      continue;
    }
    int64_t rightExtent = shardExtent(problem.mesh, extent, right);
    sizes.piece *= left.size() > right.size() ? leftExtent : rightExtent;
    sizes.legal &= left.size() < right.size() ? nests(problem.mesh, extent, left, right)
                                              : nests(problem.mesh, extent, right, left);
  }
  return sizes;
}

AtomList movedAtoms(const AtomMesh &mesh, ReshardStepKind kind, const State &before, const State &after) {
  // Most dims stay as they are: atoms of those that do not are few.
  SmallVector<char, 32> moves(mesh.numAtoms(), false);
  auto add = [&](const AtomList &atoms, const AtomList &others, bool all) {
    for (AtomId atom : atoms)
      moves[atom] |= all || !is_contained(others, atom);
  };
  auto compare = [&](const AtomList &left, const AtomList &right, bool all) {
    if (left == right)
      return;
    add(left, right, all);
    add(right, left, /*all=*/false);
  };
  compare(before.partial, after.partial, /*all=*/false);
  for (auto [left, right] : zip_equal(before.dims, after.dims))
    compare(left, right, kind == ReshardStepKind::Exchange);
  AtomList moved;
  for (AtomId atom = 0; atom < mesh.numAtoms(); ++atom)
    if (moves[atom])
      moved.push_back(atom);
  return moved;
}

// What the busiest rank sends (docs/sharding-model.md), padding included, and what that costs: by its bytes, and whatever they are. A large
// tensor times a large mesh exceeds 64 bits on the way. What is of no use may cost less than it does, but is of no use then either.
static SizedCost costStep(const ReshardProblem &problem, ReshardStep &step, const State &before, const State &after,
                          const StepSizes &sizes, llvm::function_ref<bool(const SizedCost &)> isOfNoUse) {
  __int128 group = problem.mesh.product(step.atoms), bytes = 0, units = 0, fixed = problem.costs.perCollective;
  GroupCost ring;
  if (is_contained({ReshardStepKind::AllReduce, ReshardStepKind::ReduceScatter, ReshardStepKind::AllGather}, step.kind))
    ring = ringCost(problem.mesh, problem.costs, step.atoms);
  switch (step.kind) {
  case ReshardStepKind::Slice:
  case ReshardStepKind::MakePartial:
    return {};
  case ReshardStepKind::AllReduce:
    bytes = (2 * (group - 1) * sizes.before + group - 1) / group;
    units = (2 * ring.perPiece * sizes.before + group - 1) / group;
    fixed += 2 * ring.fixed;
    break;
  case ReshardStepKind::ReduceScatter:
    bytes = (group - 1) * sizes.piece;
    units = ring.perPiece * sizes.piece;
    fixed += ring.fixed;
    break;
  case ReshardStepKind::AllGather:
    bytes = (group - 1) * sizes.before;
    units = ring.perPiece * sizes.before;
    fixed += ring.fixed;
    break;
  case ReshardStepKind::AllToAll: {
    GroupCost pairs = pairwiseCost(problem.mesh, problem.costs, step.atoms);
    bytes = (group - 1) * sizes.piece;
    units = pairs.perPiece * sizes.piece;
    fixed += pairs.fixed;
    break;
  }
  case ReshardStepKind::Exchange: {
    bytes = exchangeBytes(problem.mesh, problem.shape, problem.elementBytes, before, after);
    GroupCost direct = directCost(problem.mesh, problem.costs, step.atoms, /*peers=*/1);
    // Without latencies nobody asks who they are.
    if (problem.costs.hasLatency() && !isOfNoUse({clampCost(direct.perPiece * bytes), clampCost(fixed + direct.fixed)}))
      direct = directCost(problem.mesh, problem.costs, step.atoms,
                          exchangePeers(problem.mesh, problem.shape, before, after));
    units = direct.perPiece * bytes;
    fixed += direct.fixed;
    break;
  }
  }
  // Nothing moves of a tensor without elements.
  step.bytes = clampCost(bytes);
  if (bytes == 0)
    return {};
  step.cost = clampCost(units + fixed);
  return {clampCost(units), clampCost(fixed)};
}

//===----------------------------------------------------------------------===//
// Bookkeeping
//===----------------------------------------------------------------------===//

/// Per atom the dim that it splits.
static SmallVector<int, 16> findDims(const AtomMesh &mesh, const State &state) {
  SmallVector<int, 16> dims(mesh.numAtoms(), -1);
  for (auto [dim, atoms] : enumerate(state.dims))
    for (AtomId atom : atoms)
      dims[atom] = static_cast<int>(dim);
  return dims;
}

ReshardProblem::ReshardProblem(const AtomMesh &mesh, ArrayRef<int64_t> shape, int64_t elementBytes, const State &from,
                               const State &to, const CostModel &costs, bool wantsSteps)
    : mesh(mesh), shape(shape), elementBytes(elementBytes), from(from), to(to), costs(costs), wantsSteps(wantsSteps),
      sourceDim(findDims(mesh, from)), targetDim(findDims(mesh, to)) {}

void Route::beginStep(ReshardStepKind kind) {
  if (open == kind && kind != ReshardStepKind::AllToAll)
    return;
  endStep();
  open = kind;
  before = now;
}

static bool isCollective(ReshardStepKind kind) {
  return kind != ReshardStepKind::Slice && kind != ReshardStepKind::MakePartial;
}

/// True if the route is dearer than it may be with this on top.
bool Route::isOfNoUse(const SizedCost &more) const {
  SizedCost all = {sized.varying + more.varying, sized.fixed + more.fixed};
  return plan.cost + more.varying + more.fixed > mostCost ||
         any_of(known, [&](const SizedCost &other) { return other.isAtMost(all); });
}

void Route::endStep() {
  if (!open || !legal)
    return;
  ReshardStep step;
  step.kind = *open;
  step.atoms = movedAtoms(problem.mesh, *open, before, now);
  StepSizes sizes = measure(problem, before, now);
  SizedCost more =
      costStep(problem, step, before, now, sizes, [&](const SizedCost &least) { return isOfNoUse(least); });
  plan.bytes += step.bytes;
  plan.cost += step.cost;
  sized = {sized.varying + more.varying, sized.fixed + more.fixed};
  legal = (sizes.legal || *open == ReshardStepKind::Exchange) && !isOfNoUse({});
  rank.cost = plan.cost;
  rank.exchanges |= *open == ReshardStepKind::Exchange;
  rank.numCollectives += isCollective(*open);
  ++rank.numSteps;
  if (problem.wantsSteps) {
    step.after = now;
    plan.steps.push_back(std::move(step));
  }
  open.reset();
}

void Route::append(ReshardStepKind kind, unsigned dim, AtomId atom) {
  beginStep(kind);
  now.removePartial(atom);
  now.dims[dim].push_back(atom);
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

// True if `list` is the beginning of `whole`.
static bool isPrefix(ArrayRef<AtomId> list, ArrayRef<AtomId> whole) {
  return list.size() <= whole.size() && whole.take_front(list.size()) == list;
}

// How many atoms of `available` can follow `list` in their own places of `dim`: `list` has to be the beginning of the
// target, and shards have to nest now and in what is still to come.
unsigned Route::ownRun(unsigned dim, ArrayRef<AtomId> list, ArrayRef<AtomId> available) const {
  ArrayRef<AtomId> target = problem.to.dims[dim];
  if (!isPrefix(list, target))
    return 0;
  size_t end = list.size();
  while (end < target.size() && is_contained(available, target[end]))
    ++end;
  int64_t extent = problem.shape[dim];
  while (end > list.size() && !(nests(problem.mesh, extent, list, target.take_front(end)) &&
                                nests(problem.mesh, extent, target.take_front(end), target)))
    --end;
  return end - list.size();
}

bool Route::divides(unsigned dim, AtomId atom) const {
  return problem.shape[dim] % (problem.mesh.product(now.dims[dim]) * problem.mesh.size(atom)) == 0;
}

unsigned Route::missingAtoms(unsigned dim) const {
  return count_if(problem.to.dims[dim], [&](AtomId atom) { return !is_contained(now.dims[dim], atom); });
}

// Prefers, among dims that `atom` divides, those on the wanted side, and of these the one that lacks fewest atoms.
std::optional<unsigned> Route::earlyPlace(AtomId atom, EarlyPlace early) const {
  std::optional<unsigned> best;
  std::pair<bool, unsigned> bestScore;
  for (unsigned dim = 0; dim < now.rank(); ++dim) {
    bool isOwn = problem.targetDim[atom] == static_cast<int>(dim);
    std::pair<bool, unsigned> score(isOwn != (early == EarlyPlace::OwnDim), missingAtoms(dim));
    if (divides(dim, atom) && (!best || score < bestScore)) {
      best = dim;
      bestScore = score;
    }
  }
  return best;
}

// How many atoms of `dim` can stay: the longest prefix that present and target share and that both nest in.
unsigned Route::keptPrefix(unsigned dim) const {
  ArrayRef<AtomId> present = now.dims[dim], target = problem.to.dims[dim];
  unsigned length = 0;
  while (length < std::min(present.size(), target.size()) && present[length] == target[length])
    ++length;
  if (length == present.size() && length == target.size())
    return length;
  while (length && !(nests(problem.mesh, problem.shape[dim], present.take_front(length), present) &&
                     nests(problem.mesh, problem.shape[dim], target.take_front(length), target)))
    --length;
  return length;
}

//===----------------------------------------------------------------------===//
// Slices and reductions
//===----------------------------------------------------------------------===//

bool Route::start(const RouteStart &how) {
  for (AtomId atom = 0; atom < problem.mesh.numAtoms(); ++atom) {
    bool wanted = problem.targetDim[atom] >= 0;
    if (problem.from.isPartialOver(atom)) {
      if (!problem.keepsPartial(atom) && (wanted ? !how.reduceJointly : how.scatterAll))
        toReduce.push_back(atom);
    } else if (problem.sourceDim[atom] < 0 && (wanted || how.splitIdle)) {
      toSlice.push_back(atom);
    }
  }
  do
    sliceAll(how);
  while (scatterOne(how));
  reduceRest();
  sliceInPlace();
  return waited;
}

// Appends those of `atoms` whose own place is free, and forgets them.
bool Route::appendOwn(ReshardStepKind kind, AtomList &atoms) {
  if (atoms.empty())
    return false;
  size_t before = atoms.size();
  for (unsigned dim = 0; dim < now.rank(); ++dim)
    for (unsigned run = ownRun(dim, now.dims[dim], atoms); run > 0; --run) {
      AtomId atom = problem.to.dims[dim][now.dims[dim].size()];
      append(kind, dim, atom);
      erase(atoms, atom);
    }
  return atoms.size() != before;
}

// A slice never frees a place in another dim, so one round is enough.
void Route::sliceInPlace() { appendOwn(ReshardStepKind::Slice, toSlice); }

void Route::sliceAll(const RouteStart &how) {
  sliceInPlace();
  for (bool wanted : {true, false})
    erase_if(toSlice, [&](AtomId atom) {
      if ((problem.targetDim[atom] >= 0) != wanted)
        return false;
      waited = true;
      std::optional<unsigned> dim;
      if (!wanted || how.early != EarlyPlace::Never)
        dim = earlyPlace(atom, how.early);
      if (dim)
        append(ReshardStepKind::Slice, *dim, atom);
      return dim.has_value();
    });
}

// Scatters what has its own place, or else one atom that must not wait.
bool Route::scatterOne(const RouteStart &how) {
  if (appendOwn(ReshardStepKind::ReduceScatter, toReduce))
    return true;
  waited |= !toReduce.empty();
  for (AtomId atom : toReduce)
    if (how.early != EarlyPlace::Never || problem.targetDim[atom] < 0)
      if (std::optional<unsigned> dim = earlyPlace(atom, how.early)) {
        append(ReshardStepKind::ReduceScatter, *dim, atom);
        erase(toReduce, atom);
        return true;
      }
  return false;
}

// One all_reduce of everything that is still partial and must not be. What the target splits is sliced afterwards.
void Route::reduceRest() {
  AtomList rest;
  for (AtomId atom : now.partial)
    if (!problem.keepsPartial(atom))
      rest.push_back(atom);
  if (rest.empty())
    return;
  beginStep(ReshardStepKind::AllReduce);
  for (AtomId atom : rest) {
    now.removePartial(atom);
    if (problem.targetDim[atom] >= 0)
      toSlice.push_back(atom);
  }
}

//===----------------------------------------------------------------------===//
// The way to the target
//===----------------------------------------------------------------------===//

bool Route::hasStrays() const {
  for (auto [dim, atoms] : enumerate(now.dims))
    for (AtomId atom : atoms)
      if (problem.targetDim[atom] >= 0 && problem.targetDim[atom] != static_cast<int>(dim))
        return true;
  return false;
}

void Route::finishByGather(UseAllToAll use) {
  // Each all_to_all puts an atom in its own place, so there are no more than atoms.
  for (unsigned round = 0; use != UseAllToAll::No && round < problem.mesh.numAtoms() && allToAll(use); ++round)
    sliceInPlace();
  gatherForeign();
  sliceInPlace();
  makePartial();
  endStep();
  legal &= now == problem.to;
}

void Route::finishByExchange() {
  if (now.dims != problem.to.dims) {
    beginStep(ReshardStepKind::Exchange);
    now.dims = problem.to.dims;
  }
  makePartial();
  endStep();
  legal &= now == problem.to;
}

bool Route::allToAll(UseAllToAll use) {
  // Per dim: where the atoms at its minor end begin that belong to other dims.
  SmallVector<size_t, 4> split;
  for (unsigned dim = 0; dim < now.rank(); ++dim) {
    size_t begin = now.dims[dim].size(), kept = keptPrefix(dim);
    auto isElsewhere = [&](AtomId atom) {
      return problem.targetDim[atom] < 0 ? use == UseAllToAll::ForMore
                                         : problem.targetDim[atom] != static_cast<int>(dim);
    };
    while (begin > kept && isElsewhere(now.dims[dim][begin - 1]))
      --begin;
    split.push_back(begin);
  }
  // A dim whose atoms find no place keeps them; that may bar the place of others', so try again.
  while (true) {
    SmallVector<AtomList, 4> dims(now.dims);
    AtomList popped;
    for (auto [atoms, begin] : zip(dims, split)) {
      popped.append(atoms.begin() + begin, atoms.end());
      atoms.truncate(begin);
    }
    if (popped.empty())
      return false;
    for (unsigned dim = 0; dim < now.rank(); ++dim)
      if (split[dim] == now.dims[dim].size())
        placeOwn(dim, dims[dim], popped);
    if (use == UseAllToAll::ForMore)
      placeBehindGained(dims, popped);
    if (popped.empty()) {
      beginStep(ReshardStepKind::AllToAll);
      now.dims = dims;
      return true;
    }
    for (unsigned dim = 0; dim < now.rank(); ++dim)
      if (any_of(popped, [&](AtomId atom) { return is_contained(now.dims[dim], atom); }))
        split[dim] = now.dims[dim].size();
  }
}

// Appends to `list`, which is what `dim` has, those of `atoms` whose own place that is, and forgets them.
void Route::placeOwn(unsigned dim, AtomList &list, AtomList &atoms) const {
  for (unsigned run = ownRun(dim, list, atoms); run > 0; --run) {
    list.push_back(problem.to.dims[dim][list.size()]);
    erase(atoms, list.back());
  }
}

// Appends those of `atoms` that the target does not split by to a dim that has gained others, and that they divide.
void Route::placeBehindGained(MutableArrayRef<AtomList> dims, AtomList &atoms) const {
  erase_if(atoms, [&](AtomId atom) {
    for (auto [dim, list] : enumerate(dims))
      if (problem.targetDim[atom] < 0 && list.size() > now.dims[dim].size() &&
          problem.shape[dim] % (problem.mesh.product(list) * problem.mesh.size(atom)) == 0) {
        list.push_back(atom);
        return true;
      }
    return false;
  });
}

// One all_gather of everything beyond the prefixes that can stay.
void Route::gatherForeign() {
  for (unsigned dim = 0; dim < now.rank(); ++dim) {
    unsigned kept = keptPrefix(dim);
    if (kept == now.dims[dim].size())
      continue;
    beginStep(ReshardStepKind::AllGather);
    for (AtomId atom : ArrayRef(now.dims[dim]).drop_front(kept))
      if (problem.targetDim[atom] >= 0)
        toSlice.push_back(atom);
    now.dims[dim].truncate(kept);
  }
}

void Route::makePartial() {
  for (AtomId atom : problem.to.partial)
    if (!now.isPartialOver(atom)) {
      beginStep(ReshardStepKind::MakePartial);
      now.addPartial(atom, problem.to.kind);
    }
}

} // namespace cleave::spmd
