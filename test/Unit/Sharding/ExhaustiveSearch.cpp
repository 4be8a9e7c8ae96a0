//===- ExhaustiveSearch.cpp - least bytes between two states, by Dijkstra -===//
//
// Edges are single collectives in their smallest pieces (one atom sliced, gathered or scattered at a time), except
// where taking several at once is cheaper: all_reduce over any subset, all_to_all of any suffixes to any places,
// exchange from any dims to any others.
//
//===----------------------------------------------------------------------===//
#include "ReshardOracle.h"
#include "llvm/ADT/STLExtras.h"
#include <functional>
#include <queue>
#include <set>

using namespace llvm;

namespace cleave::spmd::test {

static bool divides(const AtomMesh &mesh, ArrayRef<int64_t> shape, const State &state) {
  for (auto [extent, atoms] : zip_equal(shape, state.dims))
    if (extent % mesh.product(atoms))
      return false;
  return true;
}

std::vector<State> allStates(const AtomMesh &mesh, ArrayRef<int64_t> shape, bool withPartial) {
  std::set<State> found;
  // Atom by atom: nowhere, partial, or anywhere into the list of any dim.
  std::function<void(AtomId, const State &)> place = [&](AtomId atom, const State &state) {
    if (atom == mesh.numAtoms()) {
      if (divides(mesh, shape, state))
        found.insert(state);
      return;
    }
    place(atom + 1, state);
    State next = state;
    if (withPartial) {
      next.addPartial(atom, ReductionKind::Sum);
      place(atom + 1, next);
    }
    for (size_t dim = 0; dim < shape.size(); ++dim)
      for (size_t position = 0; position <= state.dims[dim].size(); ++position) {
        next = state;
        next.dims[dim].insert(next.dims[dim].begin() + position, atom);
        place(atom + 1, next);
      }
  };
  place(0, State::replicated(shape.size()));
  return std::vector<State>(found.begin(), found.end());
}

ExhaustiveSearch::ExhaustiveSearch(const AtomMesh &mesh, ArrayRef<int64_t> shape, int64_t elementBytes)
    : mesh(mesh), shape(shape.begin(), shape.end()), elementBytes(elementBytes), nodes(allStates(mesh, shape, true)) {
  for (auto [number, state] : enumerate(nodes))
    index[state] = number;
  edges.resize(nodes.size());
  for (size_t source = 0; source < nodes.size(); ++source) {
    addSlicesAndPartials(source);
    addReductions(source);
    addGathers(source);
    addAllToAlls(source);
    addExchanges(source);
  }
}

int64_t ExhaustiveSearch::units(const State &state) const {
  int64_t elements = 1;
  for (auto [extent, atoms] : zip_equal(shape, state.dims))
    elements *= extent / mesh.product(atoms);
  return elements * elementBytes * 1024;
}

void ExhaustiveSearch::addEdge(size_t source, const State &target, int64_t cost) {
  auto it = index.find(target);
  if (it == index.end() || it->second == source)
    return;
  uint32_t newlySplit = 0;
  for (AtomId atom = 0; atom < mesh.numAtoms(); ++atom)
    if (nodes[source].isIdle(atom) && target.splits(atom))
      newlySplit |= 1u << atom;
  edges[source].push_back({it->second, cost, newlySplit});
}

void ExhaustiveSearch::addSlicesAndPartials(size_t source) {
  const State &state = nodes[source];
  for (AtomId atom = 0; atom < mesh.numAtoms(); ++atom) {
    if (!state.isIdle(atom))
      continue;
    for (size_t dim = 0; dim < shape.size(); ++dim) {
      State next = state;
      next.dims[dim].push_back(atom);
      addEdge(source, next, 0);
    }
    State next = state;
    next.addPartial(atom, ReductionKind::Sum);
    addEdge(source, next, 0);
  }
}

void ExhaustiveSearch::addReductions(size_t source) {
  const State &state = nodes[source];
  for (unsigned subset = 1; subset < 1u << state.partial.size(); ++subset) {
    State next = state;
    int64_t group = 1;
    for (size_t i = 0; i < state.partial.size(); ++i)
      if (subset >> i & 1) {
        next.removePartial(state.partial[i]);
        group *= mesh.size(state.partial[i]);
      }
    addEdge(source, next, (2 * (group - 1) * units(state) + group - 1) / group);
  }
  for (AtomId atom : state.partial)
    for (size_t dim = 0; dim < shape.size(); ++dim) {
      State next = state;
      next.removePartial(atom);
      next.dims[dim].push_back(atom);
      addEdge(source, next, units(state) / mesh.size(atom) * (mesh.size(atom) - 1));
    }
}

void ExhaustiveSearch::addGathers(size_t source) {
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    State next = nodes[source];
    if (next.dims[dim].empty())
      continue;
    AtomId atom = next.dims[dim].pop_back_val();
    addEdge(source, next, (mesh.size(atom) - 1) * units(nodes[source]));
  }
}

