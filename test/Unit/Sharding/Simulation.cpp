//===- Simulation.cpp - carrying out reshard plans on all ranks -----------===//
//
// Every rank has a slot for each element of the global tensor: the element, a term of it, or nothing. A step may only
// use what its ranks have. Collectives that slice or concatenate also have to find shards that nest, since they move
// whole local tensors: the first row of a piece must be where the row-major number of the piece says.
//
//===----------------------------------------------------------------------===//
#include "ReshardOracle.h"
#include "llvm/ADT/STLExtras.h"
#include <optional>

using namespace llvm;

namespace cleave::spmd::test {
namespace {

using Slots = std::vector<std::optional<uint64_t>>;

// A well-mixed function of its arguments: distinct contents for distinct elements and coordinates.
uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t h = a * 0x9E3779B97F4A7C15ull + (b + 1) * 0xC2B2AE3D27D4EB4Full;
  h = (h ^ (h >> 31)) * 0xD6E8FEB86659FD93ull;
  return h ^ (h >> 29);
}

class Simulation {
public:
  Simulation(const AtomMesh &mesh, ArrayRef<int64_t> shape, int64_t elementBytes)
      : mesh(mesh), shape(shape), elementBytes(elementBytes) {
    for (int64_t extent : shape)
      numElements *= extent;
  }

  void load(const State &state);
  std::string carryOut(const ReshardStep &step);
  std::string compare(const State &to) const;

private:
  bool holds(const State &state, int64_t rank, int64_t element) const;
  int64_t number(const AtomList &atoms, int64_t rank) const;
  // The ranks that differ from `rank` in `atoms` only, itself included.
  std::vector<int64_t> group(int64_t rank, ArrayRef<AtomId> atoms) const;
  bool nest(const State &wide, const State &narrow, int64_t rank) const;
  bool isFull(const Slots &slots, const State &state, int64_t rank) const;

  std::string makePartial(const ReshardStep &step);
  std::string reduce(ArrayRef<AtomId> atoms);
  std::string gather(ArrayRef<AtomId> atoms, const State &after, int64_t bytes, bool exact);
  std::string keepOwn(const State &after);

  const AtomMesh &mesh;
  ArrayRef<int64_t> shape;
  int64_t elementBytes, numElements = 1;
  State now;
  std::vector<Slots> ranks;
};

int64_t Simulation::number(const AtomList &atoms, int64_t rank) const {
  int64_t result = 0;
  for (AtomId atom : atoms)
    result = result * mesh.size(atom) + mesh.coordinate(rank, atom);
  return result;
}

bool Simulation::holds(const State &state, int64_t rank, int64_t element) const {
  for (size_t dim = shape.size(); dim-- > 0; element /= shape[dim]) {
    int64_t shards = mesh.product(state.dims[dim]), width = (shape[dim] + shards - 1) / shards;
    if (element % shape[dim] / width != number(state.dims[dim], rank))
      return false;
  }
  return true;
}

std::vector<int64_t> Simulation::group(int64_t rank, ArrayRef<AtomId> atoms) const {
  std::vector<int64_t> result;
  for (int64_t other = 0; other < mesh.numRanks(); ++other) {
    bool differsElsewhere = false;
    for (AtomId atom = 0; atom < mesh.numAtoms(); ++atom)
      differsElsewhere |= !is_contained(atoms, atom) && mesh.coordinate(rank, atom) != mesh.coordinate(other, atom);
    if (!differsElsewhere)
      result.push_back(other);
  }
  return result;
}

// The value of element e is mix(e, 0). Terms: arbitrary, but for the rank at coordinate 0 of the partial atoms, which
// has what is missing. Ranks that differ in idle atoms only hold the same.
void Simulation::load(const State &state) {
  now = state;
  ranks.assign(mesh.numRanks(), Slots(numElements));
  for (int64_t rank = 0; rank < mesh.numRanks(); ++rank)
    for (int64_t element = 0; element < numElements; ++element) {
      if (!holds(state, rank, element))
        continue;
      int64_t term = number(state.partial, rank);
      uint64_t value = mix(element, term);
      if (term == 0)
        for (int64_t other = 1; other < mesh.product(state.partial); ++other)
          value -= mix(element, other);
      ranks[rank][element] = value;
    }
}

bool Simulation::isFull(const Slots &slots, const State &state, int64_t rank) const {
  for (int64_t element = 0; element < numElements; ++element)
    if (slots[element].has_value() != holds(state, rank, element))
      return false;
  return true;
}

// Rank's narrow shard begins inside its wide shard where the number along the added atoms says.
bool Simulation::nest(const State &wide, const State &narrow, int64_t rank) const {
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    AtomList wideAtoms = wide.dims[dim], narrowAtoms = narrow.dims[dim];
    if (wideAtoms.size() > narrowAtoms.size())
      std::swap(wideAtoms, narrowAtoms);
    if (ArrayRef(narrowAtoms).take_front(wideAtoms.size()) != ArrayRef(wideAtoms))
      return false;
    auto width = [&](const AtomList &atoms) { return (shape[dim] + mesh.product(atoms) - 1) / mesh.product(atoms); };
    AtomList added(narrowAtoms.begin() + wideAtoms.size(), narrowAtoms.end());
    if (number(narrowAtoms, rank) * width(narrowAtoms) !=
        number(wideAtoms, rank) * width(wideAtoms) + number(added, rank) * width(narrowAtoms))
      return false;
  }
  return true;
}

