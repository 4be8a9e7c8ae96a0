#include "cleave/Schedule/Schedule.h"
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
  for (int kind = 0; kind <= static_cast<int>(ActionKind::ReduceGrad); ++kind)
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
