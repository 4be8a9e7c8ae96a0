//===- WindowMovesTest.cpp - who gives whom what of its edges -------------===//
//
// Held against the definition, element by element.
//
//===----------------------------------------------------------------------===//
#include "cleave/Sharding/WindowMoves.h"
#include "llvm/ADT/STLExtras.h"
#include <gtest/gtest.h>
#include <map>
#include <random>

using namespace cleave::spmd;

namespace {

using Ints = std::vector<int64_t>;

/// Calls back with every place of a box of `extents`.
template <typename Function> void forEachPlace(const Ints &extents, Function callback) {
  Ints place(extents.size());
  int64_t count = 1;
  for (int64_t extent : extents)
    count *= extent;
  for (int64_t number = 0; number < count; ++number) {
    int64_t rest = number;
    for (size_t dim = extents.size(); dim-- > 0; rest /= extents[dim])
      place[dim] = rest % extents[dim];
    callback(place);
  }
}

Ints piecesOf(llvm::ArrayRef<DimWindow> dims) {
  Ints pieces;
  for (const DimWindow &dim : dims)
    pieces.push_back(dim.pieces);
  return pieces;
}

/// The position there is for one beyond the ends. A mirror on each end turns back whatever goes beyond it.
int64_t bringInside(Beyond beyond, int64_t at, int64_t whole) {
  if (beyond == Beyond::Wrap)
    return ((at % whole) + whole) % whole;
  while (beyond == Beyond::Reflect && whole > 1 && (at < 0 || at >= whole))
    at = at < 0 ? -at : 2 * (whole - 1) - at;
  return std::min(std::max<int64_t>(at, 0), whole - 1);
}

/// By place in the value that it goes to: place that it comes from, and the member that has that.
using Moves = std::map<Ints, std::pair<Ints, int64_t>>;

/// What member `target` gets, straight from the definition.
Moves expectedInto(llvm::ArrayRef<DimWindow> dims, const Ints &target) {
  Ints extents;
  for (const DimWindow &dim : dims)
    extents.push_back(dim.high - dim.low);
  Moves moves;
  forEachPlace(extents, [&](const Ints &offset) {
    Ints to, from;
    int64_t source = 0;
    bool isThere = true;
    for (size_t i = 0; i < dims.size(); ++i) {
      int64_t whole = dims[i].size();
      to.push_back(target[i] * dims[i].step + dims[i].low + offset[i]);
      isThere &= target[i] < dims[i].takers && to[i] >= dims[i].first && to[i] < dims[i].end;
      isThere &= dims[i].beyond != Beyond::Fill || (to[i] >= 0 && to[i] < whole);
      from.push_back(bringInside(dims[i].beyond, to[i], whole));
      source = source * dims[i].pieces + from[i] / dims[i].extent;
    }
    if (isThere)
      moves[to] = {from, source};
  });
  return moves;
}

std::vector<DimWindow> randomDims(std::mt19937 &random) {
  std::vector<DimWindow> dims(1 + random() % 3);
  for (DimWindow &dim : dims) {
    dim.extent = 1 + random() % 4;
    dim.pieces = 1 + random() % 4;
    dim.step = dim.pieces == 1 ? 0 : int64_t(random() % 9) - 3;
    dim.low = int64_t(random() % 9) - 4;
    dim.high = dim.low + int64_t(random() % 7);
    dim.beyond = static_cast<Beyond>(random() % 4);
    if (random() % 2 == 0)
      dim.missing = random() % (dim.extent * dim.pieces);
    if (random() % 2 == 0) {
      dim.first = int64_t(random() % 9) - 4;
      dim.end = dim.first + int64_t(random() % 9);
      dim.takers = random() % 5;
    }
    if (random() % 3 == 0)
      dim = DimWindow::whole(dim.extent);
  }
  return dims;
}

TEST(WindowMovesTest, PiecesAreWhatTheDefinitionSays) {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::vector<DimWindow> dims = randomDims(random);
    Ints pieces = piecesOf(dims);
    std::vector<int64_t> sent;
    std::map<int64_t, std::set<int64_t>> sources, targets;
    int64_t target = 0;
    forEachPlace(pieces, [&](const Ints &place) {
      Moves moves;
      forEachWindowPiece(dims, target, [&](const WindowPiece &piece) {
        forEachPlace(Ints(piece.extents.begin(), piece.extents.end()), [&](const Ints &offset) {
          Ints from(piece.from.begin(), piece.from.end()), to(piece.to.begin(), piece.to.end());
          for (size_t dim = 0; dim < offset.size(); ++dim) {
            from[dim] += offset[dim];
            to[dim] += offset[dim];
          }
          EXPECT_TRUE(moves.insert({to, {from, piece.source}}).second) << "sent twice";
        });
      });
      Moves expected = expectedInto(dims, place);
      EXPECT_EQ(moves, expected);
      for (const auto &[to, move] : expected) {
        sent.resize(std::max<size_t>(sent.size(), move.second + 1));
        sent[move.second] += move.second != target;
        if (move.second == target)
          continue;
        sources[target].insert(move.second);
        targets[move.second].insert(target);
      }
      ++target;
    });
    EXPECT_EQ(countSentElements(dims), sent.empty() ? 0 : *llvm::max_element(sent));
    size_t peers = 0;
    for (const auto &partners : {sources, targets})
      for (const auto &[member, others] : partners)
        peers = std::max(peers, others.size());
    EXPECT_EQ(countPeers(dims), int64_t(peers));
  }
}