std::string Simulation::makePartial(const ReshardStep &step) {
  for (int64_t rank = 0; rank < mesh.numRanks(); ++rank)
    if (number(step.atoms, rank) != 0)
      for (std::optional<uint64_t> &slot : ranks[rank])
        if (slot)
          slot = 0;
  return "";
}

std::string Simulation::reduce(ArrayRef<AtomId> atoms) {
  std::vector<Slots> next = ranks;
  for (int64_t rank = 0; rank < mesh.numRanks(); ++rank)
    for (int64_t element = 0; element < numElements; ++element) {
      if (!ranks[rank][element])
        continue;
      uint64_t sum = 0;
      for (int64_t other : group(rank, atoms)) {
        if (!ranks[other][element])
          return "reduction of shards that differ";
        sum += *ranks[other][element];
      }
      next[rank][element] = sum;
    }
  ranks = next;
  return "";
}

// Every rank takes what it needs for `after` from the rank that differs from it in `atoms` only, or has it. Checks
// the largest sender against `bytes`: equal if `exact`, else no more.
std::string Simulation::gather(ArrayRef<AtomId> atoms, const State &after, int64_t bytes, bool exact) {
  std::vector<Slots> next(mesh.numRanks(), Slots(numElements));
  std::vector<int64_t> sent(mesh.numRanks(), 0);
  for (int64_t rank = 0; rank < mesh.numRanks(); ++rank) {
    std::vector<int64_t> members = group(rank, atoms);
    for (int64_t element = 0; element < numElements; ++element) {
      if (!holds(after, rank, element))
        continue;
      auto holder = find_if(members, [&](int64_t member) { return ranks[member][element].has_value(); });
      if (holder == members.end())
        return "a rank needs an element that nobody in its group has";
      if (ranks[rank][element])
        holder = find(members, rank);
      next[rank][element] = ranks[*holder][element];
      sent[*holder] += *holder != rank;
    }
  }
  int64_t most = *max_element(sent) * elementBytes;
  if (exact ? most != bytes : most > bytes)
    return "the busiest rank sends " + std::to_string(most) + " bytes, not " + std::to_string(bytes);
  ranks = next;
  return "";
}

std::string Simulation::keepOwn(const State &after) {
  for (int64_t rank = 0; rank < mesh.numRanks(); ++rank)
    for (int64_t element = 0; element < numElements; ++element)
      if (!holds(after, rank, element))
        ranks[rank][element].reset();
  return "";
}

std::string Simulation::carryOut(const ReshardStep &step) {
  std::string wrong;
  AtomList fromDims;
  for (const AtomList &dim : now.dims)
    fromDims.append(dim);
  if (step.kind != ReshardStepKind::Exchange)
    for (int64_t rank = 0; rank < mesh.numRanks(); ++rank)
      if (!nest(now, step.after, rank))
        return "shards do not nest";
  switch (step.kind) {
  case ReshardStepKind::Slice:
    wrong = keepOwn(step.after);
    break;
  case ReshardStepKind::MakePartial:
    wrong = makePartial(step);
    break;
  case ReshardStepKind::AllReduce:
    wrong = reduce(step.atoms);
    break;
  case ReshardStepKind::ReduceScatter:
    wrong = reduce(step.atoms);
    keepOwn(step.after);
    break;
  case ReshardStepKind::AllGather:
  case ReshardStepKind::AllToAll:
    wrong = gather(step.atoms, step.after, step.bytes, /*exact=*/false);
    break;
  case ReshardStepKind::Exchange:
    wrong = gather(fromDims, step.after, step.bytes, /*exact=*/true);
    break;
  }
  now = step.after;
  for (int64_t rank = 0; wrong.empty() && rank < mesh.numRanks(); ++rank)
    if (!isFull(ranks[rank], now, rank))
      wrong = "a rank does not hold its shard";
  return wrong;
}

std::string Simulation::compare(const State &to) const {
  if (now != to)
    return "the last step does not lead to the target";
  for (int64_t rank = 0; rank < mesh.numRanks(); ++rank)
    for (int64_t element = 0; element < numElements; ++element) {
      if (!holds(to, rank, element))
        continue;
      uint64_t sum = 0;
      for (int64_t other : group(rank, to.partial))
        sum += *ranks[other][element];
      uint64_t expected = mix(element, 0);
      if (sum != expected)
        return "wrong contents on rank " + std::to_string(rank);
    }
  return "";
}

} // namespace

std::string simulate(const AtomMesh &mesh, ArrayRef<int64_t> shape, int64_t elementBytes, const State &from,
                     const State &to, const ReshardPlan &plan) {
  Simulation simulation(mesh, shape, elementBytes);
  simulation.load(from);
  int64_t cost = 0, bytes = 0;
  for (const ReshardStep &step : plan.steps) {
    std::string wrong = simulation.carryOut(step);
    if (!wrong.empty())
      return toString(step.kind).str() + ": " + wrong;
    cost += step.cost;
    bytes += step.bytes;
  }
  if (cost != plan.cost || bytes != plan.bytes)
    return "the steps do not add up to the plan";
  return simulation.compare(to);
}

} // namespace cleave::spmd::test
