//===- SearchMemory.cpp - what searches know of each other ----------------===//
//
// Problems are kept whole and compared part by part: what differs mostly differs in its sizes, and what is equal is compared in a fraction
// of the time that a search takes.
//
//===----------------------------------------------------------------------===//
#include "cleave/Solver/SearchMemory.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

using namespace cleave::spmd;
using namespace llvm;

/// A plan is searched on some meshes, one after the other: what came long before does not come again.
static constexpr size_t kMostSolved = 24, kMostBegun = 4, kMostPlanned = 8;

static bool mayKeep(const SolverOptions &options) { return !options.maySplit && !options.trace.os; }

/// Of what decisions depend on.
static bool areEqual(const SolverOptions &lhs, const SolverOptions &rhs) {
  auto key = [](const SolverOptions &options) {
    return std::tuple(options.maxRounds, options.maxOpsForPairs, options.keepParameters, options.lookForFewerBytes,
                      options.perStoredByte, options.perValueByte);
  };
  return key(lhs) == key(rhs) && areSame(lhs.costs, rhs.costs);
}

const Decision *SearchMemory::find(const Problem &problem, const SolverOptions &options) const {
  if (!mayKeep(options))
    return nullptr;
  auto known = find_if(
      solved, [&](const Solved &one) { return areEqual(one.options, options) && one.problem.isSameAs(problem); });
  return known == solved.end() ? nullptr : &known->decision;
}

// What is asked for again is asked for soon: the latest are kept.
void SearchMemory::keep(const Problem &problem, const SolverOptions &options, const Decision &decision) {
  if (!mayKeep(options))
    return;
  solved.push_back({problem, options, decision});
  solved.back().options.memory.reset(); // Or it would hold itself.
  if (solved.size() > kMostSolved)
    solved.pop_front();
}

// Their options have no price of memory: whatever price is tried next begins at the same place.
const SearchMemory::Found *SearchMemory::findBeginning(const Problem &problem, const SolverOptions &options) const {
  if (!mayKeep(options))
    return nullptr;
  auto known =
      find_if(begun, [&](const Begun &one) { return areEqual(one.options, options) && one.problem.isSameAs(problem); });
  return known == begun.end() ? nullptr : &known->found;
}

void SearchMemory::keepBeginning(const Problem &problem, const SolverOptions &options, Found found) {
  if (!mayKeep(options))
    return;
  begun.push_back({problem, options, std::move(found)});
  begun.back().options.memory.reset();
  if (begun.size() > kMostBegun)
    begun.pop_front();
}

/// Neighboring axes over one kind of link are as good as one: what a collective costs follows from how many of its ranks are over which
/// link (CostModel.h). So that meshes which only call parts of an axis otherwise share what they know.
static std::pair<AtomMesh, CostModel> mergeAxes(const AtomMesh &mesh, const CostModel &costs) {
  SmallVector<int64_t, 4> sizes;
  CostModel merged = costs;
  merged.links.clear();
  merged.nearLinks.clear();
  for (unsigned axis = 0; axis < mesh.numAxes(); ++axis) {
    bool isSame = axis > 0 && costs.link(axis) == costs.link(axis - 1) && costs.near(axis).empty() &&
                  costs.near(axis - 1).empty();
    if (isSame) {
      sizes.back() *= mesh.axisSize(axis);
      continue;
    }
    sizes.push_back(mesh.axisSize(axis));
    merged.links.push_back(costs.link(axis));
    merged.nearLinks.emplace_back(costs.near(axis).begin(), costs.near(axis).end());
  }
  // Of 6 x 4 the parts are 2, 3, 2, 2, and of 24 they are not.
  AtomMesh coarse(sizes);
  bool hasSameAtoms =
      coarse.numAtoms() == mesh.numAtoms() &&
      all_of(seq<unsigned>(0, mesh.numAtoms()), [&](AtomId atom) { return coarse.size(atom) == mesh.size(atom); });
  return hasSameAtoms ? std::pair(std::move(coarse), std::move(merged)) : std::pair(mesh, costs);
}

// As many meshes as a search goes through at a time; who plans on one keeps it alive.
std::shared_ptr<PlannedCosts> SearchMemory::costsOn(const AtomMesh &givenMesh, const CostModel &givenCosts) {
  auto [mesh, costs] = mergeAxes(givenMesh, givenCosts);
  for (const auto &one : planned)
    if (one->isOf(mesh, costs))
      return one;
  planned.push_back(std::make_shared<PlannedCosts>(mesh, costs));
  std::shared_ptr<PlannedCosts> made = planned.back();
  if (planned.size() > kMostPlanned)
    planned.pop_front();
  return made;
}
