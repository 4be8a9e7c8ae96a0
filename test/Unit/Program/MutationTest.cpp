//===- MutationTest.cpp - broken files are refused, or do no harm ---------===//
//
// 2,000 files made from the samples; without their seals, which would refuse nearly all of them.
//
//===----------------------------------------------------------------------===//
#include "Mutator.h"
#include "Refuse.h"
#include "Walk.h"

using namespace cleave::program;

TEST(MutationTest, TwoThousandFilesAreRefusedOrDoNoHarm) {
  auto samples = makeSamples();
  size_t refused = 0, accepted = 0;
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    std::string bytes = Mutator(seed).mutate(samples[seed % samples.size()].second);
    Result<Program> program = readProgram(bytes, Verify::No);
    if (!program) {
      ++refused;
      EXPECT_FALSE(program.getError().message.empty()) << seed;
      continue;
    }
    ++accepted;
    EXPECT_TRUE(Walk(*program).run()) << samples[seed % samples.size()].first << ", seed " << seed;
    Result<Program> again = readProgram(writeProgram(*program));
    EXPECT_TRUE(again) << seed << ": " << again.getError().message;
  }
  // Neither all nor none: of both there must be something to see.
  EXPECT_GT(refused, 1000u);
  EXPECT_GT(accepted, 100u);
}

// Every number survives writing and reading: each is changed alone, and all are compared.
TEST(MutationTest, EveryNumberSurvivesTheFile) {
  auto list = [](Program &program) {
    std::vector<int64_t> numbers;
    forEachNumber(program, [&](auto &value) { numbers.push_back(static_cast<int64_t>(value)); });
    return numbers;
  };
  for (auto &[name, sample] : makeSamples()) {
    size_t count = list(sample).size();
    for (size_t chosen = 0; chosen < count; ++chosen) {
      Program changed = sample;
      size_t index = 0;
      forEachNumber(changed, [&](auto &value) {
        using T = std::decay_t<decltype(value)>;
        if (index++ != chosen)
          return;
        if constexpr (std::is_enum_v<T>) // to another case that is known: all enums have two
          value = static_cast<T>(static_cast<int64_t>(value) == 0 ? 1 : 0);
        else
          value = static_cast<T>(static_cast<int64_t>(value) + 1);
      });
      std::string bytes = writeProgram(changed);
      Result<Program> again = decodeProgram(bytes);
      ASSERT_TRUE(again) << name << ", number " << chosen << ": " << again.getError().message;
      EXPECT_EQ(list(*again), list(changed)) << name << ", number " << chosen;
    }
  }
}
