//===- State.h - how one tensor lies on a mesh ------------------*- C++ -*-===//
//
// A *state* says per dim which atoms split it, major to minor, and over which atoms the value is partial. A dim of
// extent n split s ways has shards of w = ceil(n / s): shard i is rows [i*w, i*w + w), cut off at n, so the last ones
// may be short or empty and are stored padded to w. Atoms that occur nowhere hold copies.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SHARDING_STATE_H
#define CLEAVE_SHARDING_STATE_H

#include "cleave/Sharding/Mesh.h"
#include "cleave/Sharding/ShardingRule.h"
#include "cleave/Support/HashIndex.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <deque>

namespace cleave::spmd {

/// How one tensor lies on a mesh. No atom occurs twice.
struct State {
  /// Per dim the atoms that split it, major to minor.
  llvm::SmallVector<AtomList, 4> dims;
  /// Atoms over which the ranks hold terms of the value, ascending.
  AtomList partial;
  /// How those terms combine; `Sum` if there are none, so that equal states compare equal.
  ReductionKind kind = ReductionKind::Sum;

  /// Every rank holds the whole value.
  static State replicated(unsigned rank);

  unsigned rank() const { return dims.size(); }
  bool isPartial() const { return !partial.empty(); }
  bool isReplicated() const;
  /// True if `atom` splits a dim.
  bool splits(AtomId atom) const;
  bool isPartialOver(AtomId atom) const;
  /// True if `atom` occurs neither in a dim nor among the partial atoms: its ranks hold copies.
  bool isIdle(AtomId atom) const { return !splits(atom) && !isPartialOver(atom); }
  /// Adds `atom` to the partial ones, keeping them sorted.
  void addPartial(AtomId atom, ReductionKind newKind);
  /// Removes `atom` from the partial ones, if there.
  void removePartial(AtomId atom);

  bool operator==(const State &other) const {
    return dims == other.dims && partial == other.partial && kind == other.kind;
  }
  bool operator!=(const State &other) const { return !(*this == other); }
  /// A total order, the same on every run: by dims, then partial, then kind.
  bool operator<(const State &other) const;
};

/// Extent of one shard of a dim of `extent` split over `atoms`, padding included.
int64_t shardExtent(const AtomMesh &mesh, int64_t extent, llvm::ArrayRef<AtomId> atoms);
/// Extents of one rank's shard, padding included. Precondition: one extent per dim of `state`.
llvm::SmallVector<int64_t, 4> localShape(const AtomMesh &mesh, llvm::ArrayRef<int64_t> shape, const State &state);
/// True if some dim does not divide into its shards, so that the last ones are padded.
bool isUneven(const AtomMesh &mesh, llvm::ArrayRef<int64_t> shape, const State &state);
/// Bytes of one rank's shard, padding included.
int64_t localBytes(const AtomMesh &mesh, llvm::ArrayRef<int64_t> shape, int64_t elementBytes, const State &state);

/// As in plans: `[x, _, [y:(1)2, w]] partial(z: sum)`; `axisNames` in mesh order.
void printState(llvm::raw_ostream &os, const AtomMesh &mesh, llvm::ArrayRef<std::string> axisNames, const State &state);
std::string toString(const AtomMesh &mesh, llvm::ArrayRef<std::string> axisNames, const State &state);

/// Number of an interned state.
using StateId = uint32_t;

/// Interns states as dense numbers, so that they compare, hash and index tables as integers. States stay where they
/// are as the table grows.
class StateTable {
public:
  /// The number of `state`: the next free one if it is new.
  StateId intern(const State &state);
  const State &operator[](StateId id) const { return states[id]; }
  size_t size() const { return states.size(); }

private:
  std::deque<State> states;
  HashIndex index;
};

} // namespace cleave::spmd

#endif // CLEAVE_SHARDING_STATE_H
