//===- CollectiveTest.cpp - the table of collectives ----------------------===//
//
// What a kind does, held against what its collective is (docs/program-file.md, P21), and its name against that in the file.
//
//===----------------------------------------------------------------------===//
#include "cleave/Program/Collective.h"
#include "Program_generated.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <string>

using namespace cleave::program;

/// `all_to_all` as `AllToAll`.
static std::string toCamelCase(const std::string &word) {
  std::string name;
  bool isFirst = true;
  for (char letter : word) {
    if (letter != '_')
      name += isFirst ? char(std::toupper(letter)) : letter;
    isFirst = letter == '_';
  }
  return name;
}

TEST(Collective, IsCalledAsInTheFile) {
  for (file::CollectiveKind kind : file::EnumValuesCollectiveKind()) {
    auto own = static_cast<CollectiveKind>(kind);
    EXPECT_EQ(toCamelCase(getWord(own)), file::EnumNameCollectiveKind(kind));
    EXPECT_EQ(findCollective(getWord(own)), own);
  }
  EXPECT_FALSE(hasTensors(CollectiveKind::Barrier));
  EXPECT_STREQ(getWord(static_cast<CollectiveKind>(200)), "?");
}

// Of 4 ranks with operands of 4 elements: what comes of one, and what a ring or pairs send, by hand.
TEST(Collective, DoesWhatItsNameSays) {
  struct Expected {
    CollectiveKind kind;
    bool reduces;
    int operandPieces, resultPieces; ///< in n-ths of the larger one
    int timesSent;
    Traffic traffic;
  };
  constexpr int kRanks = 4;
  for (const Expected &expected : {Expected{CollectiveKind::AllReduce, true, kRanks, kRanks, 2, Traffic::TwoRings},
                                   Expected{CollectiveKind::AllGather, false, 1, kRanks, 1, Traffic::Ring},
                                   Expected{CollectiveKind::ReduceScatter, true, kRanks, 1, 1, Traffic::Ring},
                                   Expected{CollectiveKind::AllToAll, false, kRanks, kRanks, 1, Traffic::Pairwise}}) {
    CollectiveKind kind = expected.kind;
    SCOPED_TRACE(getWord(kind));
    EXPECT_TRUE(hasTensors(kind));
    EXPECT_EQ(reduces(kind), expected.reduces);
    EXPECT_EQ(expected.operandPieces * (gathers(kind) ? kRanks : 1),
              expected.resultPieces * (slices(kind) ? kRanks : 1));
    EXPECT_EQ(hasLargerResult(kind), expected.resultPieces > expected.operandPieces);
    EXPECT_EQ(hasOwnPiece(kind), expected.resultPieces != expected.operandPieces);
    EXPECT_EQ(getTurns(kind), expected.timesSent);
    EXPECT_EQ(getTraits(kind).traffic, expected.traffic);
    EXPECT_EQ(getTraffic(getWord(kind)), expected.traffic);
  }
  EXPECT_TRUE(keepsShape(CollectiveKind::AllReduce));
  EXPECT_FALSE(keepsShape(CollectiveKind::AllToAll)); // gathered and sliced along other dims
  EXPECT_EQ(getTraffic("permute"), Traffic::Direct);
}
