// Tables that torch wrote are read, what is written is read back as it was, and hostile files get a located error.
#include "cleave/Schedule/Text.h"
#include "Tables.h"
#include "cleave/Schedule/Generate.h"
#include "cleave/Schedule/Messages.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"

#include <random>

using namespace cleave::schedule;

static std::string toCsv(const Schedule &schedule) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::Error error = writeCsv(os, schedule);
  return error ? "error: " + llvm::toString(std::move(error)) : text;
}

static std::string toJson(const Schedule &schedule, const Costs &costs) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::Expected<Simulation> simulation = simulate(schedule, costs);
  if (!simulation)
    return llvm::toString(simulation.takeError());
  writeJson(os, schedule, costs, *simulation, {});
  return text;
}

static std::string getCsvError(llvm::StringRef text) {
  llvm::Expected<Schedule> read = readCsv(text, "t.csv");
  return read ? "" : llvm::toString(read.takeError());
}

static std::string getJsonError(llvm::StringRef text) {
  llvm::Expected<CostedSchedule> read = readJson(text, "t.json");
  return read ? "" : llvm::toString(read.takeError());
}

static Schedule readOrFail(llvm::StringRef text) {
  llvm::Expected<Schedule> read = readCsv(text, "t.csv");
  if (!read) {
    ADD_FAILURE() << llvm::toString(read.takeError());
    return {};
  }
  return std::move(*read);
}

/// A table that torch wrote (Torch/README.md).
static std::string load(const char *name) {
  auto buffer = llvm::MemoryBuffer::getFile(std::string(CLEAVE_TORCH_TABLES "/") + name);
  return buffer ? (*buffer)->getBuffer().str() : "";
}

static void expectRight(const Schedule &schedule) {
  for (const Violation &violation : check(schedule, Costs::uniform(schedule.numStages, 1)).violations)
    ADD_FAILURE() << violation.constraint << ' ' << violation.message;
}

TEST(TextTest, ReadsWhatTorchWrites) {
  for (const char *name : {"dualpipev-compute-only.csv", "dualpipev-fsdp-messages.csv", "interleaved-compute-only.csv",
                           "interleaved-messages.csv", "interleaved-waits.csv", "zbv-compute-only.csv"})
    expectRight(readOrFail(load(name)));
  Schedule table = readOrFail(load("zbv-compute-only.csv"));
  EXPECT_EQ(table.replicas[0].placement, (std::vector<int32_t>{0, 1, 2, 3, 3, 2, 1, 0}));
  EXPECT_EQ(table.numMicrobatches, 8);
  llvm::Expected<Simulation> simulation = simulate(table, Costs::uniform(8, 2));
  ASSERT_TRUE(bool(simulation));
  EXPECT_EQ(simulation->makespan, 25.5);
}

// torch's own placement of messages is ours, and its waits change nothing.
TEST(TextTest, PlacesMessagesAsTorchDoes) {
  Schedule table = readOrFail(load("interleaved-compute-only.csv"));
  ASSERT_FALSE(bool(addMessages(table)));
  std::string expected = llvm::join(llvm::split(load("interleaved-messages.csv"), "\r\n"), "\n");
  EXPECT_EQ(toCsv(table), expected);
  EXPECT_EQ(toCsv(readOrFail(load("interleaved-waits.csv"))), expected);
  for (std::string name : {"zbv", "interleaved4"}) {
    table = readOrFail(load((name + "-compute-only.csv").c_str()));
    ASSERT_FALSE(bool(addMessages(table)));
    EXPECT_EQ(toCsv(table), llvm::join(llvm::split(load((name + "-messages.csv").c_str()), "\r\n"), "\n")) << name;
  }
  std::string joined = load("dualpipev-compute-only.csv");
  EXPECT_EQ(toCsv(readOrFail(joined)), llvm::join(llvm::split(joined, "\r\n"), "\n"));
}

TEST(TextTest, ReadsBackWhatItWrites) {
  int tables = 0;
  for (const GeneratorInfo &info : getGenerators())
    for (Shape shape : {Shape{2, 4}, Shape{4, 8}, Shape{6, 12}, Shape{3, 7}}) {
      llvm::Expected<Schedule> generated = generate(info.name, shape);
      if (!generated) {
        llvm::consumeError(generated.takeError());
        continue;
      }
      for (bool hasMessages : {false, true}) {
        if (hasMessages)
          ASSERT_FALSE(bool(addMessages(*generated)));
        Schedule read = readOrFail(toCsv(*generated));
        EXPECT_EQ(read.programs, generated->programs) << info.name.str();
        EXPECT_EQ(read.isForwardOnly, info.isForwardOnly);
        for (int32_t stage = 0; stage < read.numStages; ++stage)
          for (int32_t i = 0; i < read.numMicrobatches; ++i)
            EXPECT_EQ(read.getRank(stage, i), generated->getRank(stage, i));
        Costs costs = Costs::uniform(read.numStages, 1, 1.25, 1. / 3, .1);
        costs.overlap = 2;
        costs.memoryLimit.assign(read.numRanks, 1e3);
        std::string json = toJson(*generated, costs);
        llvm::Expected<CostedSchedule> again = readJson(json, "t.json");
        ASSERT_TRUE(bool(again)) << llvm::toString(again.takeError());
        EXPECT_EQ(toJson(again->schedule, again->costs), json) << info.name.str();
        ++tables;
      }
    }
  EXPECT_GE(tables, 120);
}

