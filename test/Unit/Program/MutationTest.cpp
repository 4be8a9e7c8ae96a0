//===- MutationTest.cpp - broken files are refused, or do no harm ---------===//
//
// 2,000 files made from the samples: bytes changed, cut off, copied elsewhere, and programs with a number or a command
// changed before they are written. Deterministic.
//
//===----------------------------------------------------------------------===//
#include "Numbers.h"
#include "Refuse.h"
#include "Walk.h"
#include <random>

using namespace cleave::program;

namespace {

class Mutator {
public:
  explicit Mutator(uint32_t seed) : random(seed) {}

  /// A file that is almost `program`.
  std::string mutate(const Program &program);

private:
  std::mt19937 random;

  size_t below(size_t bound) { return bound ? random() % bound : 0; }
  void changeNumber(Program &program);
  void changeCommands(Program &program);
  void changeBytes(std::string &bytes);
};

} // namespace

/// One number becomes one that is likely to hurt.
void Mutator::changeNumber(Program &program) {
  size_t count = 0;
  forEachNumber(program, [&](auto &) { ++count; });
  size_t chosen = below(count), index = 0;
  constexpr int64_t numbers[] = {0,   1,   2,   3,  4,  7,         8,         16,        64,
                                 127, 128, 255, -1, -4, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};
  int64_t number = numbers[below(std::size(numbers))];
  bool isStep = below(2);
  forEachNumber(program, [&](auto &value) {
    using T = std::decay_t<decltype(value)>;
    if (index++ != chosen)
      return;
    if constexpr (std::is_enum_v<T>)
      value = static_cast<T>(number & 7);
    else if constexpr (std::is_same_v<T, bool>)
      value = !value;
    else
      value = static_cast<T>(isStep ? static_cast<int64_t>(value) + (number & 1 ? 1 : -1) : number);
  });
}

/// Commands go, come twice, or change places.
void Mutator::changeCommands(Program &program) {
  Variant &variant = program.variants[below(program.variants.size())];
  std::vector<Command> &commands = variant.lists[below(variant.lists.size())].commands;
  size_t a = below(commands.size()), b = below(commands.size());
  switch (below(3)) {
  case 0:
    commands.erase(commands.begin() + a);
    break;
  case 1:
    commands.insert(commands.begin() + b, Command(commands[a]));
    break;
  default:
    std::swap(commands[a], commands[b]);
  }
}

/// Bytes change, go, or come from elsewhere in the file.
void Mutator::changeBytes(std::string &bytes) {
  for (size_t i = 0, changes = 1 + below(4); i < changes; ++i)
    bytes[below(bytes.size())] = static_cast<char>(below(2) ? random() : below(8));
  if (below(4) == 0)
    bytes.resize(below(bytes.size()) + 1);
  if (below(4) == 0) {
    size_t length = below(std::min<size_t>(bytes.size(), 64));
    size_t from = below(bytes.size() - length), to = below(bytes.size() - length);
    bytes.replace(to, length, std::string(bytes, from, length));
  }
}

std::string Mutator::mutate(const Program &program) {
  Program changed = program;
  size_t way = below(4);
  if (way == 0)
    changeNumber(changed);
  if (way == 1)
    changeCommands(changed);
  std::string bytes = writeProgram(changed);
  if (way > 1)
    changeBytes(bytes);
  return bytes;
}

TEST(MutationTest, TwoThousandFilesAreRefusedOrDoNoHarm) {
  auto samples = makeSamples();
  size_t refused = 0, accepted = 0;
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    std::string bytes = Mutator(seed).mutate(samples[seed % samples.size()].second);
    Result<Program> program = readProgram(bytes);
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
