// Splits against a search over all splits, and the bottlenecks of shared fact sheets: exact min-max partitions of rows.
#include "cleave/Schedule/StageSplit.h"
#include "cleave/Schedule/Generate.h"
#include "gtest/gtest.h"
#include <random>

using namespace cleave::schedule;

/// Ops in a row, each using the one before.
static SplitProblem makeChain(std::vector<int64_t> times, int64_t bytes = 1) {
  SplitProblem problem;
  for (int64_t ns : times) {
    SplitOp op;
    op.ns = ns;
    op.name = "op" + std::to_string(problem.ops.size());
    problem.ops.push_back(op);
  }
  for (uint32_t op = 0; op + 1 < problem.ops.size(); ++op)
    problem.values.push_back({bytes, op, {op + 1}, "t" + std::to_string(op)});
  return problem;
}

static SplitOptions makeOptions(int32_t stages) {
  SplitOptions options;
  for (int32_t stage = 0; stage < stages; ++stage)
    options.placement.push_back(stage);
  return options;
}

static std::string getError(llvm::Expected<StageSplit> split) { return split ? "" : llvm::toString(split.takeError()); }

TEST(StageSplitTest, FindsTheLeastBottleneckOfKnownRows) {
  struct Known {
    std::vector<int64_t> times;
    int32_t stages;
    int64_t bottleneck;
  };
  std::vector<Known> known = {
      {{1, 2, 3, 4, 5, 6, 7, 8, 9}, 3, 17},       {{9, 1, 1, 1, 1, 1, 1, 9}, 4, 9},
      {{5, 1, 1, 1, 1, 1, 1, 5}, 4, 5},           {{8, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 10}, 4, 12},
      {{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5}, 4, 14}, {{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, 4, 3}};
  for (const Known &row : known) {
    StageSplit split = llvm::cantFail(splitStages(makeChain(row.times), makeOptions(row.stages)));
    EXPECT_EQ(split.bottleneckNs, row.bottleneck);
    EXPECT_LE(split.boundNs, split.bottleneckNs);
    EXPECT_EQ(split.stageOf.back(), row.stages - 1);
  }
}

namespace {
/// Random graphs: chains with skips, tied parameters, memory.
struct Generator {
  std::mt19937 engine;

  int64_t draw(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(engine); }

  SplitProblem makeProblem() {
    std::vector<int64_t> times(draw(4, 9));
    for (int64_t &ns : times)
      ns = draw(0, 9);
    SplitProblem problem = makeChain(times);
    for (int parameter = 0; parameter < 4; ++parameter)
      problem.parameterBytes.push_back(draw(1, 20));
    for (SplitOp &op : problem.ops) {
      op.savedBytes = draw(0, 5);
      op.temporaryBytes = draw(0, 5);
      op.parameters = {static_cast<uint32_t>(draw(0, 3))};
    }
    for (SplitValue &value : problem.values) {
      value.bytes = draw(1, 30);
      if (draw(0, 3) == 0)
        value.users.push_back(static_cast<uint32_t>(draw(value.producer + 1, problem.ops.size() - 1)));
    }
    return problem;
  }

  SplitOptions makeOptions(const SplitProblem &problem) {
    SplitOptions options = ::makeOptions(static_cast<int32_t>(draw(1, std::min<int64_t>(4, problem.ops.size()))));
    options.latencyNs = static_cast<double>(draw(0, 2));
    options.bytesPerNs = draw(0, 1) ? 4 : 0;
    options.overlapsSends = draw(0, 1);
    // Relayed, what crosses a split is what its link carries: the search's terms are the description's.
    options.relays = true;
    for (size_t stage = 0; stage < options.placement.size(); ++stage)
      options.inFlight.push_back(draw(1, 3));
    options.memoryLimit = draw(0, 2) ? draw(20, 90) : 0;
    options.microbatches = draw(1, 6);
    options.objective = draw(0, 1) ? SplitObjective::Latency : SplitObjective::Throughput;
    return options;
  }
};

/// What is to be made small, first and second.
std::pair<int64_t, int64_t> rate(const SplitOptions &options, const StageSplit &split) {
  int64_t crossing = 0, links = 0;
  for (int64_t bytes : split.crossingBytes)
    crossing += bytes;
  for (const StageSummary &stage : split.stages)
    links += stage.linkNs;
  if (options.objective == SplitObjective::Latency)
    return {links + (options.microbatches - 1) * split.bottleneckNs, 0};
  return {split.bottleneckNs, crossing};
}
} // namespace

/// The best of all splits of the ops as they stand; nothing if none fits.
static std::optional<std::pair<int64_t, int64_t>> searchAll(const SplitProblem &problem, const SplitOptions &options) {
  std::optional<std::pair<int64_t, int64_t>> best;
  for (uint32_t mask = 0; mask < 1u << (problem.ops.size() - 1); ++mask) {
    std::vector<int32_t> stageOf = {0};
    for (size_t op = 1; op < problem.ops.size(); ++op)
      stageOf.push_back(stageOf.back() + (mask >> (op - 1) & 1));
    if (stageOf.back() + 1 != static_cast<int32_t>(options.placement.size()))
      continue;
    llvm::Expected<StageSplit> split = describeStages(problem, options, stageOf);
    if (!split) {
      llvm::consumeError(split.takeError());
      continue;
    }
    std::pair<int64_t, int64_t> rated = rate(options, *split);
    best = best ? std::min(*best, rated) : rated;
  }
  return best;
}

TEST(StageSplitTest, EqualsASearchOverAllSplits) {
  int found = 0, refused = 0;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    Generator generator{std::mt19937(seed)};
    SplitProblem problem = generator.makeProblem();
    SplitOptions options = generator.makeOptions(problem);
    std::optional<std::pair<int64_t, int64_t>> best = searchAll(problem, options);
    llvm::Expected<StageSplit> split = splitStages(problem, options);
    ASSERT_EQ(static_cast<bool>(split), best.has_value()) << "seed " << seed;
    if (!split) {
      std::string message = llvm::toString(split.takeError());
      ASSERT_NE(message.find("the least limit that would do is "), std::string::npos) << message;
      options.memoryLimit = std::stoll(message.substr(message.rfind(' ')));
      EXPECT_TRUE(searchAll(problem, options)) << "seed " << seed;
      --options.memoryLimit;
      EXPECT_FALSE(searchAll(problem, options)) << "seed " << seed;
      ++refused;
      continue;
    }
    EXPECT_EQ(rate(options, *split), *best) << "seed " << seed;
    ++found;
  }
  EXPECT_GT(found, 1000);
  EXPECT_GT(refused, 100);
}

