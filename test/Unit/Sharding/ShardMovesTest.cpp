//===- ShardMovesTest.cpp - who gives whom what when a sharding changes ---===//
//
// Held against the definition, element by element, and against the cost of an exchange, which is a closed form that
// shares nothing with the enumeration.
//
//===----------------------------------------------------------------------===//
#include "cleave/Sharding/ShardMoves.h"
#include "cleave/Sharding/ReshardPlanner.h"
#include "llvm/ADT/STLExtras.h"
#include <gtest/gtest.h>
#include <map>
#include <numeric>
#include <random>
#include <set>

using namespace cleave::spmd;

namespace {

using Ints = std::vector<int64_t>;

struct Change {
  Ints axes, shape;
  State from, to;
};

const std::vector<std::string> axisNames = {"x", "y", "z"};

void PrintTo(const Change &change, std::ostream *os) {
  AtomMesh mesh(change.axes);
  *os << "mesh " << testing::PrintToString(change.axes) << " shape " << testing::PrintToString(change.shape) << ": "
      << toString(mesh, axisNames, change.from) << " -> " << toString(mesh, axisNames, change.to);
}

/// Each atom splits a dim, is partial, or does nothing; the order inside a dim is random, too.
State randomState(std::mt19937 &random, const AtomMesh &mesh, unsigned rank) {
  State state = State::replicated(rank);
  std::vector<AtomId> atoms(mesh.numAtoms());
  std::iota(atoms.begin(), atoms.end(), 0);
  std::shuffle(atoms.begin(), atoms.end(), random);
  for (AtomId atom : atoms) {
    unsigned place = random() % (rank + 2);
    if (place < rank)
      state.dims[place].push_back(atom);
    else if (place == rank)
      state.addPartial(atom, ReductionKind::Sum);
  }
  return state;
}

/// Meshes with and without powers of two; extents that divide, and such that leave shards short or empty.
Change randomChange(std::mt19937 &random) {
  static const std::vector<Ints> meshes = {{2}, {4}, {6}, {2, 2}, {2, 3}, {4, 3}, {5, 2}, {2, 2, 3}, {12}, {2, 6}};
  Change change{meshes[random() % meshes.size()], {}, {}, {}};
  AtomMesh mesh(change.axes);
  for (unsigned dim = 0, rank = 1 + random() % 3; dim < rank; ++dim)
    change.shape.push_back(random() % 8 ? 1 + random() % 13 : 12);
  change.from = randomState(random, mesh, change.shape.size());
  change.to = randomState(random, mesh, change.shape.size());
  return change;
}

int64_t numberOf(const AtomMesh &mesh, const AtomList &atoms, int64_t rank) {
  int64_t number = 0;
  for (AtomId atom : atoms)
    number = number * mesh.size(atom) + mesh.coordinate(rank, atom);
  return number;
}

bool holds(const AtomMesh &mesh, const Ints &shape, const State &state, int64_t rank, const Ints &element) {
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    int64_t shards = mesh.product(state.dims[dim]), width = (shape[dim] + shards - 1) / shards;
    if (element[dim] / width != numberOf(mesh, state.dims[dim], rank))
      return false;
  }
  return true;
}

/// Calls back with every element of a box.
void forEachElement(const Ints &start, const Ints &extents, llvm::function_ref<void(const Ints &)> callback) {
  if (llvm::is_contained(extents, 0))
    return;
  for (Ints offset(extents.size(), 0);;) {
    Ints element = start;
    for (size_t dim = 0; dim < offset.size(); ++dim)
      element[dim] += offset[dim];
    callback(element);
    size_t dim = offset.size();
    while (dim > 0 && ++offset[dim - 1] == extents[dim - 1])
      offset[--dim] = 0;
    if (dim == 0)
      return;
  }
}

/// (target, element) -> source, for all that any rank has in the end.
using Sources = std::map<std::pair<int64_t, Ints>, int64_t>;

