//===- PartMovesTest.cpp - parts of a concatenation to their places -------===//
//
// Held against the definition, position by position.
//
//===----------------------------------------------------------------------===//
#include "cleave/Sharding/PartMoves.h"
#include "llvm/ADT/STLExtras.h"
#include <gtest/gtest.h>
#include <numeric>
#include <random>
#include <set>

using namespace cleave::spmd;

namespace {

using Ints = std::vector<int64_t>;

/// Who has a position of all parts together, and where among what it has.
struct Owner {
  int64_t member, place;
};

int64_t shardOf(int64_t extent, int64_t members) { return (extent + members - 1) / members; }

/// Every position of all parts, in order.
std::vector<Owner> ownersOf(const Ints &parts, int64_t members) {
  std::vector<Owner> owners;
  int64_t held = 0;
  for (int64_t part : parts) {
    int64_t shard = shardOf(part, members);
    for (int64_t at = 0; at < part; ++at)
      owners.push_back({at / shard, held + at % shard});
    held += shard;
  }
  return owners;
}

using Pairs = std::set<std::pair<int64_t, int64_t>>; // source, target

/// Others that a member sends to, or gets from, at most.
int64_t countPeers(const Pairs &pairs, int64_t members) {
  int64_t most = 0;
  for (int64_t member = 0; member < members; ++member) {
    auto isFrom = [&](auto pair) { return pair.first == member && pair.second != member; };
    auto isTo = [&](auto pair) { return pair.second == member && pair.first != member; };
    most = std::max<int64_t>({most, llvm::count_if(pairs, isFrom), llvm::count_if(pairs, isTo)});
  }
  return most;
}

void expectDefinition(const Ints &parts, int64_t members) {
  std::vector<Owner> owners = ownersOf(parts, members);
  int64_t wanted = shardOf(owners.size(), members);
  Ints sent(members, 0);
  Pairs pairs;
  for (int64_t target = 0; target < members; ++target) {
    int64_t at = target * wanted;
    forEachPartPiece(parts, members, target, [&](const PartPiece &piece) {
      EXPECT_EQ(piece.to, at - target * wanted);
      for (int64_t i = 0; i < piece.extent; ++i, ++at) {
        ASSERT_LT(at, int64_t(owners.size()));
        EXPECT_EQ(piece.source, owners[at].member);
        EXPECT_EQ(piece.from + i, owners[at].place);
        sent[piece.source] += piece.source != target;
        pairs.insert({owners[at].member, target});
      }
    });
    EXPECT_EQ(at, std::max(std::min<int64_t>((target + 1) * wanted, owners.size()), target * wanted));
  }
  EXPECT_EQ(countSentOfParts(parts, members), *llvm::max_element(sent));
  EXPECT_EQ(countPeersOfParts(parts, members), countPeers(pairs, members));
}

/// Every position that a member wants of its shards, in order: whose it is.
void expectSplitDefinition(const Ints &parts, int64_t members) {
  int64_t all = std::accumulate(parts.begin(), parts.end(), int64_t(0)), held = shardOf(all, members);
  Ints sent(members, 0);
  Pairs pairs;
  for (int64_t target = 0; target < members; ++target) {
    std::vector<std::pair<Owner, int64_t>> wanted; // with the place among what it makes
    int64_t start = 0, made = 0;
    for (int64_t part : parts) {
      int64_t shard = shardOf(part, members);
      for (int64_t at = target * shard; at < std::min((target + 1) * shard, part); ++at)
        wanted.push_back({{(start + at) / held, (start + at) % held}, made + at - target * shard});
      start += part;
      made += shard;
    }
    size_t next = 0;
    forEachSplitPiece(parts, members, target, [&](const PartPiece &piece) {
      for (int64_t i = 0; i < piece.extent; ++i, ++next) {
        ASSERT_LT(next, wanted.size());
        EXPECT_EQ(piece.source, wanted[next].first.member);
        EXPECT_EQ(piece.from + i, wanted[next].first.place);
        EXPECT_EQ(piece.to + i, wanted[next].second);
        sent[piece.source] += piece.source != target;
        pairs.insert({wanted[next].first.member, target});
      }
    });
    EXPECT_EQ(next, wanted.size());
  }
  EXPECT_EQ(countSentOfSplit(parts, members), *llvm::max_element(sent));
  EXPECT_EQ(countPeersOfSplit(parts, members), countPeers(pairs, members));
}

TEST(PartMovesTest, PiecesAreWhatTheDefinitionSays) {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    int64_t members = 1 + random() % 6;
    bool divides = random() % 2;
    Ints parts(1 + random() % 6);
    for (int64_t &part : parts)
      part = random() % 5 * (divides ? members : 1);
    expectDefinition(parts, members);
    expectSplitDefinition(parts, members);
  }
}

// Of twelve parts a rank wants three, 6 of its 24 positions being its own.
TEST(PartMovesTest, EachRankKeepsAQuarter) {
  EXPECT_EQ(countSentOfParts(Ints(12, 8), 4), 18);
  EXPECT_EQ(countPeersOfParts(Ints(12, 8), 4), 3);
  // Two parts of 4 on 2 ranks: each gives 2 positions of one part.
  EXPECT_EQ(countSentOfParts({4, 4}, 2), 2);
  EXPECT_EQ(countSentOfParts({4}, 2), 0);
}

// Queries, keys and values of 4 positions on 4 ranks are 12 positions, 3 on each, of which a rank has one of its own: q0 q1 q2,
// q3 k0 k1, k2 k3 v0, v1 v2 v3. On two ranks the first has q, and half of k, and gives a half of q.
TEST(PartMovesTest, ThreePartsAreTakenApartAtOnce) {
  EXPECT_EQ(countSentOfSplit({4, 4, 4}, 4), 2);
  EXPECT_EQ(countPeersOfSplit({4, 4, 4}, 4), 2);
  EXPECT_EQ(countSentOfSplit({4, 4, 4}, 2), 2);
  EXPECT_EQ(countSentOfSplit({8}, 4), 0);
}

// Of 5 and 3 positions rank 0 has 3 and 2, and wants positions 0 to 3: it gets 3 from rank 1, and gives 5 and 6.
TEST(PartMovesTest, UnevenShardsEndInNothing) { EXPECT_EQ(countSentOfParts({5, 3}, 2), 2); }

} // namespace