/// Reads costs over channels of a latency of 3.
static std::vector<double> getLatencies(llvm::StringRef costs) {
  Schedule schedule = makeGpipe(3, 2);
  for (Channel &channel : schedule.channels)
    channel.latency = 3;
  Costs read = Costs::uniform(3, 1);
  if (llvm::Error error = readCosts(costs, schedule, read))
    ADD_FAILURE() << llvm::toString(std::move(error));
  std::vector<double> latencies;
  for (const Channel &channel : schedule.channels)
    latencies.push_back(channel.latency);
  return latencies;
}

// Costs say something of hops only where they name them.
TEST(TextTest, LeavesHopsThatCostsDoNotName) {
  EXPECT_EQ(getLatencies(R"({"costs": {"F": 2}})"), (std::vector<double>{3, 3}));
  EXPECT_EQ(getLatencies(R"({"costs": {"comm": [1, 2]}})"), (std::vector<double>{1, 2}));
  EXPECT_EQ(getLatencies(R"({"costs": {"comm": 1}, "channels": [{"from": 0, "to": 2, "latency": 5}]})"),
            (std::vector<double>{5}));
}

// What tables have no words for goes through JSON.
TEST(TextTest, KeepsSkipsAndGroupsInJson) {
  Schedule schedule = makeGpipe(3, 2);
  Channel skip;
  skip.from = 0, skip.to = 2;
  skip.latency = .5, skip.bytes = 12;
  skip.values = {"h", "mask"};
  schedule.channels.insert(schedule.channels.begin() + 1, skip);
  EXPECT_EQ(toCsv(schedule), "error: a table cannot say that stage 0 feeds stage 2: use --report FILE.json");
  schedule.reductions = {{"tied", {0, 2}}};
  for (int32_t rank : {0, 2}) {
    Action reduce = makeAction(ActionKind::ReduceGrad, rank, -1);
    reduce.other = 0;
    schedule.programs[rank].push_back(reduce);
  }
  Costs costs = Costs::uniform(3, 1);
  costs.bandwidth = 24;
  costs.memoryByte = 0.5;
  std::string json = toJson(schedule, costs);
  llvm::Expected<CostedSchedule> read = readJson(json, "t.json");
  ASSERT_TRUE(bool(read)) << llvm::toString(read.takeError());
  EXPECT_EQ(toJson(read->schedule, read->costs), json);
  EXPECT_EQ(read->schedule.channels[1].values, (std::vector<std::string>{"h", "mask"}));
  EXPECT_EQ(read->schedule.reductions[0].ranks, (std::vector<int32_t>{0, 2}));
  schedule.channels.erase(schedule.channels.begin() + 1);
  EXPECT_EQ(toCsv(schedule), "error: a table cannot name the group of 'tied': use --report FILE.json");
}

TEST(TextTest, SaysWhereATableIsWrong) {
  const std::pair<const char *, const char *> cases[] = {
      {"", "the table is empty"},
      {"0UNSHARD", "the table has no F"},
      {"0F0,0X0", "row 1, column 2: '0X0' is not an action: one reads 0F1, that is stage, kind and microbatch"},
      {"0F0\n1F0 \n", "row 2, column 1: '1F0 ' is not an action: F has a microbatch, as in 0F1"},
      {"0F0,0F", "row 1, column 2: '0F' is not an action: F has a microbatch, as in 0F1"},
      {"0F0,0UNSHARD3", "row 1, column 2: '0UNSHARD3' is not an action: UNSHARD has no microbatch"},
      {"0F0,(0F1;0W1)OVERLAP_F_B", "row 1, column 2: '(0F1;0W1)OVERLAP_F_B': the parts of a pair are F, B or I"},
      {"0F0,(0F1;0B0", "row 1, column 2: '(0F1;0B0' is not an action: a pair reads (0F1;3B0)OVERLAP_F_B"},
      {"0F0,\n,1RECV_F0,1F0", "row 1, column 2: the cell is empty: idle steps are for tables without messages"},
      {"0F0,0SEND_F0,\n1RECV_F0,1F0", "row 1, column 3: the cell is empty: idle steps are for tables without messages"},
      {"0F0\n\n1F0", "row 2 has no action"},
      {"0F0,0SEND_B0", "row 1, column 2: '0SEND_B0': nothing comes before stage 0"},
      {"0F0,0SEND_F0", "row 1: '0SEND_F0' goes beyond the last stage, 0"},
      {"0F0,0F99999999999", "row 1, column 2: '0F99999999999' is not an action: F has a microbatch, as in 0F1"},
      {"0F0,0F1000000000",
       "row 1, column 2: stages up to 0 and microbatches up to 1000000000 need 1000000001 F, and the "
       "table has 2"},
      {"0F0\n2000000000F0", "row 2, column 1: stages up to 2000000000 and microbatches up to 0 need 2000000001 F, and "
                            "the table has 2"},
      {"0F0,0F0,0F0,0F0\n1F1", "'1F0' is in no row"},
  };
  for (auto [text, error] : cases)
    EXPECT_EQ(getCsvError(text), error) << text;
}

