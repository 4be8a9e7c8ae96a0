// Shapes: what is legal makes a table that is complete and runs, what is not says what is.
#include "Simulated.h"
#include "cleave/Schedule/Messages.h"
#include "llvm/ADT/STLExtras.h"
#include <set>

using namespace cleave::schedule;

/// One F, and in training one B or one I and one W, of every stage and microbatch on its rank.
static void expectComplete(const Schedule &schedule) {
  std::set<std::tuple<int32_t, int32_t, ActionKind>> seen;
  for (auto [rank, program] : llvm::enumerate(schedule.programs))
    for (const Action &action : program) {
      EXPECT_EQ(schedule.getRank(action.stage, action.microbatch), static_cast<int32_t>(rank));
      EXPECT_TRUE(seen.insert({action.stage, action.microbatch, action.kind}).second);
    }
  size_t backward = 0;
  for (const auto &[stage, microbatch, kind] : seen) {
    EXPECT_TRUE(seen.count({stage, microbatch, ActionKind::F}));
    backward += kind == ActionKind::B;
    if (kind == ActionKind::I || kind == ActionKind::W) {
      EXPECT_FALSE(seen.count({stage, microbatch, ActionKind::B}));
      EXPECT_TRUE(seen.count({stage, microbatch, kind == ActionKind::I ? ActionKind::W : ActionKind::I}));
      backward += kind == ActionKind::I;
    }
  }
  size_t pairs = size_t(schedule.numStages) * schedule.numMicrobatches;
  EXPECT_EQ(backward, schedule.isForwardOnly ? 0 : pairs);
  EXPECT_EQ(llvm::count_if(seen, [](const auto &entry) { return std::get<2>(entry) == ActionKind::F; }), pairs);
}

TEST(GenerateTest, EveryLegalShapeIsCompleteAndRunsUnderRendezvous) {
  size_t legal = 0;
  for (const GeneratorInfo &info : getGenerators())
    for (int32_t p = 1; p <= 8; ++p)
      for (int32_t m = 1; m <= 8; ++m)
        for (int32_t chunks = 1; chunks <= 4; ++chunks) {
          llvm::Expected<Schedule> schedule = generate(info.name, {p, m, chunks});
          if (!schedule) {
            EXPECT_FALSE(llvm::toString(schedule.takeError()).empty());
            continue;
          }
          SCOPED_TRACE(info.name.str() + " p=" + std::to_string(p) + " m=" + std::to_string(m) +
                       " v=" + std::to_string(chunks));
          ++legal;
          expectComplete(*schedule);
          if (llvm::Error error = addMessages(*schedule)) {
            ADD_FAILURE() << llvm::toString(std::move(error));
            continue;
          }
          llvm::Expected<Simulation> simulation =
              simulate(*schedule, Costs::uniform(schedule->numStages, chunks), MessageMode::Rendezvous);
          EXPECT_TRUE(static_cast<bool>(simulation)) << llvm::toString(simulation.takeError());
        }
  // 64 shapes of p and m: 7 linear names and forward, 3 of a V, any chunks for 3 names, two even ones, 16 even shapes
  // of Chimera, and DualPipe's (p, m): (2, 4) (2, 6) (2, 8) (4, 8), and -V's m >= 2p.
  EXPECT_EQ(legal, 64u * 8 + 64u * 3 + 64u * 4 * 3 + 64u * 2 + 16u + 4u + 16u);
}

