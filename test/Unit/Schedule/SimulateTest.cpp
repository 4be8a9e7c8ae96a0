// Times, bubbles and peaks against closed forms, and against the numbers that the papers and their tables give.
#include "cleave/Schedule/Simulate.h"
#include "Bars.h"
#include "Tables.h"
#include "llvm/Testing/Support/Error.h"
#include "gtest/gtest.h"

using namespace cleave::schedule;

static Simulation run(const Schedule &schedule, const Costs &costs, MessageMode mode = MessageMode::Async) {
  llvm::Expected<Simulation> simulation = simulate(schedule, costs, mode);
  if (!simulation) {
    ADD_FAILURE() << llvm::toString(simulation.takeError());
    return {};
  }
  return std::move(*simulation);
}

static Simulation run(const Schedule &schedule) {
  return run(schedule, Costs::uniform(schedule.numStages, schedule.numStages / schedule.numRanks));
}

static double runWithLatency(Schedule schedule, double latency) {
  for (Channel &channel : schedule.channels)
    channel.latency = latency;
  return run(schedule).makespan;
}

using Counts = std::vector<int32_t>;

TEST(SimulateTest, GivesTheNumbersOfTheTableForFourRanksAndEightMicrobatches) {
  Simulation gpipe = run(makeGpipe(4, 8));
  EXPECT_EQ(gpipe.makespan, 33);
  EXPECT_DOUBLE_EQ(gpipe.bubbleMakespan, 3. / 11);
  EXPECT_EQ(gpipe.peak.live, (Counts{8, 8, 8, 8}));
  EXPECT_EQ(gpipe.messages, 48);
  Simulation oneFOneB = run(makeOneFOneB(4, 8));
  EXPECT_EQ(oneFOneB.makespan, 33);
  EXPECT_EQ(oneFOneB.peak.live, (Counts{4, 3, 2, 1}));
  EXPECT_EQ(run(makeOneFOneB(4, 8, /*isEager=*/true)).peak.held, (Counts{7, 5, 3, 1}));
  Simulation h1 = run(makeZeroBubbleH1(4, 8));
  EXPECT_EQ(h1.makespan, 27);
  EXPECT_DOUBLE_EQ(h1.bubbleSpan, 1. / 9);
  EXPECT_EQ(h1.peak.live, (Counts{4, 3, 2, 1}));
  EXPECT_EQ(h1.peak.held, (Counts{4, 4, 4, 4}));
  Simulation bfs = run(makeBreadthFirst(4, 8, 2));
  EXPECT_EQ(bfs.makespan, 28.5);
  EXPECT_DOUBLE_EQ(bfs.bubbleMakespan, 3. / 19);
  EXPECT_EQ(bfs.peak.live, (Counts{16, 16, 16, 16}));
  EXPECT_EQ(bfs.messages, 112);
}

TEST(SimulateTest, CountsLatencyPerHop) {
  for (auto [latency, gpipe, oneFOneB, h1] : {std::tuple(.5, 36., 41., 33.), std::tuple(1., 39., 49., 41.)}) {
    EXPECT_DOUBLE_EQ(runWithLatency(makeGpipe(4, 8), latency), gpipe);
    EXPECT_DOUBLE_EQ(runWithLatency(makeOneFOneB(4, 8), latency), oneFOneB);
    EXPECT_DOUBLE_EQ(runWithLatency(makeOneFOneB(4, 8, true), latency), gpipe);
    EXPECT_DOUBLE_EQ(runWithLatency(makeZeroBubbleH1(4, 8), latency), h1);
  }
  Schedule schedule = makeGpipe(4, 8);
  for (Channel &channel : schedule.channels)
    channel.bytes = 100;
  Costs costs = Costs::uniform(4, 1);
  costs.bandwidth = 200;
  EXPECT_DOUBLE_EQ(run(schedule, costs).makespan, 36);
}

TEST(SimulateTest, TakesCostsOfEachStage) {
  Costs costs = Costs::uniform(4, 1);
  for (std::vector<double> *values : {&costs.forward, &costs.inputGrad, &costs.weightGrad})
    (*values)[2] *= 2;
  EXPECT_EQ(run(makeGpipe(4, 8), costs).makespan, 57);
  EXPECT_EQ(run(makeOneFOneB(4, 8), costs).makespan, 55);
  EXPECT_EQ(run(makeZeroBubbleH1(4, 8), costs).makespan, 50);
}

