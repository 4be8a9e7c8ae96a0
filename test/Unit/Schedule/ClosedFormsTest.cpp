// What the literature says of its schedules, in closed form and in numbers, against their simulation.
#include "Simulated.h"
#include "llvm/ADT/STLExtras.h"

using namespace cleave::schedule;

static constexpr double kTolerance = 1e-9;
using Counts = std::vector<int32_t>;

/// Costs whose parts cannot stand for each other.
static constexpr TestCosts kCosts[] = {{1, 1, 1}, {1, 1.25, 0.75}, {2, 3, 1}};

/// Idle time of every rank, and messages.
static void expectAll(llvm::StringRef name, Shape shape, const TestCosts &costs, double idle, int64_t messages) {
  Simulation simulation = simulated(name, shape, costs);
  for (int32_t rank = 0; rank < shape.ranks; ++rank)
    EXPECT_NEAR(getIdle(simulation, rank), idle, kTolerance)
        << name.str() << " p=" << shape.ranks << " m=" << shape.microbatches << " v=" << shape.chunks << " rank "
        << rank;
  EXPECT_EQ(simulation.messages, messages) << name.str();
}

TEST(ClosedFormsTest, SchedulesWithoutSplitBackwardWaitForAWayDownAndBack) {
  for (const TestCosts &costs : kCosts)
    for (int32_t p = 1; p <= 9; ++p)
      for (int32_t m : {p, p + 1, 2 * p, 2 * p + 3, 5 * p}) {
        double idle = (p - 1) * (costs.forward + costs.inputGrad + costs.weightGrad);
        for (const char *name : {"gpipe", "1f1b", "eager-1f1b"})
          expectAll(name, {p, m}, costs, idle, int64_t(2) * m * (p - 1));
        for (int32_t r = 0; r < p; ++r) {
          EXPECT_EQ(simulated("gpipe", {p, m}, costs).peak.live[r], m);
          EXPECT_EQ(simulated("1f1b", {p, m}, costs).peak.live[r], std::min(m, p - r));
          EXPECT_EQ(simulated("eager-1f1b", {p, m}, costs).peak.live[r], std::min(m, 2 * (p - r) - 1));
        }
      }
}

TEST(ClosedFormsTest, ChunksDivideTheBubble) {
  for (const TestCosts &costs : kCosts)
    for (int32_t p = 2; p <= 6; ++p)
      for (int32_t v = 1; v <= 4; ++v)
        for (int32_t m : {p, 2 * p, 4 * p}) {
          double idle = (p - 1) * (costs.forward + costs.inputGrad + costs.weightGrad) / v;
          int64_t messages = int64_t(2) * m * (p * v - 1);
          expectAll("interleaved", {p, m, v}, costs, idle, messages);
          expectAll("bfs", {p, m, v}, costs, idle, messages);
          for (int32_t r = 0; r < p; ++r) {
            EXPECT_EQ(simulated("interleaved", {p, m, v}, costs).peak.live[r],
                      std::min(m * v, (v - 1) * p + 2 * (p - 1 - r) + 1));
            EXPECT_EQ(simulated("bfs", {p, m, v}, costs).peak.live[r], m * v);
          }
        }
}

/// Memory at most that of 1F1B's first rank; where I is as long as F, H1 waits by W less than 1F1B on each hop.
TEST(ClosedFormsTest, WeightGradientsFillTheBubblesOfH1) {
  for (const TestCosts &costs : {TestCosts{1, 1, 1}, TestCosts{2, 2, 1}, TestCosts{3, 3, 2}})
    for (int32_t p = 1; p <= 9; ++p)
      for (int32_t m : {2 * p, 2 * p + 3, 5 * p}) {
        Simulation simulation = simulated("zb-h1", {p, m}, costs);
        EXPECT_NEAR(getIdle(simulation, 0), (p - 1) * (costs.forward + costs.inputGrad - costs.weightGrad), kTolerance)
            << "p=" << p << " m=" << m;
        EXPECT_EQ(simulation.peak.held, Counts(p, p));
        EXPECT_EQ(simulation.messages, int64_t(2) * m * (p - 1));
      }
}

