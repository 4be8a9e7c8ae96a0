//===- SummaryTest.cpp - what is said of programs -------------------------===//
#include "Refuse.h"

#include "cleave/Program/Summary.h"

using namespace cleave::program;

/// Live bytes of the first role, by command.
static std::vector<uint64_t> live(const Program &program) {
  std::vector<uint64_t> bytes;
  std::vector<VariantSummary> summary = summarize(program);
  for (const CommandSummary &command : summary[0].lists[0].commands)
    bytes.push_back(command.liveBytes);
  return bytes;
}

// x -> arena, arena -> arena in place, arena -> y: one tensor all along.
TEST(SummaryTest, InPlaceIsLiveOnce) {
  EXPECT_EQ(live(makeSingle()), (std::vector<uint64_t>{128, 128, 128}));
  EXPECT_EQ(summarize(makeSingle())[0].lists[0].liveBytes, 128u);
}

// The product of 256 bytes until the last command, the square of 128 while it is made, the results of the last two (the
// part, with strides, is 208 bytes from end to end), and nothing of inputs, outputs and weights.
TEST(SummaryTest, LiveFromWriteToLastRead) {
  EXPECT_EQ(live(makeTensorParallel()), (std::vector<uint64_t>{256, 256, 256, 256, 256, 384, 256, 256, 464, 512}));
  ListSummary list = summarize(makeTensorParallel())[0].lists[0];
  EXPECT_EQ(list.arenaBytes, 640u);
  EXPECT_EQ(list.liveBytes, 512u);
  EXPECT_EQ(list.weightBytes, 1088u);
}

// An all_reduce of n bytes among 2 sends 2 n / 2; pieces count where they are sent from.
TEST(SummaryTest, SentByRank) {
  std::vector<SentSummary> sent = summarize(makeTensorParallel())[0].sent;
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(formatRanks(sent[0].ranks), "0-3");
  EXPECT_EQ(sent[0].kinds.at("all_reduce"), (Sent{1, 256}));

  sent = summarize(makePipeline())[0].sent;
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(formatRanks(sent[0].ranks), "0-1");
  EXPECT_EQ(sent[0].kinds.at("exchange"), (Sent{2, 128}));
  EXPECT_EQ(formatRanks(sent[1].ranks), "2-3");
  EXPECT_TRUE(sent[1].kinds.empty());

  sent = summarize(makeCollectives())[0].sent;
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].kinds.at("all_gather"), (Sent{1, 64}));
  EXPECT_EQ(sent[0].kinds.at("all_to_all"), (Sent{1, 32}));
  EXPECT_EQ(sent[0].kinds.at("reduce_scatter"), (Sent{2, 128}));
  EXPECT_EQ(sent[0].kinds.at("all_reduce"), (Sent{1, 0})); // groups of one
  EXPECT_EQ(sent[0].kinds.at("exchange"), (Sent{1, 32}));  // what a rank sends itself does not count
  EXPECT_EQ(sent[0].kinds.at("barrier"), (Sent{1, 0}));
}

TEST(SummaryTest, CommandsInWords) {
  std::vector<CommandSummary> commands = summarize(makeTensorParallel())[0].lists[0].commands;
  EXPECT_EQ(commands[3].kind, "all_reduce");
  EXPECT_EQ(commands[3].stream, 1u);
  EXPECT_EQ(commands[3].text, "sum over model(4+0 f32[4, 16]) -> 4+0 f32[4, 16]");
  EXPECT_EQ(commands[3].node, "/fc/MatMul");
  EXPECT_EQ(commands[6].text, "event 1");
  EXPECT_EQ(summarize(makeCollectives())[0].lists[0].commands[0].text, "(0+0 f32[2, 8]) -> 2+0+(64 * x) f32[2, 8]");
}

TEST(SummaryTest, RanksAsRanges) {
  EXPECT_EQ(formatRanks({}), "");
  EXPECT_EQ(formatRanks({0, 1, 2, 3, 6, 8, 9}), "0-3, 6, 8-9");
}

TEST(SummaryTest, TextOfStrangersStaysOnALine) {
  EXPECT_EQ(printable("/enc/MatMul"), "/enc/MatMul");
  EXPECT_EQ(printable("a\nb\x1b[31m"), "\"a\\x0Ab\\x1B[31m\"");
  EXPECT_EQ(quote("a\"b\\"), "\"a\\\"b\\\\\"");
  EXPECT_EQ(quote(std::string(200, 'x')), "\"" + std::string(100, 'x') + "...\"");
}