/// By definition: the one holder that differs from the target in atoms of `from`'s dims only.
Sources findSources(const AtomMesh &mesh, const Change &change) {
  Sources sources;
  auto sharesOthers = [&](int64_t source, int64_t target) {
    for (AtomId atom = 0; atom < mesh.numAtoms(); ++atom)
      if (!change.from.splits(atom) && mesh.coordinate(source, atom) != mesh.coordinate(target, atom))
        return false;
    return true;
  };
  for (int64_t target = 0; target < mesh.numRanks(); ++target)
    forEachElement(Ints(change.shape.size(), 0), change.shape, [&](const Ints &element) {
      if (!holds(mesh, change.shape, change.to, target, element))
        return;
      for (int64_t source = 0; source < mesh.numRanks(); ++source)
        if (sharesOthers(source, target) && holds(mesh, change.shape, change.from, source, element)) {
          EXPECT_TRUE(sources.insert({{target, element}, source}).second) << "two holders";
        }
    });
  return sources;
}

/// The pieces taken apart; fails where two of them have one element.
class Collector {
public:
  void add(const Piece &piece) {
    Ints start(piece.box.start.begin(), piece.box.start.end());
    Ints extents(piece.box.extents.begin(), piece.box.extents.end());
    EXPECT_GT(piece.box.numElements(), 0);
    forEachElement(start, extents, [&](const Ints &element) {
      EXPECT_TRUE(sources.insert({{piece.target, element}, piece.source}).second) << "an element comes twice";
    });
  }
  Sources sources;
};

TEST(ShardMovesTest, PiecesAreWhatTheDefinitionSays) {
  std::mt19937 random(1);
  for (int round = 0; round < 150; ++round) {
    Change change = randomChange(random);
    SCOPED_TRACE(testing::PrintToString(change));
    AtomMesh mesh(change.axes);
    ShardMoves moves(mesh, change.shape, change.from, change.to);
    Collector into, from;
    for (int64_t rank = 0; rank < mesh.numRanks(); ++rank) {
      std::vector<std::pair<Ints, int64_t>> order;
      auto isNext = [&](const Piece &piece) {
        order.push_back({Ints(piece.box.start.begin(), piece.box.start.end()), piece.target});
        return order.size() == 1 || order[order.size() - 2] < order.back();
      };
      moves.forEachInto(rank, [&](const Piece &piece) {
        EXPECT_EQ(piece.target, rank);
        EXPECT_TRUE(isNext(piece));
        into.add(piece);
      });
      order.clear();
      moves.forEachFrom(rank, [&](const Piece &piece) {
        EXPECT_EQ(piece.source, rank);
        EXPECT_TRUE(isNext(piece));
        from.add(piece);
      });
    }
    Sources expected = findSources(mesh, change);
    EXPECT_EQ(into.sources, expected);
    EXPECT_EQ(from.sources, expected);
  }
}

/// Ranks that one sends to, or gets from, at most, rank by rank.
int64_t countPeers(const AtomMesh &mesh, const ShardMoves &moves) {
  std::vector<std::set<int64_t>> targets(mesh.numRanks()), sources(mesh.numRanks());
  for (int64_t source = 0; source < mesh.numRanks(); ++source)
    moves.forEachFrom(source, [&](const Piece &piece) {
      if (piece.source == piece.target)
        return;
      targets[piece.source].insert(piece.target);
      sources[piece.target].insert(piece.source);
    });
  size_t most = 0;
  for (int64_t rank = 0; rank < mesh.numRanks(); ++rank)
    most = std::max({most, targets[rank].size(), sources[rank].size()});
  return most;
}