void ExhaustiveSearch::addAllToAlls(size_t source) {
  const State &state = nodes[source];
  // Pushes the atoms of `left` in every order to every dim that lost none.
  std::function<void(const State &, AtomList, const std::vector<bool> &, int64_t)> push =
      [&](const State &partly, AtomList left, const std::vector<bool> &loses, int64_t cost) {
        if (left.empty())
          return addEdge(source, partly, cost);
        for (AtomId atom : left) {
          AtomList rest = left;
          erase(rest, atom);
          for (size_t dim = 0; dim < shape.size(); ++dim)
            if (!loses[dim]) {
              State next = partly;
              next.dims[dim].push_back(atom);
              push(next, rest, loses, cost);
            }
        }
      };
  // Pops every number of atoms from every dim.
  std::function<void(size_t, const State &, AtomList, std::vector<bool>)> pop =
      [&](size_t dim, const State &partly, AtomList popped, std::vector<bool> loses) {
        if (dim == shape.size()) {
          int64_t group = mesh.product(popped);
          if (!popped.empty())
            push(partly, popped, loses, units(state) / group * (group - 1));
          return;
        }
        State next = partly;
        pop(dim + 1, next, popped, loses);
        loses[dim] = true;
        while (!next.dims[dim].empty()) {
          popped.push_back(next.dims[dim].pop_back_val());
          pop(dim + 1, next, popped, loses);
        }
      };
  pop(0, state, {}, std::vector<bool>(shape.size(), false));
}

// Elements that the busiest rank sends, by walking over all (receiver, holder) pairs of the mesh.
static int64_t exchangeElements(const AtomMesh &mesh, ArrayRef<int64_t> shape, const State &from, const State &to) {
  auto begin = [&](const State &state, size_t dim, int64_t rank, int64_t &width) {
    int64_t number = 0;
    for (AtomId atom : state.dims[dim])
      number = number * mesh.size(atom) + mesh.coordinate(rank, atom);
    width = shape[dim] / mesh.product(state.dims[dim]);
    return number * width;
  };
  auto sharesOthers = [&](int64_t a, int64_t b) {
    for (AtomId atom = 0; atom < mesh.numAtoms(); ++atom)
      if (!from.splits(atom) && mesh.coordinate(a, atom) != mesh.coordinate(b, atom))
        return false;
    return true;
  };
  int64_t most = 0;
  for (int64_t holder = 0; holder < mesh.numRanks(); ++holder) {
    int64_t sent = 0;
    for (int64_t receiver = 0; receiver < mesh.numRanks(); ++receiver) {
      if (receiver == holder || !sharesOthers(holder, receiver))
        continue;
      int64_t volume = 1;
      for (size_t dim = 0; dim < shape.size(); ++dim) {
        int64_t heldWidth, wantedWidth;
        int64_t held = begin(from, dim, holder, heldWidth), wanted = begin(to, dim, receiver, wantedWidth);
        volume *= std::max<int64_t>(0, std::min(held + heldWidth, wanted + wantedWidth) - std::max(held, wanted));
      }
      sent += volume;
    }
    most = std::max(most, sent);
  }
  return most;
}

void ExhaustiveSearch::addExchanges(size_t source) {
  for (const State &target : nodes)
    if (target.partial == nodes[source].partial)
      addEdge(source, target, exchangeElements(mesh, shape, nodes[source], target) * elementBytes * 1024);
}

std::vector<int64_t> ExhaustiveSearch::distancesFrom(size_t source, ArrayRef<AtomId> forbidden) const {
  std::vector<int64_t> distance(nodes.size(), std::numeric_limits<int64_t>::max());
  std::priority_queue<std::pair<int64_t, size_t>, std::vector<std::pair<int64_t, size_t>>, std::greater<>> queue;
  uint32_t forbiddenMask = 0;
  for (AtomId atom : forbidden)
    forbiddenMask |= 1u << atom;
  distance[source] = 0;
  queue.push({0, source});
  while (!queue.empty()) {
    auto [length, node] = queue.top();
    queue.pop();
    if (length > distance[node])
      continue;
    for (const Edge &edge : edges[node])
      if (length + edge.cost < distance[edge.target] && !(edge.newlySplit & forbiddenMask)) {
        distance[edge.target] = length + edge.cost;
        queue.push({distance[edge.target], edge.target});
      }
  }
  return distance;
}

} // namespace cleave::spmd::test
