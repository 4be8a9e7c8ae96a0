//===- State.cpp - how one tensor lies on a mesh --------------------------===//
//
// Value semantics of states, their local extents, their text, and the table that interns them.
//
// A state is compared and copied far less often than it is asked for, so the solver handles numbers of interned states;
// two states are equal if and only if their numbers are.
//
//===----------------------------------------------------------------------===//
#include "cleave/Sharding/State.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cassert>

using namespace llvm;

namespace cleave::spmd {

State State::replicated(unsigned rank) {
  State state;
  state.dims.resize(rank);
  return state;
}

bool State::isReplicated() const {
  return partial.empty() && all_of(dims, [](const AtomList &dim) { return dim.empty(); });
}

bool State::splits(AtomId atom) const {
  return any_of(dims, [&](const AtomList &dim) { return is_contained(dim, atom); });
}

bool State::isPartialOver(AtomId atom) const { return is_contained(partial, atom); }

void State::addPartial(AtomId atom, ReductionKind newKind) {
  partial.insert(lower_bound(partial, atom), atom);
  // One value is partial by one kind at most; who adds a second atom has checked that.
  kind = newKind;
}

void State::removePartial(AtomId atom) {
  erase(partial, atom);
  if (partial.empty())
    kind = ReductionKind::Sum;
}

bool State::operator<(const State &other) const {
  return std::tie(dims, partial, kind) < std::tie(other.dims, other.partial, other.kind);
}

/// Lengths are part of it: [x][y] and [x, y][] have the same atoms in the same order.
static uint64_t hashState(const State &state) {
  SmallVector<uint8_t, 32> bytes{static_cast<uint8_t>(state.kind)};
  auto add = [&](const AtomList &atoms) {
    bytes.push_back(atoms.size());
    bytes.append(atoms.begin(), atoms.end());
  };
  add(state.partial);
  for_each(state.dims, add);
  return hashWords<uint8_t>(bytes);
}

// Rounded up: the last shards of an uneven dim are padded.
int64_t shardExtent(const AtomMesh &mesh, int64_t extent, ArrayRef<AtomId> atoms) {
  int64_t shards = mesh.product(atoms);
  return (extent + shards - 1) / shards;
}

SmallVector<int64_t, 4> localShape(const AtomMesh &mesh, ArrayRef<int64_t> shape, const State &state) {
  assert(shape.size() == state.rank() && "one extent per dim");
  SmallVector<int64_t, 4> result;
  for (auto [extent, atoms] : zip_equal(shape, state.dims))
    result.push_back(shardExtent(mesh, extent, atoms));
  return result;
}

bool isUneven(const AtomMesh &mesh, ArrayRef<int64_t> shape, const State &state) {
  return any_of(zip_equal(shape, state.dims),
                [&](const auto &dim) { return std::get<0>(dim) % mesh.product(std::get<1>(dim)) != 0; });
}

int64_t localBytes(const AtomMesh &mesh, ArrayRef<int64_t> shape, int64_t elementBytes, const State &state) {
  int64_t bytes = elementBytes;
  for (auto [extent, atoms] : zip_equal(shape, state.dims))
    bytes *= shardExtent(mesh, extent, atoms);
  return bytes;
}

static std::string formatAtoms(const AtomMesh &mesh, ArrayRef<std::string> axisNames, ArrayRef<SubAxis> axes) {
  return join(map_range(axes,
                        [&](const SubAxis &axis) {
                          bool isFull = axis.size == mesh.axisSize(axis.axis);
                          return axisNames[axis.axis] +
                                 (isFull ? "" : formatv(":({0}){1}", axis.preSize, axis.size).str());
                        }),
              ", ");
}

// The dialect's own spelling lives in a library that this one must not need.
static StringRef kindName(ReductionKind kind) {
  switch (kind) {
  case ReductionKind::Sum:
    return "sum";
  case ReductionKind::Prod:
    return "prod";
  case ReductionKind::Max:
    return "max";
  case ReductionKind::Min:
    return "min";
  }
  return "unknown";
}

void printState(raw_ostream &os, const AtomMesh &mesh, ArrayRef<std::string> axisNames, const State &state) {
  os << '[';
  interleaveComma(state.dims, os, [&](const AtomList &dim) {
    auto axes = mesh.subAxesOf(dim);
    std::string text = formatAtoms(mesh, axisNames, axes);
    os << (axes.empty() ? "_" : axes.size() == 1 ? text : "[" + text + "]");
  });
  os << ']';
  if (state.isPartial())
    os << " partial(" << formatAtoms(mesh, axisNames, mesh.subAxesOf(state.partial)) << ": " << kindName(state.kind)
       << ')';
}

std::string toString(const AtomMesh &mesh, ArrayRef<std::string> axisNames, const State &state) {
  std::string text;
  raw_string_ostream os(text);
  printState(os, mesh, axisNames, state);
  return text;
}

StateId StateTable::intern(const State &state) {
  StateId id = index.find(hashState(state), [&](StateId other) { return states[other] == state; });
  if (id == states.size())
    states.push_back(state);
  return id;
}

} // namespace cleave::spmd
