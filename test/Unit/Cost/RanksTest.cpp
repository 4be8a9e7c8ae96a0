// Ranks against each other: by hand, and against the simulation of schedules, which knows stages and no programs.
#include "cleave/Cost/Ranks.h"
#include "cleave/Schedule/Generate.h"
#include "cleave/Schedule/Messages.h"
#include "cleave/Schedule/Simulate.h"
#include "gtest/gtest.h"
#include <random>

using namespace cleave;
using namespace cleave::cost;

using Ranks = std::vector<std::vector<RankStep>>;

static RankStep work(double ns) { return {ns, -1, false}; }
static RankStep send(double ns, int64_t to) { return {ns, to, true}; }
static RankStep receive(int64_t from) { return {0, from, false}; }

TEST(RanksTest, ASenderWaitsForItsReceiver) {
  // Rank 1 is at work until 10: the message goes from 10 to 13, and both go on.
  std::optional<RanksTime> time = simulateRanks(Ranks{{work(4), send(3, 1), work(5)}, {work(10), receive(0), work(1)}});
  ASSERT_TRUE(time);
  EXPECT_DOUBLE_EQ(time->callNs, 18);
  EXPECT_DOUBLE_EQ(time->spanNs, 18);
}

TEST(RanksTest, WhatARankWaitsForFirstIsNoPartOfItsSpan) {
  std::optional<RanksTime> time = simulateRanks(Ranks{{work(4), send(3, 1)}, {receive(0), work(5)}});
  ASSERT_TRUE(time);
  EXPECT_DOUBLE_EQ(time->callNs, 12);
  EXPECT_DOUBLE_EQ(time->spanNs, 8); // Of rank 1, which is busy with the message from 4 on.
}

TEST(RanksTest, OneRankTakesWhatItTakes) {
  std::optional<RanksTime> time = simulateRanks(Ranks{{work(4), work(3)}});
  ASSERT_TRUE(time);
  EXPECT_DOUBLE_EQ(time->callNs, 7);
  EXPECT_DOUBLE_EQ(simulateRanks(Ranks{{}})->callNs, 0);
}

TEST(RanksTest, WhatWaitsForEverHasNoTime) {
  EXPECT_FALSE(simulateRanks(Ranks{{receive(1)}, {receive(0)}}));
  EXPECT_FALSE(simulateRanks(Ranks{{send(1, 1), send(1, 1)}, {receive(0)}}));
  EXPECT_FALSE(simulateRanks(Ranks{{send(1, 7)}}));
}

/// The programs of a table, with the times of its stages.
static Ranks makePrograms(const schedule::Schedule &table, const schedule::Costs &costs) {
  Ranks ranks;
  for (const auto &program : table.programs) {
    std::vector<RankStep> &steps = ranks.emplace_back();
    for (const schedule::Action &action : program) {
      if (action.kind == schedule::ActionKind::F) {
        steps.push_back(work(costs.forward[action.stage]));
        continue;
      }
      for (const schedule::Channel &channel : table.channels) {
        int64_t from = table.replicas.front().placement[channel.from],
                to = table.replicas.front().placement[channel.to];
        if (action.kind == schedule::ActionKind::SendF && channel.from == action.stage && from != to)
          steps.push_back(send(0, to));
        if (action.kind == schedule::ActionKind::RecvF && channel.to == action.stage && from != to)
          steps.push_back(receive(from));
      }
    }
  }
  return ranks;
}

TEST(RanksTest, AgreesWithTheSimulationOfSchedules) {
  std::mt19937 random(7);
  auto draw = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  int compared = 0;
  for (int round = 0; round < 200; ++round) {
    schedule::Shape shape;
    shape.ranks = draw(1, 6);
    shape.microbatches = draw(1, 9);
    schedule::Schedule table = llvm::cantFail(schedule::generate("forward", shape));
    schedule::Costs costs = schedule::Costs::uniform(table.numStages, 1);
    for (double &ns : costs.forward)
      ns = draw(1, 20);
    llvm::cantFail(schedule::addMessages(table));
    schedule::Simulation expected = llvm::cantFail(schedule::simulate(table, costs, schedule::MessageMode::Rendezvous));
    std::optional<RanksTime> time = simulateRanks(makePrograms(table, costs));
    ASSERT_TRUE(time);
    EXPECT_DOUBLE_EQ(time->callNs, expected.makespan);
    ++compared;
  }
  EXPECT_EQ(compared, 200);
}