TEST(ClosedFormsTest, H2WaitsOnlyForWhatWeightGradientsCannotFill) {
  for (const TestCosts &costs : {TestCosts{1, 1, 1}, TestCosts{1, 1, 0.75}, TestCosts{2, 2, 1}, TestCosts{1, 1, 1.5}})
    for (int32_t p = 1; p <= 9; ++p)
      for (int32_t m : {2 * p, 3 * p, 5 * p}) {
        Simulation simulation = simulated("zb-h2", {p, m}, costs);
        double work = m * (costs.forward + costs.inputGrad + costs.weightGrad);
        double bubble = (p - 1) * std::max(0.0, costs.forward + costs.inputGrad - 2 * costs.weightGrad);
        EXPECT_NEAR(simulation.span, work + bubble, kTolerance) << "p=" << p << " m=" << m;
        EXPECT_EQ(simulation.peak.held, Counts(p, std::min(m, 2 * p - 1)));
      }
}

TEST(ClosedFormsTest, ShapesOfAVHoldWhatTheyPromise) {
  for (int32_t p = 1; p <= 12; ++p)
    for (int32_t m : {2 * p, 2 * p + 1, 4 * p}) {
      Simulation simulation = simulated("zb-v", {p, m});
      EXPECT_NEAR(simulation.span, 3 * m, kTolerance) << "p=" << p << " m=" << m;
      EXPECT_EQ(simulation.peak.held, Counts(p, 2 * p));
      EXPECT_EQ(simulation.messages, int64_t(4) * m * (p - 1));
    }
  for (int32_t p = 4; p <= 12; p += 2) {
    Simulation simulation = simulated("v-half", {p, 4 * p});
    EXPECT_NEAR(getIdle(simulation, 0), (3 * p - 7) / 2.0, kTolerance) << "p=" << p;
    EXPECT_EQ(simulation.peak.held, Counts(p, p + 2)) << "p=" << p;
  }
  for (auto [p, idle] : {std::pair{4, 11}, {6, 17}, {8, 27}, {10, 35}}) {
    Simulation simulation = simulated("v-min", {p, 4 * p});
    EXPECT_NEAR(getIdle(simulation, 0), idle / 2.0, kTolerance) << "p=" << p;
    EXPECT_EQ(*llvm::max_element(simulation.peak.held), 2 * ((p + 4) / 3)) << "p=" << p;
  }
}

TEST(ClosedFormsTest, DualPipeHidesBackwardBehindForward) {
  for (int32_t p = 2; p <= 10; p += 2)
    for (int32_t m : {2 * p, 3 * p, 6 * p}) {
      TestCosts costs{1, 1, 1, 0, 3};
      Simulation simulation = simulated("dualpipe", {p, m}, costs);
      EXPECT_NEAR(getIdle(simulation, 0), (p / 2 - 1) * (3.0 + 2 - 3), kTolerance) << "p=" << p << " m=" << m;
      EXPECT_EQ(*llvm::max_element(simulation.peak.held), p + 1) << "p=" << p;
      EXPECT_EQ(simulation.messages, int64_t(2) * m * (p - 1));
    }
}

/// p - 2 empty slots however many units of p microbatches (Li and Hoefler 2021), with F as long as B.
TEST(ClosedFormsTest, ChimeraJoinsItsUnits) {
  for (int32_t p = 2; p <= 8; p += 2)
    for (int32_t units = 1; units <= 3; ++units)
      expectAll("chimera", {p, p * units}, {1, 0.5, 0.5}, p - 2, int64_t(2) * p * units * (p - 1));
}

/// The fill of a ring: p - 1 slots, of a chunk each.
TEST(ClosedFormsTest, InferenceFillsThePipelineOnce) {
  for (int32_t p = 1; p <= 8; ++p)
    for (int32_t m : {1, p, 2 * p, 2 * p + 1, 5 * p}) {
      EXPECT_NEAR(simulated("forward", {p, m}).makespan, m + p - 1, kTolerance);
      for (int32_t v = 1; v <= 4 && m >= p; ++v)
        EXPECT_NEAR(simulated("circular", {p, m, v}).makespan, (m * v + p - 1.0) / v, kTolerance)
            << "p=" << p << " m=" << m << " v=" << v;
    }
}

namespace {
struct Golden {
  const char *name;
  int32_t chunks;
  double overlap, makespan, span;
  /// V-Min's third rank holds less before I than the four that the literature says of all.
  Counts live, held;
  int64_t messages;
};
} // namespace