// Ranks of other speeds and memories: as good as the best of all splits, none of which is below the bound; where none fits, none is found.
TEST(StageSplitTest, EqualsASearchOverAllSplitsOfUnlikeRanks) {
  int found = 0, refused = 0;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    Generator generator{std::mt19937(seed)};
    SplitProblem problem = generator.makeProblem();
    SplitOptions options = generator.makeOptions(problem);
    for (size_t rank = 0; rank < options.placement.size(); ++rank) {
      options.speeds.push_back(static_cast<double>(generator.draw(1, 4)) / 4);
      options.memoryLimits.push_back(generator.draw(0, 3) ? generator.draw(20, 90) : 0);
    }
    std::optional<std::pair<int64_t, int64_t>> best = searchAll(problem, options);
    llvm::Expected<StageSplit> split = splitStages(problem, options);
    ASSERT_EQ(static_cast<bool>(split), best.has_value()) << "seed " << seed;
    ++(split ? found : refused);
    if (!split) {
      EXPECT_NE(llvm::toString(split.takeError()).find("do not fit into what each rank may hold"), std::string::npos);
      continue;
    }
    EXPECT_EQ(rate(options, *split), *best) << "seed " << seed;
    EXPECT_LE(split->boundNs, split->bottleneckNs) << "seed " << seed;
  }
  EXPECT_GT(found, 1000);
  EXPECT_GT(refused, 100);
}