TEST(TextTest, SaysWhereAReportIsWrong) {
  const std::pair<std::string, const char *> cases[] = {
      {"[]", "expected an object"},
      {"{\"programs\": [[]", "[1:16, byte=16]: Expected , or ] after array element"},
      {std::string(100000, '['), "it nests deeper than 32 levels"},
      {"{}", "programs: expected a list with one list of actions per rank"},
      {R"({"programs": [[]]})", "replicas: expected a list of objects with 'placement' and 'microbatches'"},
      {R"({"programs": [[]], "replicas": [{"placement": [1], "microbatches": [0]}]})",
       "replicas[0].placement[0]: expected a whole number from 0 to 0"},
      {R"({"programs": [[]], "replicas": [{"placement": [0], "microbatches": [1000000000]}]})",
       "replicas: microbatch 0 is in none"},
      {R"({"programs": [[]], "replicas": [{"placement": [0], "microbatches": []}]})",
       "replicas: there is no microbatch"},
      {R"({"programs": [[]], "replicas": [{"placement": [0], "microbatches": [0, 0]}]})",
       "replicas: microbatch 0 takes two ways"},
      {R"({"programs": [[]], "replicas": [{"placement": [0], "microbatches": [0]}]})",
       "programs: 1 stages and 1 microbatches need 1 F, and there are 0"},
      {R"({"programs": [[{"do": "G"}]], "replicas": [{"placement": [0], "microbatches": [0]}]})",
       "programs[0][0]: 'G' is not an action"},
      {R"({"programs": [[{"do": "F", "stage": 0, "microbatch": 1e99}]], "replicas": [{"placement": [0], "microbatches": [0]}]})",
       "programs[0][0].microbatch: expected a whole number from 0 to 0"},
      {R"({"programs": [[{"do": "F", "stage": 0, "microbatch": 0}]], "replicas": [{"placement": [0], "microbatches": [0]}],
           "costs": {"F": [1, 2]}})",
       "costs.F: expected a number or a list of 1, got 2"},
      {R"({"programs": [[{"do": "F", "stage": 0, "microbatch": 0}]], "replicas": [{"placement": [0], "microbatches": [0]}],
           "channels": [{"from": 0, "to": 1}]})",
       "channels[0].to: expected a whole number from 0 to 0"},
      {R"({"programs": [[{"do": "F", "stage": 0, "microbatch": 0}]], "replicas": [{"placement": [0], "microbatches": [0]}],
           "weight_versions": [1, 1]})",
       "weight_versions: expected a list of 1, one version at least on each rank"},
      {R"({"programs": [[{"do": "F", "stage": 0, "microbatch": 0}]], "replicas": [{"placement": [0], "microbatches": [0]}],
           "weight_versions": [0]})",
       "weight_versions: expected a list of 1, one version at least on each rank"},
  };
  for (const auto &[text, error] : cases)
    EXPECT_EQ(getJsonError(text), error) << text.substr(0, 100);
}

// Any text gets a schedule or an error, and a schedule can be asked whether it is right.
TEST(TextTest, BearsRandomChangesOfFiles) {
  std::mt19937 random(3);
  Schedule schedule = makeOneFOneB(2, 2);
  ASSERT_FALSE(bool(addMessages(schedule)));
  int read = 0;
  for (std::string text : {toCsv(schedule), toJson(schedule, Costs::uniform(2, 1))})
    for (int i = 0; i < 4000; ++i) {
      std::string changed = text;
      for (size_t count = 1 + random() % 3; count-- > 0;) {
        size_t at = random() % changed.size();
        switch (random() % 3) {
        case 0:
          changed.erase(at, 1 + random() % 8);
          break;
        case 1:
          changed[at] = "0123456789,;()FBIWSEND_\n{}[]\":-"[random() % 31];
          break;
        default:
          changed.insert(at, changed.substr(random() % changed.size(), random() % 8));
        }
      }
      Schedule result;
      if (text[0] == '{') {
        llvm::Expected<CostedSchedule> json = readJson(changed, "t");
        if (!json) {
          EXPECT_FALSE(llvm::toString(json.takeError()).empty());
          continue;
        }
        result = json->schedule;
      } else {
        llvm::Expected<Schedule> csv = readCsv(changed, "t");
        if (!csv) {
          EXPECT_FALSE(llvm::toString(csv.takeError()).empty());
          continue;
        }
        result = std::move(*csv);
      }
      ++read;
      (void)check(result, Costs::uniform(result.numStages, 1));
    }
  EXPECT_GT(read, 400);
}
