// Stages where somebody wants them: schedules without gradients stand anywhere, of all others ranks get other numbers.
#include "cleave/Schedule/Place.h"
#include "Simulated.h"
#include "cleave/Schedule/Check.h"
#include "cleave/Schedule/Messages.h"

#include <random>

using namespace cleave::schedule;

using Ranks = std::vector<int32_t>;

/// In units of a stage, under rendezvous as devices have it.
static double getSlots(Schedule schedule, MessageMode mode) {
  Costs costs = Costs::uniform(schedule.numStages, 1);
  EXPECT_TRUE(check(schedule, costs).violations.empty());
  if (llvm::Error error = addMessages(schedule)) {
    ADD_FAILURE() << llvm::toString(std::move(error));
    return 0;
  }
  EXPECT_TRUE(check(schedule, costs).violations.empty());
  return llvm::cantFail(simulate(schedule, costs, mode)).makespan;
}

/// How many microbatches have entered and not left at the worst moment, as the first rank sees it.
static int32_t countUnderWay(const Schedule &schedule) {
  int32_t underWay = 0, worst = 0;
  for (const Action &action : schedule.programs.front()) {
    underWay += (action.stage == 0) - (action.stage == schedule.numStages - 1);
    worst = std::max(worst, underWay);
  }
  return worst;
}

/// The last rank's work, its first F, and the way back: no order takes less.
TEST(PlaceTest, ReachesTheLeastTimeDownTheRanksAndBack) {
  for (int32_t p = 1; p <= 8; ++p)
    for (int32_t m = 1; m <= 12; ++m) {
      Schedule schedule = llvm::cantFail(generatePlaced("circular", {p, m, 2}, {Placement::V, {}}));
      EXPECT_EQ(schedule.replicas.front().placement, placeStages(Placement::V, p, 2));
      // As many enter as fit on the way, however many there are.
      EXPECT_LE(countUnderWay(schedule), 2 * p - 1);
      EXPECT_EQ(getSlots(schedule, MessageMode::Async), 2 * m + 2 * (p - 1)) << p << " ranks, " << m << " microbatches";
      getSlots(std::move(schedule), MessageMode::Rendezvous);
    }
}

/// Any stages on any ranks: complete, and it does not lock.
TEST(PlaceTest, RunsUnderRendezvousWhereverStagesAre) {
  std::mt19937 random(3);
  for (int32_t round = 0; round < 500; ++round) {
    int32_t ranks = 1 + static_cast<int32_t>(random() % 5), m = 1 + static_cast<int32_t>(random() % 7);
    Ranks wanted;
    for (int32_t rank = 0; rank < ranks; ++rank)
      wanted.push_back(rank);
    for (auto more = random() % 6; more > 0; --more)
      wanted.push_back(static_cast<int32_t>(random() % ranks));
    std::shuffle(wanted.begin(), wanted.end(), random);
    Schedule schedule = llvm::cantFail(generatePlaced("circular", {ranks, m}, {{}, wanted}));
    llvm::cantFail(numberRanks(schedule, {{}, wanted}));
    EXPECT_EQ(schedule.replicas.front().placement, wanted);
    EXPECT_GE(getSlots(std::move(schedule), MessageMode::Rendezvous), m);
  }
}

/// Neighbors on one rank hand on what they make without a message.
TEST(PlaceTest, SendsNothingWithinARank) {
  Schedule schedule = llvm::cantFail(generatePlaced("circular", {2, 3, 2}, {{}, {0, 0, 1, 1}}));
  llvm::cantFail(addMessages(schedule));
  EXPECT_EQ(llvm::cantFail(simulate(schedule, Costs::uniform(4, 2))).messages, 3);
}

/// Where other numbers do, the order is the schedule's own.
TEST(PlaceTest, KeepsTheOrderOfAScheduleWhereNumbersSuffice) {
  Schedule own = llvm::cantFail(generate("circular", {2, 4, 2}));
  PlacementRequest annotation{{}, {1, 0, 1, 0}};
  Schedule placed = llvm::cantFail(generatePlaced("circular", {2, 4, 2}, annotation));
  EXPECT_EQ(placed.programs, own.programs);
  llvm::cantFail(numberRanks(placed, annotation));
  EXPECT_EQ(placed.replicas.front().placement, annotation.ranks);
  EXPECT_EQ(placed.programs[1], own.programs[0]);
  Schedule turned = llvm::cantFail(generatePlaced("zb-v", {2, 4}, {{}, {1, 0, 0, 1}}));
  llvm::cantFail(numberRanks(turned, {{}, {1, -1, -1, 1}}));
  EXPECT_EQ(turned.replicas.front().placement, (Ranks{1, 0, 0, 1}));
}

TEST(PlaceTest, SaysWhatCannotBe) {
  auto getError = [](llvm::StringRef name, Shape shape, const PlacementRequest &annotation) {
    llvm::Expected<Schedule> schedule = generatePlaced(name, shape, annotation);
    return llvm::toString(schedule ? numberRanks(*schedule, annotation) : schedule.takeError());
  };
  EXPECT_EQ(getError("circular", {3, 4}, {{}, {0, 0, 1, 1}}),
            "no stage is wanted on rank 2: 4 stages are on ranks 0, 0, 1, 1");
  EXPECT_EQ(getError("circular", {2, 4, 1}, {{}, {0, -1, 0}}), "the plan has 3 stages by hand, schedule 'circular' 2");
  EXPECT_EQ(getError("forward", {2, 4}, {{}, {0, 5}}), "stage 1 cannot be on rank 5: there are 2 ranks");
  EXPECT_EQ(
      getError("forward", {2, 4}, {{}, {0, 0}}),
      "stage 1 cannot be on rank 0 where stage 0 is on rank 0: schedule 'forward' has them on two; of its stages it "
      "has on ranks 0, 1, or with other numbers for these");
  EXPECT_EQ(getError("forward", {2, 4}, {Placement::V, {}}),
            "the plan wants placement 'v', and schedule 'forward' has its stages on ranks 0, 1; 'v' have zb-v, v-half, "
            "v-min, dualpipe-v, circular, and auto can");
}