TEST(GenerateTest, SaysWhatIsLegal) {
  auto message = [](llvm::StringRef name, Shape shape) {
    llvm::Expected<Schedule> schedule = generate(name, shape);
    return schedule ? std::string() : llvm::toString(schedule.takeError());
  };
  EXPECT_EQ(message("1f1b", {4, 8, 2}), "schedule \"1f1b\" has 1 chunks per rank, got 2");
  EXPECT_EQ(message("zb-v", {4, 8, 3}), "schedule \"zb-v\" has 2 chunks per rank, got 3");
  EXPECT_EQ(message("hanayo", {4, 8, 3}), "schedule \"hanayo\" has even chunks per rank, got 3");
  EXPECT_EQ(message("interleaved", {4, 8, -1}), "schedule \"interleaved\" has at least 1 chunks per rank, got -1");
  EXPECT_EQ(message("chimera", {3, 8}), "schedule \"chimera\" goes through the ranks both ways: their number is even, "
                                        "got 3");
  EXPECT_EQ(message("dualpipe", {2, 5}),
            "schedule \"dualpipe\" sends half of the microbatches each way: their number is even, got 5");
  EXPECT_EQ(message("dualpipe-v", {4, 7}),
            "schedule \"dualpipe-v\" has at least 2 microbatches per rank: 8 for 4 ranks, got 7");
  EXPECT_EQ(message("gpipe", {0, 1}), "a schedule has at least 1 rank, microbatch and step, got 0, 1 and 1");
  EXPECT_NE(message("2f2b", {4, 8}).find("no schedule is called '2f2b'; did you mean '1f1b'? there are gpipe, 1f1b, "),
            std::string::npos);
}

/// Interleaved schedules stay near their closed form where p does not divide m: the idle time of every shape is at most
/// that of one stage per rank.
TEST(GenerateTest, UnevenRoundsWaitNoLongerThanOneStagePerRank) {
  for (int32_t p = 2; p <= 8; ++p)
    for (int32_t m = p; m <= 4 * p; ++m)
      for (int32_t v = 2; v <= 4; ++v)
        EXPECT_LE(simulated("interleaved", {p, m, v}).makespan, simulated("1f1b", {p, m}).makespan + 1e-9)
            << "p=" << p << " m=" << m << " v=" << v;
}

/// As above: what waves are for. They hold no more than 2p microbatches, and send nothing at their turns.
TEST(GenerateTest, WavesWaitLessThanOneStagePerRank) {
  for (int32_t p = 2; p <= 8; ++p)
    for (int32_t m : {p, 2 * p})
      for (int32_t v : {2, 4}) {
        Simulation simulation = simulated("hanayo", {p, m, v});
        EXPECT_LT(simulation.makespan, simulated("1f1b", {p, m}).makespan) << "p=" << p << " m=" << m << " v=" << v;
        EXPECT_EQ(simulation.messages, int64_t(2) * m * v * (p - 1));
      }
  for (int32_t held : simulated("hanayo", {4, 32, 2}).peak.held)
    EXPECT_LE(held, 2 * 2 * 4);
}

TEST(GenerateTest, PipeDreamKeepsAVersionOfWeightsPerMicrobatchUnderWay) {
  using Counts = std::vector<int32_t>;
  Schedule pipedream = generated("pipedream", {4, 8, 0, 3});
  EXPECT_EQ(pipedream.numMicrobatches, 24);
  EXPECT_EQ(pipedream.weightVersions, (Counts{4, 3, 2, 1}));
  // No flush: the bubble is that of one batch however many there are.
  EXPECT_NEAR(simulated(pipedream).makespan, 3 * 24 + 9, 1e-9);
  EXPECT_EQ(generated("pipedream-2bw", {4, 8, 0, 3}).weightVersions, (Counts{2, 2, 2, 1}));
  EXPECT_EQ(generated("pipedream-2bw", {4, 8, 0, 1}).weightVersions, (Counts{1, 1, 1, 1}));
  EXPECT_EQ(generated("1f1b", {4, 8, 0, 3}).weightVersions, (Counts{1, 1, 1, 1}));
}

TEST(GenerateTest, BatchesFollowEachOther) {
  Schedule schedule = generated("chimera", {4, 4, 0, 2});
  expectComplete(schedule);
  EXPECT_EQ(schedule.replicas[1].microbatches, (std::vector<int32_t>{2, 3, 6, 7}));
}