/// Four ranks, eight microbatches, F = I = W = 1.
TEST(ClosedFormsTest, KnownNumbersOfFourRanks) {
  const Golden cases[] = {
      {"gpipe", 1, -1, 33, 33, {8, 8, 8, 8}, {8, 8, 8, 8}, 48},
      {"1f1b", 1, -1, 33, 33, {4, 3, 2, 1}, {4, 3, 2, 1}, 48},
      {"eager-1f1b", 1, -1, 33, 33, {7, 5, 3, 1}, {7, 5, 3, 1}, 48},
      {"interleaved", 2, -1, 28.5, 28.5, {11, 9, 7, 5}, {11, 9, 7, 5}, 112},
      {"interleaved", 3, -1, 27, 27, {15, 13, 11, 9}, {15, 13, 11, 9}, 176},
      {"bfs", 2, -1, 28.5, 28.5, {16, 16, 16, 16}, {16, 16, 16, 16}, 112},
      {"zb-h1", 1, -1, 27, 27, {4, 3, 2, 1}, {4, 4, 4, 4}, 48},
      {"zb-h2", 1, -1, 27, 24, {7, 5, 3, 1}, {7, 7, 7, 7}, 48},
      {"zb-v", 2, -1, 25.5, 24, {8, 8, 8, 8}, {8, 8, 8, 8}, 96},
      {"v-half", 2, -1, 26.5, 26.5, {6, 6, 6, 6}, {6, 6, 6, 6}, 96},
      {"v-min", 2, -1, 29.5, 29.5, {4, 4, 3, 4}, {4, 4, 4, 4}, 96},
      {"dualpipe", 1, 3, 26, 26, {5, 5, 5, 5}, {5, 5, 5, 5}, 48},
      {"dualpipe-v", 2, 1.5, 27, 27, {9, 9, 9, 9}, {9, 9, 9, 9}, 96},
  };
  for (const Golden &golden : cases) {
    Simulation simulation = simulated(golden.name, {4, 8, golden.chunks}, {1, 1, 1, 0, golden.overlap});
    SCOPED_TRACE(golden.name);
    EXPECT_NEAR(simulation.makespan, golden.makespan, kTolerance);
    EXPECT_NEAR(simulation.span, golden.span, kTolerance);
    EXPECT_NEAR(simulation.bubbleMakespan, 1 - 24 / golden.makespan, kTolerance);
    EXPECT_NEAR(simulation.bubbleSpan, 1 - 24 / golden.span, kTolerance);
    EXPECT_EQ(simulation.peak.live, golden.live);
    EXPECT_EQ(simulation.peak.held, golden.held);
    EXPECT_EQ(simulation.messages, golden.messages);
  }
}

TEST(ClosedFormsTest, KnownNumbersWithLatency) {
  struct {
    const char *name;
    int32_t chunks;
    double makespan[3];
  } cases[] = {{"gpipe", 1, {33, 36, 39}},           {"1f1b", 1, {33, 41, 49}},
               {"eager-1f1b", 1, {33, 36, 39}},      {"zb-h1", 1, {27, 33, 41}},
               {"interleaved", 2, {28.5, 35.5, 46}}, {"zb-h2", 1, {27, 28.5, 30}},
               {"zb-v", 2, {25.5, 32.5, 41.5}}};
  for (const auto &golden : cases)
    for (int step = 0; step < 3; ++step)
      EXPECT_NEAR(simulated(golden.name, {4, 8, golden.chunks}, {1, 1, 1, step * 0.5}).makespan, golden.makespan[step],
                  kTolerance)
          << golden.name << " latency " << step * 0.5;
}

TEST(ClosedFormsTest, KnownNumbersOfASlowStage) {
  for (auto [name, makespan] : {std::pair{"gpipe", 57.0}, {"1f1b", 55.0}, {"zb-h1", 50.0}, {"zb-h2", 50.0}}) {
    Schedule schedule = generated(name, {4, 8});
    Costs costs = Costs::uniform(4, 1);
    costs.forward[2] = costs.inputGrad[2] = costs.weightGrad[2] = 2;
    EXPECT_NEAR(llvm::cantFail(simulate(schedule, costs)).makespan, makespan, kTolerance) << name;
  }
}

TEST(ClosedFormsTest, KnownNumbersOfFewMicrobatches) {
  for (auto [name, makespan, span] : {std::tuple{"gpipe", 21.0, 21.0},
                                      {"1f1b", 21.0, 21.0},
                                      {"zb-h1", 15.0, 15.0},
                                      {"zb-h2", 16.0, 15.0},
                                      {"zb-v", 15.0, 15.0}}) {
    Simulation simulation = simulated(name, {4, 4});
    EXPECT_NEAR(simulation.makespan, makespan, kTolerance) << name;
    EXPECT_NEAR(simulation.span, span, kTolerance) << name;
  }
}