// Rows of 8 on 4 ranks: a window of 3 wants a row of each neighbor, of which the ranks in the middle have two.
TEST(WindowMovesTest, TheBusiestRankIsInTheMiddle) {
  EXPECT_EQ(countSentElements({{8, 4, 8, -1, 9}, DimWindow::whole(10)}), 20);
  EXPECT_EQ(countSentElements({{8, 2, 8, -1, 9}, DimWindow::whole(10)}), 10);
  // One position on each rank, and windows of five.
  EXPECT_EQ(countSentElements({{1, 8, 1, -2, 3}}), 4);
  EXPECT_EQ(countSentElements({{8, 4, 8, 0, 8}}), 0);
}

// Both neighbors; four of them where two positions each way are with other ranks; eight along two dims.
TEST(WindowMovesTest, PeersAreNeighbors) {
  DimWindow rows{8, 4, 8, -1, 9};
  EXPECT_EQ(countPeers({rows, DimWindow::whole(10)}), 2);
  EXPECT_EQ(countPeers({{8, 2, 8, -1, 9}}), 1);
  EXPECT_EQ(countPeers({{1, 8, 1, -2, 3}}), 4);
  EXPECT_EQ(countPeers({rows, rows}), 8);
  EXPECT_EQ(countPeers({{8, 4, 8, 0, 8}}), 0);
  EXPECT_EQ(countPeers({}), 0);
  EXPECT_EQ(countPeers({{0, 2, 0, -1, 1}}), 0);
}

// 8 rows of each of 4 ranks become 10, with 4 in the mirror in front: ranks at the ends have theirs in the mirror, and give two rows
// to those in the middle. Of 2 rows on 4 ranks and 6 in front rank 0 wants 6 and 5 in the mirror, of rank 3 and 2.
TEST(WindowMovesTest, TheMirrorIsOnesOwn) {
  EXPECT_EQ(countSentElements({{8, 4, 10, -4, 6, Beyond::Reflect}}), 2);
  EXPECT_EQ(countSentElements({{32, 2, 33, -1, 32, Beyond::Reflect}}), 0);
  std::vector<std::pair<int64_t, int64_t>> got;
  forEachWindowPiece({{2, 4, 4, -6, -4, Beyond::Reflect}}, 0,
                     [&](const WindowPiece &piece) { got.push_back({piece.source, piece.from[0]}); });
  EXPECT_EQ(got, (std::vector<std::pair<int64_t, int64_t>>{{3, 6}, {2, 5}}));
}

TEST(WindowMovesTest, WhatIsWantedIsWhatThereIs) {
  EXPECT_TRUE((DimWindow{4, 2, 4, 0, 4}).isIdentity());
  EXPECT_TRUE(DimWindow::whole(4).isIdentity());
  EXPECT_FALSE((DimWindow{4, 2, 2, 0, 4}).isIdentity());
  EXPECT_FALSE((DimWindow{4, 2, 4, 0, 3}).isIdentity());
  EXPECT_FALSE((DimWindow{4, 2, 4, -1, 4}).isIdentity());
}

// 7 rows on 2 ranks, 4 and 3: a window of 3 wants one row each way; behind the last one there is none, and nobody needs
// what would be the eighth's.
TEST(WindowMovesTest, PaddingIsNeitherSentNorWanted) {
  DimWindow rows{4, 2, 4, -1, 5, Beyond::Fill, /*missing=*/1, /*first=*/-1, /*end=*/8};
  EXPECT_EQ(countSentElements({rows, DimWindow::whole(10)}), 10);
  std::vector<int64_t> extents;
  forEachWindowPiece({rows}, 1, [&](const WindowPiece &piece) { extents.push_back(piece.extents[0]); });
  EXPECT_EQ(extents, (std::vector<int64_t>{1, 3}));
  // 3 rows on 4 ranks: the last one has none.
  DimWindow few{1, 4, 1, -1, 2, Beyond::Nearest, 1, -1, 4, /*takers=*/3};
  EXPECT_EQ(countSentElements({few}), 2);
  int64_t pieces = 0;
  forEachWindowPiece({few}, 3, [&](const WindowPiece &) { ++pieces; });
  EXPECT_EQ(pieces, 0);
}

// A rule's window over 7 positions, with a result of 4 by steps of two: [0, 4) and [4, 8), of which position 7 is padding of the op.
TEST(WindowMovesTest, WhatIsBeyondIsNoIdentity) {
  DimWindow window{4, 2, 4, 0, 4, Beyond::Fill, 1, 0, 8};
  EXPECT_FALSE(window.isIdentity());
  window.end = 7;
  EXPECT_TRUE(window.isIdentity());
}

TEST(WindowMovesTest, NothingIsSentOfNothing) {
  EXPECT_EQ(countSentElements({{0, 2, 0, -1, 1}}), 0);
  EXPECT_EQ(countSentElements({}), 0);
}

} // namespace
