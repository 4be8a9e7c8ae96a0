// Bounds: never above what some schedule reaches, and exactly what can be said of known cases.
#include "RandomCandidates.h"
#include "Simulated.h"
#include "llvm/ADT/STLExtras.h"

using namespace cleave::schedule;

/// The memory that a schedule needs becomes the limit: the bound for it may not be above what the schedule takes.
static void expectBelow(Schedule schedule, Costs costs) {
  Simulation free = llvm::cantFail(simulate(schedule, costs));
  costs.memoryLimit = free.peak.memory;
  LowerBound bound = computeLowerBound(schedule, costs);
  EXPECT_LE(bound.span, free.span * (1 + 1e-12)) << schedule.name << ": " << bound.why;
  EXPECT_LE(bound.makespan, free.makespan * (1 + 1e-12)) << schedule.name << ": " << bound.why;
  if (costs.overlap < 0)
    EXPECT_GE(bound.span, *llvm::max_element(free.busy) * (1 - 1e-12)) << schedule.name << ": " << bound.why;
}

TEST(BoundsTest, NoNamedScheduleBeatsThem) {
  std::mt19937 random(3);
  for (const GeneratorInfo &info : getGenerators())
    for (int32_t round = 0; round < 60; ++round) {
      Shape shape;
      shape.ranks = 1 + static_cast<int32_t>(random() % 6);
      shape.microbatches = 1 + static_cast<int32_t>(random() % 16);
      llvm::Expected<Schedule> schedule = generate(info.name, shape);
      if (!schedule) {
        llvm::consumeError(schedule.takeError());
        continue;
      }
      SearchCandidate drawn = makeRandomCandidate(random, Placement::Loop, 1, schedule->numStages, 1, 1);
      for (Channel &channel : schedule->channels)
        channel.latency = static_cast<double>(random() % 3);
      if (round % 3 == 0)
        drawn.costs.overlap = 3;
      expectBelow(*schedule, drawn.costs);
    }
}

/// Zero Bubble's table, first row: what fits into 2p activations leaves rank 0 waiting, which is the published .0433.
TEST(BoundsTest, IsThePublishedRateWhereThatIsOptimal) {
  Schedule schedule = makeSchedule("", placeStages(Placement::Linear, 8, 1), 8, 24);
  for (Channel &channel : schedule.channels)
    channel.latency = 0.601;
  Costs costs = Costs::uniform(8, 1, 18.522, 18.086, 9.337);
  costs.memoryForward.assign(8, 66);
  costs.memoryInputGrad.assign(8, -34);
  costs.memoryWeightGrad.assign(8, -32);
  costs.memoryLimit.assign(8, 66 * 16);
  LowerBound bound = computeLowerBound(schedule, costs);
  EXPECT_NEAR(1 - 24 * (18.522 + 18.086 + 9.337) / bound.span, 0.0433, 5e-5);
  EXPECT_EQ(bound.why, "rank 0 waits for what goes through rank 7 and back");
}

TEST(BoundsTest, CountsWhatMemoryLeavesTimeFor) {
  Schedule schedule = makeSchedule("", placeStages(Placement::Linear, 4, 1), 4, 8);
  // Without a limit F fill all time before the first I: nothing but work is left.
  EXPECT_NEAR(computeLowerBound(schedule, Costs::uniform(4, 1)).span, 24, 1e-9);
  // 3 slots down, 1 F there, 3 back: 7 slots; four of them can be F. ZB-H1 needs 27 with that memory.
  Costs costs = Costs::uniform(4, 1);
  costs.memoryLimit.assign(4, 4);
  EXPECT_NEAR(computeLowerBound(schedule, costs).span, 27, 1e-9);
  // The last rank ends after rank 0 began by three hops, and rank 0 after it by as many.
  EXPECT_NEAR(computeLowerBound(schedule, costs).makespan, 27, 1e-9);
}