// A rank at half the speed gets half as much: 8 of 12 equal ops on the fast one.
TEST(StageSplitTest, GivesSlowRanksLess) {
  SplitOptions options = makeOptions(2);
  options.speeds = {1, 0.5};
  StageSplit split = llvm::cantFail(splitStages(makeChain(std::vector<int64_t>(12, 10)), options));
  EXPECT_EQ(split.stages[0].numOps, 8u);
  EXPECT_EQ(split.bottleneckNs, 80);
  EXPECT_EQ(split.boundNs, 80);
}

/// Two stages on each rank: what fits is found or a limit is named, with which it is.
TEST(StageSplitTest, NamesALimitThatWouldDoForSeveralStagesOfARank) {
  int found = 0, refused = 0;
  for (unsigned seed = 0; seed < 1000; ++seed) {
    Generator generator{std::mt19937(seed)};
    SplitProblem problem = generator.makeProblem();
    SplitOptions options = makeOptions(0);
    options.placement = {0, 1, 1, 0};
    options.memoryLimit = generator.draw(30, 90);
    llvm::Expected<StageSplit> split = splitStages(problem, options);
    std::string message = split ? "" : llvm::toString(split.takeError());
    ++(message.empty() ? found : refused);
    if (message.empty())
      continue;
    ASSERT_NE(message.find("a limit that would do"), std::string::npos) << message;
    int64_t named = std::stoll(message.substr(message.rfind(' ')));
    EXPECT_GT(named, options.memoryLimit) << "seed " << seed;
    options.memoryLimit = named;
    EXPECT_EQ(getError(splitStages(problem, options)), "") << "seed " << seed;
  }
  EXPECT_GT(found, 100);
  EXPECT_GT(refused, 100);
}

TEST(StageSplitTest, TakesTheEarliestOfEqualSplits) {
  StageSplit split = llvm::cantFail(splitStages(makeChain({1, 1, 1}), makeOptions(2)));
  EXPECT_EQ(split.stageOf, (std::vector<int32_t>{0, 1, 1}));
}

TEST(StageSplitTest, SendsAValueOnceToEachRankThatUsesIt) {
  SplitProblem problem = makeChain({1, 1, 1, 1}, 10);
  problem.values[0].users = {1, 2, 3};
  SplitOptions options = makeOptions(4);
  StageSplit direct = llvm::cantFail(splitStages(problem, options));
  ASSERT_EQ(direct.stages[0].sends.size(), 3u);
  EXPECT_EQ(direct.stages[0].sends[2].to, 3);
  EXPECT_EQ(direct.crossingBytes, (std::vector<int64_t>{10, 20, 20}));
  options.relays = true;
  StageSplit relayed = llvm::cantFail(splitStages(problem, options));
  EXPECT_EQ(relayed.stages[0].sends.size(), 1u);
  EXPECT_EQ(relayed.stages[2].sends.size(), 2u);
  // Back on the rank that made it, or on one that has it: no second message.
  options.relays = false;
  options.placement = {0, 1, 1, 0};
  StageSplit turned = llvm::cantFail(splitStages(problem, options));
  ASSERT_EQ(turned.stages[0].sends.size(), 1u);
  EXPECT_EQ(turned.stages[0].sends[0].to, 1);
}

TEST(StageSplitTest, CountsATiedParameterOncePerStage) {
  SplitProblem problem = makeChain({1, 1, 1, 1});
  problem.parameterBytes = {100};
  problem.ops[0].parameters = problem.ops[1].parameters = problem.ops[3].parameters = {0};
  StageSplit split = llvm::cantFail(splitStages(problem, makeOptions(2)));
  EXPECT_EQ(split.stages[0].parameterBytes, 100);
  EXPECT_EQ(split.stages[1].parameterBytes, 100);
}

TEST(StageSplitTest, KeepsOpsOnOneRankWherePlacementComesBack) {
  SplitProblem problem = makeChain({1, 1, 1, 1, 1, 1});
  problem.together = {{0, 5}};
  SplitOptions options = makeOptions(2);
  EXPECT_EQ(
      getError(splitStages(problem, options)),
      "no 2 stages put the nodes on one rank that belong together; a placement that comes back to a rank, such as "
      "v, can");
  options.placement = {0, 1, 1, 0};
  StageSplit split = llvm::cantFail(splitStages(problem, options));
  EXPECT_EQ(options.placement[split.stageOf[0]], options.placement[split.stageOf[5]]);
  EXPECT_EQ(split.bottleneckNs, 2);
}