TEST(ShardMovesTest, TheLargestSenderIsTheCostOfAnExchange) {
  std::mt19937 random(2);
  unsigned moving = 0, uneven = 0;
  for (int round = 0; round < 4000; ++round) {
    Change change = randomChange(random);
    AtomMesh mesh(change.axes);
    ShardMoves moves(mesh, change.shape, change.from, change.to);
    int64_t most = 0;
    for (int64_t source = 0; source < mesh.numRanks(); ++source) {
      int64_t sent = 0;
      moves.forEachFrom(
          source, [&](const Piece &piece) { sent += piece.source == piece.target ? 0 : piece.box.numElements(); });
      most = std::max(most, sent);
    }
    ASSERT_EQ(exchangeBytes(mesh, change.shape, 4, change.from, change.to), most * 4) << testing::PrintToString(change);
    ASSERT_EQ(exchangePeers(mesh, change.shape, change.from, change.to), countPeers(mesh, moves))
        << testing::PrintToString(change);
    moving += most > 0;
    for (auto [extent, atoms] : llvm::zip_equal(change.shape, change.from.dims))
      uneven += extent % mesh.product(atoms) != 0;
  }
  EXPECT_GT(moving, 1000u);
  EXPECT_GT(uneven, 1000u);
}

// The picture of the header: 12 rows, three shards of 4 become two of 6.
TEST(ShardMovesTest, PiecesComeInOrder) {
  AtomMesh mesh({3, 2}); // rank = 2 x + y
  State from = State::replicated(1), to = State::replicated(1);
  from.dims[0] = {0};
  to.dims[0] = {1};
  Ints shape = {12};
  ShardMoves moves(mesh, shape, from, to);
  std::vector<Ints> into, sent;
  moves.forEachInto(4, [&](const Piece &p) { into.push_back({p.source, p.box.start[0], p.box.extents[0]}); });
  EXPECT_EQ(into, (std::vector<Ints>{{0, 0, 4}, {2, 4, 2}}));
  // Rank 2 (x = 1, y = 0) holds rows 4 to 7; those with y = 0 want the first half of the rows.
  moves.forEachFrom(2, [&](const Piece &p) { sent.push_back({p.target, p.box.start[0], p.box.extents[0]}); });
  EXPECT_EQ(sent, (std::vector<Ints>{{0, 4, 2}, {2, 4, 2}, {4, 4, 2}}));
}

// A gather over 8 ranks is from 7 others; to columns in place of rows, to 7. Halves of halves go to one neighbor. In the picture of the
// header those of one y have for each other what one of them has of it: two others.
TEST(ShardMovesTest, PeersAreCountedByHand) {
  AtomMesh mesh({8}), pairs({2, 2}), picture({3, 2});
  State rows = State::replicated(2), columns = rows, replicated = rows;
  rows.dims[0] = columns.dims[1] = mesh.atomsOf(0u);
  EXPECT_EQ(exchangePeers(mesh, Ints{16, 16}, rows, replicated), 7);
  EXPECT_EQ(exchangePeers(mesh, Ints{16, 16}, rows, columns), 7);
  EXPECT_EQ(exchangePeers(mesh, Ints{16, 16}, rows, rows), 0);
  EXPECT_EQ(exchangePeers(mesh, Ints{16, 0}, rows, replicated), 0);
  State xy = State::replicated(1), yx = xy, x = xy, y = xy;
  xy.dims[0] = {0, 1};
  yx.dims[0] = {1, 0};
  EXPECT_EQ(exchangePeers(pairs, Ints{8}, xy, yx), 1);
  x.dims[0] = {0};
  y.dims[0] = {1};
  EXPECT_EQ(exchangePeers(picture, Ints{12}, x, y), 2);
}

// One rank of 2^20 asks about its own pieces only.
TEST(ShardMovesTest, ARankDoesNotLookAtTheMesh) {
  AtomMesh mesh({1024, 1024});
  State from = State::replicated(2), to = State::replicated(2);
  from.dims = {mesh.atomsOf(0u), mesh.atomsOf(1u)};
  to.dims = {mesh.atomsOf(1u), mesh.atomsOf(0u)};
  Ints shape = {1 << 14, 1 << 14};
  ShardMoves moves(mesh, shape, from, to);
  std::vector<Ints> pieces;
  moves.forEachInto(1024 * 3 + 5, [&](const Piece &p) { pieces.push_back({p.source, p.box.numElements()}); });
  EXPECT_EQ(pieces, (std::vector<Ints>{{1024 * 5 + 3, 256}}));
}

} // namespace
