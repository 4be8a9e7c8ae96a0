// Updates in waits of ranks: no other action is later for them, and tables that have them too early are refused.
#include "cleave/Schedule/Updates.h"
#include "Tables.h"
#include "cleave/Schedule/Check.h"
#include "cleave/Schedule/Generate.h"
#include "cleave/Schedule/Messages.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Testing/Support/Error.h"
#include "gtest/gtest.h"

using namespace cleave::schedule;

/// Two stages a rank, whose second half is done while gradients of the first are under way.
static Schedule makeLateTable(int32_t ranks, int32_t microbatches) {
  Schedule schedule = makeBreadthFirst(ranks, microbatches, 2);
  for (Channel &channel : schedule.channels)
    channel.latency = 1;
  llvm::cantFail(addMessages(schedule));
  return schedule;
}

static Costs makeCosts(const Schedule &schedule, double update, double reduction) {
  Costs costs = Costs::uniform(schedule.numStages, 2);
  costs.update.assign(schedule.numStages, update);
  costs.reduction.assign(schedule.numStages, reduction);
  return costs;
}

static int64_t place(Schedule &schedule, const Costs &costs) {
  return llvm::cantFail(placeUpdates(schedule, costs, llvm::BitVector(schedule.numStages, true)));
}

TEST(UpdatesTest, FillWaitsAndDelayNothing) {
  int64_t total = 0;
  for (int32_t ranks : {2, 3, 4})
    for (int32_t microbatches : {2, 3, 5}) {
      Schedule late = makeLateTable(ranks, microbatches), early = late;
      Costs costs = makeCosts(late, 0.5, 0.25);
      int64_t count = place(early, costs);
      total += count;
      EXPECT_EQ(!listUpdated(early).empty(), count > 0);
      EXPECT_TRUE(check(early, costs).violations.empty());
      Simulation before = llvm::cantFail(simulate(late, costs)), after = llvm::cantFail(simulate(early, costs));
      EXPECT_EQ(before.makespan, after.makespan);
      EXPECT_EQ(after.bubbleMakespan < before.bubbleMakespan, count > 0);
      for (int32_t rank = 0; rank < ranks; ++rank) {
        std::vector<double> starts, own;
        for (const Interval &time : before.times[rank])
          starts.push_back(time.start);
        llvm::DenseMap<int32_t, double> gradients;
        for (auto [action, time] : llvm::zip_equal(early.programs[rank], after.times[rank])) {
          if (action.kind == ActionKind::B)
            gradients[action.stage] = time.end;
          if (action.kind != ActionKind::Update) {
            own.push_back(isCompute(action.kind) ? time.start : starts[own.size()]);
            continue;
          }
          EXPECT_GE(time.start, gradients[action.stage] + 0.25);
          EXPECT_EQ(time.end, time.start + 0.5);
        }
        EXPECT_EQ(own, starts);
      }
    }
  // Nearly everywhere is a rank that waits.
  EXPECT_GE(total, 8);
}

TEST(UpdatesTest, StayAtTheEndWhereNoWaitHasRoom) {
  Schedule schedule = makeLateTable(2, 3);
  EXPECT_EQ(place(schedule, makeCosts(schedule, 100, 0)), 0);
  EXPECT_EQ(place(schedule, makeCosts(schedule, 0.5, 100)), 0);
  EXPECT_EQ(llvm::cantFail(placeUpdates(schedule, makeCosts(schedule, 0.5, 0), llvm::BitVector(4))), 0);
  EXPECT_TRUE(listUpdated(schedule).empty());
  // Of one stage a rank the last W is the end of the row.
  Schedule single = makeOneFOneB(4, 8);
  llvm::cantFail(addMessages(single));
  EXPECT_EQ(place(single, makeCosts(single, 0.1, 0)), 0);
}

TEST(UpdatesTest, ComeBehindGradientsThatTakeNoTime) {
  // Of a stage whose weights are frozen W is empty: a wait that ends where it is has room for an update that takes no time, and is too early.
  for (int32_t microbatches : {2, 4}) {
    Schedule schedule = makeZeroBubbleH1(3, microbatches);
    for (Channel &channel : schedule.channels)
      channel.latency = 1;
    llvm::cantFail(addMessages(schedule));
    Costs costs = Costs::uniform(3, 1, 1, 1, 0);
    place(schedule, costs);
    EXPECT_TRUE(check(schedule, costs).violations.empty());
  }
}

