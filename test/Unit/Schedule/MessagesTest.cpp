// Messages in one global order: what torch.distributed.pipelining places, counts, and freedom from deadlock.
#include "cleave/Schedule/Messages.h"
#include "Tables.h"
#include "cleave/Schedule/Simulate.h"
#include "llvm/ADT/StringExtras.h"
#include "gtest/gtest.h"

using namespace cleave::schedule;

static std::string getText(const std::vector<Action> &program) {
  std::string text;
  llvm::ListSeparator separator(",");
  for (const Action &action : program)
    text += std::string(llvm::StringRef(separator)) + getText(action);
  return text;
}

static void place(Schedule &schedule) {
  if (llvm::Error error = addMessages(schedule))
    FAIL() << llvm::toString(std::move(error));
}

// What _add_send_recv of torch 2.15 makes of the compute-only table.
TEST(MessagesTest, PlacesThemAsTorchDoes) {
  Schedule schedule = makeOneFOneB(3, 3);
  place(schedule);
  EXPECT_EQ(getText(schedule.programs[0]), "0F0,0SEND_F0,0F1,0SEND_F1,0F2,0SEND_F2,0RECV_B0,0B0,0RECV_B1,0B1,"
                                           "0RECV_B2,0B2");
  EXPECT_EQ(getText(schedule.programs[1]), "1RECV_F0,1F0,1SEND_F0,1RECV_F1,1F1,1SEND_F1,1RECV_B0,1RECV_F2,1B0,"
                                           "1SEND_B0,1F2,1SEND_F2,1RECV_B1,1B1,1SEND_B1,1RECV_B2,1B2,1SEND_B2");
  EXPECT_EQ(getText(schedule.programs[2]), "2RECV_F0,2F0,2RECV_F1,2B0,2SEND_B0,2F1,2RECV_F2,2B1,2SEND_B1,2F2,2B2,"
                                           "2SEND_B2");
}

TEST(MessagesTest, PlacesEachHopOnceAndLocksNowhere) {
  int tables = 0;
  for (int32_t p = 1; p <= 6; ++p)
    for (int32_t m = 1; m <= 9; ++m)
      for (const Schedule &before : {makeGpipe(p, m), makeOneFOneB(p, m), makeOneFOneB(p, m, true),
                                     makeZeroBubbleH1(p, m), makeBreadthFirst(p, m, 3), makeForward(p, m)}) {
        Schedule schedule = before;
        place(schedule);
        Costs costs = Costs::uniform(schedule.numStages, schedule.numStages / p);
        llvm::Expected<Simulation> async = simulate(schedule, costs);
        llvm::Expected<Simulation> rendezvous = simulate(schedule, costs, MessageMode::Rendezvous);
        ASSERT_TRUE(bool(async)) << llvm::toString(async.takeError());
        ASSERT_TRUE(bool(rendezvous)) << llvm::toString(rendezvous.takeError());
        EXPECT_GE(rendezvous->makespan, async->makespan);
        size_t messages = 0;
        for (const std::vector<Action> &program : schedule.programs)
          messages += llvm::count_if(program, [](const Action &action) { return isMessage(action.kind); });
        EXPECT_EQ(messages, 2 * size_t(async->messages));
        EXPECT_EQ(schedule.isComputeOnly(), async->messages == 0);
        removeMessages(schedule);
        EXPECT_EQ(schedule.programs, before.programs);
        ++tables;
      }
  EXPECT_EQ(tables, 324);
}

// Stage 0 feeds stages 1 and 2; stages 0 and 3 share a rank, so that their channel has no message.
TEST(MessagesTest, SendsToEveryConsumerOnAnotherRank) {
  Schedule schedule = makeSchedule("skips", {0, 1, 2, 0}, 3, 1);
  Channel skip, home;
  skip.from = 0, skip.to = 2;
  home.from = 0, home.to = 3;
  schedule.channels.insert(schedule.channels.begin() + 2, skip);
  schedule.channels.push_back(home);
  std::vector<Action> &first = schedule.programs[0];
  for (int32_t stage : {0, 3})
    first.push_back(makeAction(ActionKind::F, stage, 0));
  for (int32_t stage : {3, 0})
    first.push_back(makeAction(ActionKind::B, stage, 0));
  for (int32_t stage : {1, 2})
    schedule.programs[stage] = {makeAction(ActionKind::F, stage, 0), makeAction(ActionKind::B, stage, 0)};
  place(schedule);
  const std::vector<Action> &placed = schedule.programs[0];
  EXPECT_EQ(getText(placed), "0F0,0SEND_F0,0SEND_F0,3RECV_F0,3F0,3B0,3SEND_B0,0RECV_B0,0RECV_B0,0B0");
  EXPECT_EQ(placed[1].other, 1);
  EXPECT_EQ(placed[2].other, 2);
  EXPECT_EQ(getText(schedule.programs[2]), "2RECV_F0,2RECV_F0,2F0,2SEND_F0,2RECV_B0,2B0,2SEND_B0,2SEND_B0");
  llvm::Expected<Simulation> simulation = simulate(schedule, Costs::uniform(4, 1), MessageMode::Rendezvous);
  ASSERT_TRUE(bool(simulation)) << llvm::toString(simulation.takeError());
  EXPECT_EQ(simulation->messages, 8);
}

TEST(MessagesTest, SaysWhatBlocks) {
  Schedule schedule = makeGpipe(2, 2);
  std::swap(schedule.programs[0][1], schedule.programs[0][2]);
  std::swap(schedule.programs[1][2], schedule.programs[1][3]);
  llvm::Error error = addMessages(schedule);
  EXPECT_EQ(llvm::toString(std::move(error)), "deadlock: rank 0 at action 2, '0B0', waits for '1B0' of rank 1; "
                                              "rank 1 at action 2, '1F1', waits for '0F1' of rank 0");
}