TEST(SimulateTest, FollowsClosedForms) {
  int cases = 0;
  for (int32_t p = 1; p <= 9; ++p)
    for (int32_t m = 1; m <= 20; ++m) {
      double f = 1 + p % 3, i = 1 + m % 2, w = 1;
      Costs costs = Costs::uniform(p, 1, f, i, w);
      double work = m * (f + i + w), idle = (p - 1) * (f + i + w);
      EXPECT_DOUBLE_EQ(run(makeGpipe(p, m), costs).makespan, work + idle);
      EXPECT_DOUBLE_EQ(run(makeOneFOneB(p, m, true), costs).makespan, work + idle);
      Simulation simulation = run(makeOneFOneB(p, m), costs);
      EXPECT_DOUBLE_EQ(simulation.makespan, work + idle);
      for (int32_t rank = 0; rank < p; ++rank)
        EXPECT_EQ(simulation.peak.live[rank], std::min(m, p - rank));
      EXPECT_EQ(simulation.messages, 2 * m * (p - 1));
      EXPECT_DOUBLE_EQ(run(makeForward(p, m), costs).makespan, f * (m + p - 1));
      cases += 4;
    }
  EXPECT_EQ(cases, 720);
}

TEST(SimulateTest, HoldsNothingForABackwardPassThatNeverComes) {
  Simulation simulation = run(makeForward(3, 5));
  EXPECT_EQ(simulation.peak.live, (Counts{1, 1, 1}));
  EXPECT_EQ(simulation.peak.memory, (std::vector<double>{1, 1, 1}));
}

/// The highest step of what a picture draws.
static double getHighest(const Schedule &schedule, const Costs &costs, const Simulation &simulation, int32_t rank) {
  double highest = 0;
  for (auto [time, memory] : getMemoryCurve(schedule, costs, simulation, rank))
    highest = std::max(highest, memory);
  return highest;
}

// Rank 1 has two messages of 10 bytes while it computes, one of which it uses up: 1 for F, 5 for each.
TEST(SimulateTest, HoldsMessagesUntilTheirForwardHasEnded) {
  Schedule schedule = makeForward(2, 3);
  schedule.channels[0].bytes = 10;
  auto message = [](ActionKind kind, int32_t stage, int32_t microbatch) {
    Action action = makeAction(kind, stage, microbatch);
    action.other = 1 - stage;
    return action;
  };
  for (std::vector<Action> &program : schedule.programs)
    program.clear();
  for (int32_t i = 0; i < 3; ++i) {
    schedule.programs[0].push_back(makeAction(ActionKind::F, 0, i));
    schedule.programs[0].push_back(message(ActionKind::SendF, 0, i));
  }
  for (int32_t i = 0; i < 4; ++i) {
    if (i < 3)
      schedule.programs[1].push_back(message(ActionKind::RecvF, 1, i));
    if (i > 0)
      schedule.programs[1].push_back(makeAction(ActionKind::F, 1, i - 1));
  }
  Costs costs = Costs::uniform(2, 1);
  EXPECT_EQ(run(schedule, costs).peak.memory, (std::vector<double>{1, 1}));
  costs.memoryByte = 0.5;
  for (MessageMode mode : {MessageMode::Async, MessageMode::Rendezvous}) {
    Simulation simulation = run(schedule, costs, mode);
    EXPECT_EQ(simulation.peak.memory, (std::vector<double>{1, 11}));
    EXPECT_EQ(getHighest(schedule, costs, simulation, 0), 1);
    EXPECT_EQ(getHighest(schedule, costs, simulation, 1), 11);
    EXPECT_EQ(getMemoryCurve(schedule, costs, simulation, 1).back().second, 0);
  }
}

// Both parts of a pair are there at once, and take the time of the pair.
TEST(SimulateTest, RunsJoinedPairsAsOne) {
  Schedule schedule = makeSchedule("pair", {0}, 1, 2);
  schedule.programs[0] = {makeAction(ActionKind::F, 0, 0), makeAction(ActionKind::F, 0, 1),
                          makeAction(ActionKind::B, 0, 0), makeAction(ActionKind::B, 0, 1)};
  schedule.programs[0][1].isJoined = true;
  Costs costs = Costs::uniform(1, 1);
  EXPECT_EQ(run(schedule, costs).makespan, 6);
  costs.overlap = 2.5;
  Simulation simulation = run(schedule, costs);
  EXPECT_EQ(simulation.makespan, 5.5);
  EXPECT_EQ(simulation.busy[0], 5.5);
  EXPECT_EQ(simulation.peak.live[0], 2);
  EXPECT_EQ(simulation.times[0][1].start, simulation.times[0][2].start);
  EXPECT_EQ(simulation.times[0][2].end, 3.5);
}

TEST(SimulateTest, AddsMemoryInTheUnitsGiven) {
  Costs costs = Costs::uniform(4, 1);
  costs.memoryForward.assign(4, 66);
  costs.memoryInputGrad.assign(4, -34);
  costs.memoryWeightGrad.assign(4, -32);
  EXPECT_EQ(run(makeOneFOneB(4, 8), costs).peak.memory, (std::vector<double>{264, 198, 132, 66}));
  // Rank 3 holds the 32 of three W that have not run, and one F.
  EXPECT_EQ(run(makeZeroBubbleH1(4, 8), costs).peak.memory[3], 66 + 3 * 32);
}