TEST(UpdatesTest, ComeOnceBehindAllGradientsOnTheRankOfTheirStage) {
  Schedule schedule = makeGpipe(2, 2);
  auto checkWith = [&](int32_t rank, size_t position, ActionKind kind, int32_t stage) {
    Schedule wrong = schedule;
    auto &program = wrong.programs[rank];
    program.insert(program.begin() + position, makeAction(kind, stage, -1));
    std::vector<std::string> texts;
    for (const Violation &violation : check(wrong, Costs::uniform(2, 1)).violations)
      texts.push_back(violation.constraint + " " + violation.message);
    return llvm::join(texts, "\n");
  };
  EXPECT_EQ(checkWith(0, 4, ActionKind::Update, 0), "");
  EXPECT_EQ(checkWith(0, 3, ActionKind::Update, 0),
            "P10 rank 0 at action 4, '0UPDATE', comes before 1 gradients of its stage");
  EXPECT_EQ(checkWith(0, 0, ActionKind::Update, 0),
            "P10 rank 0 at action 1, '0UPDATE', comes before 2 gradients of its stage");
  EXPECT_EQ(checkWith(0, 4, ActionKind::Update, 1), "P6 rank 0 at action 5, '1UPDATE', belongs on rank 1");
  schedule.programs[0].push_back(makeAction(ActionKind::Update, 0, -1));
  EXPECT_EQ(checkWith(0, 5, ActionKind::Update, 0),
            "P10 rank 0 at action 6, '0UPDATE', updates a stage that is updated already");
  EXPECT_EQ(checkWith(0, 5, ActionKind::ReduceGrad, 0),
            "P10 rank 0 at action 6, '0REDUCE_GRAD', reduces gradients that have been used for an update");
  EXPECT_EQ(checkWith(0, 4, ActionKind::ReduceGrad, 0), "");
  Schedule forward = makeForward(2, 2);
  forward.programs[0].push_back(makeAction(ActionKind::Update, 0, -1));
  ASSERT_EQ(check(forward, Costs::uniform(2, 1)).violations.size(), 1u);
  EXPECT_EQ(check(forward, Costs::uniform(2, 1)).violations[0].message,
            "rank 0 at action 3, '0UPDATE', is in a schedule without gradients");
}

/// A table both ways through the ranks, each of which is the home of a stage and the guest of another one.
static Schedule makeTwoWays(llvm::StringRef name, int32_t ranks, int32_t microbatches) {
  Schedule schedule = llvm::cantFail(generate(name, {ranks, microbatches, 1}));
  for (Channel &channel : schedule.channels)
    channel.latency = 1;
  llvm::cantFail(addMessages(schedule));
  return schedule;
}

TEST(UpdatesTest, OfTwoWaysWaitForBothAndDelayNothing) {
  int64_t total = 0;
  for (llvm::StringRef name : {"dualpipe", "chimera"})
    for (int32_t ranks : {2, 4, 8}) {
      Schedule late = makeTwoWays(name, ranks, 2 * ranks), early = late;
      Costs costs = makeCosts(late, 0.25, 0.125);
      int64_t count = place(early, costs);
      total += count;
      EXPECT_EQ(static_cast<int64_t>(listUpdated(early).size()), count);
      // Their sums are messages like others: in one order at both ends, and no rank waits for one that waits for it.
      EXPECT_TRUE(check(early, costs).violations.empty()) << name.str() << " of " << ranks;
      Simulation before = llvm::cantFail(simulate(late, costs)), after = llvm::cantFail(simulate(early, costs));
      EXPECT_EQ(before.makespan, after.makespan);
      std::vector<double> gradients(ranks, 0);
      for (auto [program, times] : llvm::zip_equal(early.programs, after.times))
        for (auto [action, time] : llvm::zip_equal(program, times))
          if (action.kind == ActionKind::B || action.kind == ActionKind::W)
            gradients[action.stage] = std::max(gradients[action.stage], time.end);
      for (int32_t rank = 0; rank < ranks; ++rank) {
        auto getStarts = [&](const Schedule &schedule, const Simulation &simulation) {
          std::vector<double> starts;
          for (auto [action, time] : llvm::zip_equal(schedule.programs[rank], simulation.times[rank]))
            if (isCompute(action.kind))
              starts.push_back(time.start);
          return starts;
        };
        EXPECT_EQ(getStarts(late, before), getStarts(early, after));
        for (auto [action, time] : llvm::zip_equal(early.programs[rank], after.times[rank]))
          if (action.kind == ActionKind::Update) {
            EXPECT_EQ(early.replicas[0].placement[action.stage], rank);
            EXPECT_GE(time.start, gradients[action.stage] + 0.125);
          }
      }
    }
  EXPECT_GE(total, 6);
}

TEST(UpdatesTest, OfTwoWaysNeedWhatTheGuestSends) {
  Schedule schedule = makeTwoWays("dualpipe", 4, 8);
  Costs costs = makeCosts(schedule, 0.25, 0);
  ASSERT_GT(place(schedule, costs), 0);
  int32_t stage = listUpdated(schedule).front();
  int32_t home = schedule.replicas[0].placement[stage], guest = findGuests(schedule, stage).front();
  auto isSums = [&](const Action &action) { return action.kind == ActionKind::ReduceGrad && action.stage == stage; };
  auto checkWith = [&](llvm::function_ref<void(std::vector<Action> &)> edit) {
    Schedule wrong = schedule;
    edit(wrong.programs[guest]);
    CheckResult checked = check(wrong, costs);
    return checked.violations.empty() ? std::string() : checked.violations[0].message;
  };
  std::string text = checkWith([&](std::vector<Action> &row) { llvm::erase_if(row, isSums); });
  EXPECT_NE(text.find("comes before the gradients of both ways are together: rank " + std::to_string(guest) +
                      " has no '" + std::to_string(stage) + "REDUCE_GRAD'"),
            std::string::npos)
      << text << " at home on rank " << home;
  text = checkWith([&](std::vector<Action> &row) {
    llvm::erase_if(row, isSums);
    row.insert(row.begin(), makeAction(ActionKind::ReduceGrad, stage, -1));
  });
  // At the head of the row it is message 1, or comes before gradients: whichever is seen first.
  EXPECT_TRUE(text.find("where it is sent as message") != std::string::npos ||
              text.find("adds to gradients that have been reduced") != std::string::npos)
      << text;
}
