#include "cleave/Schedule/Schedule.h"
#include "cleave/Schedule/Check.h"
#include "cleave/Schedule/Generate.h"
#include "gtest/gtest.h"

using namespace cleave::schedule;

TEST(ScheduleTest, PlacesStagesAsTheirWordsSay) {
  using Places = std::vector<int32_t>;
  EXPECT_EQ(placeStages(Placement::Linear, 3, 1), (Places{0, 1, 2}));
  EXPECT_EQ(placeStages(Placement::Loop, 3, 2), (Places{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(placeStages(Placement::V, 3, 2), (Places{0, 1, 2, 2, 1, 0}));
  EXPECT_EQ(placeStages(Placement::Wave, 2, 4), (Places{0, 1, 1, 0, 0, 1, 1, 0}));
}

TEST(ScheduleTest, ReadsTheWordsThatItWrites) {
  for (int kind = 0; kind <= static_cast<int>(ActionKind::Update); ++kind)
    EXPECT_EQ(parseActionKind(getWord(static_cast<ActionKind>(kind))), static_cast<ActionKind>(kind));
  EXPECT_EQ(getWord(ActionKind::SendF), "SEND_F");
  EXPECT_EQ(parseActionKind("SEND"), std::nullopt);
  EXPECT_EQ(parsePlacement("wave"), Placement::Wave);
}

TEST(ScheduleTest, FindsTheRankOfAMicrobatchByItsReplica) {
  Schedule schedule = makeSchedule("two ways", {0, 1}, 2, 4);
  schedule.replicas[0].microbatches = {0, 1};
  schedule.replicas.push_back({{1, 0}, {2, 3}});
  schedule.indexReplicas();
  EXPECT_EQ(schedule.getRank(0, 1), 0);
  EXPECT_EQ(schedule.getRank(0, 2), 1);
  EXPECT_EQ(schedule.getRank(1, 3), 0);
}

TEST(ScheduleTest, KeepsAScheduleWithOtherNumbersOfRanks) {
  Schedule schedule = llvm::cantFail(generate("zb-v", {3, 6}));
  schedule.reductions = {{"tied", {0, 2}}};
  Schedule renumbered = schedule;
  renumberRanks(renumbered, {2, 0, 1});
  EXPECT_EQ(renumbered.replicas[0].placement, (std::vector<int32_t>{2, 0, 1, 1, 0, 2}));
  EXPECT_EQ(renumbered.reductions[0].ranks, (std::vector<int32_t>{2, 1}));
  EXPECT_EQ(renumbered.programs[2], schedule.programs[0]);
  EXPECT_EQ(renumbered.programs[1], schedule.programs[2]);
  renumbered.reductions.clear();
  EXPECT_TRUE(check(renumbered, Costs::uniform(6, 2)).violations.empty());
  EXPECT_EQ(llvm::cantFail(simulate(renumbered, Costs::uniform(6, 2))).makespan,
            llvm::cantFail(simulate(schedule, Costs::uniform(6, 2))).makespan);
}