// A message takes both ranks: with no latency GPipe is no slower; with it, each hop keeps two ranks busy.
TEST(SimulateTest, LetsSendersWaitUnderRendezvous) {
  Costs costs = Costs::uniform(4, 1);
  EXPECT_EQ(run(makeGpipe(4, 8), costs, MessageMode::Rendezvous).makespan, 33);
  Schedule two = makeForward(2, 3);
  two.channels[0].latency = 1;
  EXPECT_EQ(run(two, Costs::uniform(2, 1)).makespan, 5);
  // F0 | send 0 | F1 and F0 | send 1 | F2 and F1 | send 2 | F2
  EXPECT_EQ(run(two, Costs::uniform(2, 1), MessageMode::Rendezvous).makespan, 7);
}

static std::string getError(const Schedule &schedule, MessageMode mode = MessageMode::Async) {
  llvm::Expected<Simulation> simulation = simulate(schedule, Costs::uniform(schedule.numStages, 1), mode);
  return simulation ? "" : llvm::toString(simulation.takeError());
}

TEST(SimulateTest, NamesTheBlockedActionOfEachRankInACycle) {
  Schedule schedule = makeGpipe(3, 2);
  // Rank 1 waits for B1 of rank 2 before the F that this needs; rank 0 waits behind it, and is not in the cycle.
  std::swap(schedule.programs[1][1], schedule.programs[1][2]);
  std::swap(schedule.programs[2][2], schedule.programs[2][3]);
  EXPECT_EQ(getError(schedule), "deadlock: rank 1 at action 2, '1B0', waits for '2B0' of rank 2; "
                                "rank 2 at action 2, '2F1', waits for '1F1' of rank 1");
  schedule = makeGpipe(2, 1);
  schedule.programs[0].clear();
  EXPECT_EQ(getError(schedule), "rank 1 at action 1, '1F0', waits for '0F0' of rank 0, which has ended");
}

TEST(SimulateTest, FindsDeadlocksThatOnlyRendezvousHas) {
  Schedule schedule = makeOneFOneB(2, 2);
  auto message = [](ActionKind kind, int32_t stage, int32_t microbatch, int32_t other) {
    Action action = makeAction(kind, stage, microbatch);
    action.other = other;
    return action;
  };
  // Receive before use, send after produce: each rank stands at its own SEND.
  schedule.programs[0] = {makeAction(ActionKind::F, 0, 0),     message(ActionKind::SendF, 0, 0, 1),
                          makeAction(ActionKind::F, 0, 1),     message(ActionKind::SendF, 0, 1, 1),
                          message(ActionKind::RecvB, 0, 0, 1), makeAction(ActionKind::B, 0, 0),
                          message(ActionKind::RecvB, 0, 1, 1), makeAction(ActionKind::B, 0, 1)};
  schedule.programs[1] = {message(ActionKind::RecvF, 1, 0, 0), makeAction(ActionKind::F, 1, 0),
                          makeAction(ActionKind::B, 1, 0),     message(ActionKind::SendB, 1, 0, 0),
                          message(ActionKind::RecvF, 1, 1, 0), makeAction(ActionKind::F, 1, 1),
                          makeAction(ActionKind::B, 1, 1),     message(ActionKind::SendB, 1, 1, 0)};
  EXPECT_EQ(getError(schedule), "");
  EXPECT_EQ(getError(schedule, MessageMode::Rendezvous),
            "deadlock: rank 0 at action 4, '0SEND_F1', waits for rank 1; rank 1 at action 4, '1SEND_B0', waits for "
            "rank 0");
}

// Ranks meet where they reduce.
TEST(SimulateTest, WaitsForAllRanksOfAReduction) {
  Schedule schedule = makeForward(2, 2);
  schedule.reductions = {{"tied", {0, 1}}};
  Action reduce = makeAction(ActionKind::ReduceGrad, 0, -1);
  reduce.other = 0;
  schedule.programs[0].insert(schedule.programs[0].begin() + 1, reduce);
  schedule.programs[1].insert(schedule.programs[1].begin(), reduce);
  EXPECT_EQ(getError(schedule), "");
  EXPECT_EQ(getError(schedule, MessageMode::Rendezvous), "");
  // Rank 1 comes to it after what rank 0 computes behind it.
  std::rotate(schedule.programs[1].begin(), schedule.programs[1].begin() + 1, schedule.programs[1].end());
  EXPECT_EQ(getError(schedule, MessageMode::Rendezvous),
            "deadlock: rank 0 at action 3, '0REDUCE_GRAD', waits for rank 1; rank 1 at action 3, '1RECV_F1', waits for "
            "rank 0");
}