TEST(StageSplitTest, FinishesABranchBeforeTheNextWhereThatIsBetter) {
  // Two branches of three, written in turns: a split between them carries both unless one is finished first.
  SplitProblem problem = makeChain({1, 1, 1, 1, 1, 1, 1, 1});
  problem.values = {{1, 0, {1, 2}, "x"}, {50, 1, {3}, "a1"}, {50, 2, {4}, "b1"}, {50, 3, {5}, "a2"},
                    {50, 4, {6}, "b2"},  {50, 5, {7}, "a3"}, {50, 6, {7}, "b3"}};
  SplitOptions options = makeOptions(2);
  StageSplit split = llvm::cantFail(splitStages(problem, options));
  EXPECT_EQ(split.bottleneckNs, 4);
  EXPECT_EQ(split.crossingBytes, (std::vector<int64_t>{51}));
}

TEST(StageSplitTest, KeepsClustersWhole) {
  SplitProblem problem = makeChain({5, 5, 5, 5});
  problem.ops[1].cluster = problem.ops[2].cluster = 7;
  StageSplit split = llvm::cantFail(splitStages(problem, makeOptions(3)));
  EXPECT_EQ(split.stageOf, (std::vector<int32_t>{0, 1, 1, 2}));
  EXPECT_EQ(split.boundNs, 10);
  EXPECT_EQ(getError(splitStages(problem, makeOptions(4))), "4 stages are more than the 3 parts that can be cut apart");
  problem.ops[2].cluster = -1;
  problem.ops[3].cluster = 7;
  EXPECT_EQ(getError(splitStages(problem, makeOptions(2))),
            "nodes 'op1' and 'op3' cannot be kept in one stage: node 'op2' is between them");
  // All of one stage is together.
  EXPECT_EQ(llvm::cantFail(splitStages(problem, makeOptions(1))).stageOf, (std::vector<int32_t>{0, 0, 0, 0}));
}

TEST(StageSplitTest, NamesTheEdgeThatGoesBackward) {
  SplitProblem problem = makeChain({1, 1, 1});
  EXPECT_EQ(getError(describeStages(problem, makeOptions(2), {0, 1, 0})),
            "stage 0 needs what a later stage makes: node 'op1' of stage 1 makes 't1', which node 'op2' of stage "
            "0 uses");
  EXPECT_EQ(getError(describeStages(problem, makeOptions(3), {0, 0, 1})), "stage 2 of 3 has no ops");
}

/// 64 stages of 20,000 ops, more than there are positions (bench/ times 100,000): which are considered matters here.
TEST(StageSplitTest, CutsLongRowsAtPositionsOfLeastBytes) {
  std::vector<int64_t> times(20000, 10);
  SplitProblem problem = makeChain(times, 100);
  for (size_t value = 9; value < problem.values.size(); value += 10)
    problem.values[value].bytes = 1;
  StageSplit split = llvm::cantFail(splitStages(problem, makeOptions(64)));
  EXPECT_EQ(split.boundNs, 3125);
  EXPECT_LE(split.bottleneckNs, 3300);
  for (int64_t bytes : split.crossingBytes)
    EXPECT_EQ(bytes, 1);
}

/// Closed forms: what has gone down and not come back, or all; of zb-h1 W comes no later than that.
TEST(StageSplitTest, CountsWhatAStageKeepsAtOnce) {
  auto count = [](llvm::StringRef name, Shape shape) {
    llvm::Expected<Schedule> table = generate(name, shape);
    EXPECT_TRUE(bool(table));
    return countInFlight(*table);
  };
  EXPECT_EQ(count("1f1b", {4, 8}), (std::vector<int64_t>{4, 3, 2, 1}));
  EXPECT_EQ(count("gpipe", {3, 5}), (std::vector<int64_t>{5, 5, 5}));
  EXPECT_EQ(count("eager-1f1b", {3, 8}), (std::vector<int64_t>{5, 3, 1}));
  EXPECT_EQ(count("pipedream-2bw", {2, 2, 0, 3}), (std::vector<int64_t>{2, 1}));
}
