//===- ExecutorTest.cpp - programs that run -------------------------------===//
//
// Each program is made by hand from kernels in C; what it must give is computed here, by a formula, from the inputs.
//
//===----------------------------------------------------------------------===//
#include "Conformance.h"
#include "RunnableSamples.h"
#include "cleave/Runtime/Profile.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <numeric>
#include <set>

using namespace cleave::program;
using namespace cleave::runtime;
using namespace cleave::runtime::test;

TEST(Executor, RunsKernelsAndCopies) {
  auto executor = openProgram(makeChain());
  ASSERT_TRUE(executor);
  for (uint64_t seed = 0; seed < 3; ++seed) {
    std::vector<float> x = makeFloats(32, seed);
    std::vector<Value> outputs;
    ASSERT_EQ(getMessage(executor->run({makeArgument("x", {4, 8}, x)}, outputs)), "");
    ASSERT_EQ(outputs.size(), 1u);
    EXPECT_EQ(outputs[0].name, "y");
    EXPECT_EQ(outputs[0].shape, (Shape{4, 8}));
    std::vector<float> y = getFloats(outputs[0]);
    for (size_t i = 0; i < 32; ++i)
      EXPECT_EQ(y[i], 4 * x[i] + 4) << i;
  }
  EXPECT_EQ(executor->getPeakBytes(), 512u);
}

// An input that the program was compiled for a value of takes those bytes, and no others.
TEST(Executor, TakesOnlyTheValueThatItIsFor) {
  std::vector<float> x = makeFloats(32, 1), other = x;
  other[31] += 1;
  Builder b = makeChain();
  const auto *bytes = reinterpret_cast<const uint8_t *>(x.data());
  b.program.variants[0].inputs[0].value.assign(bytes, bytes + 128);
  auto executor = openProgram(b);
  ASSERT_TRUE(executor);
  std::vector<Value> outputs;
  EXPECT_EQ(getMessage(executor->run({makeArgument("x", {4, 8}, x)}, outputs)), "");
  ExecutorStatus error = executor->run({makeArgument("x", {4, 8}, other)}, outputs);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind, ErrorKind::Arguments);
  EXPECT_EQ(error->message,
            "input \"x\" has another value than the one that the program was compiled for, and shapes or "
            "other parts of the program depend on it: compile the model again, with these inputs");
  EXPECT_EQ(getMessage(executor->run({makeArgument("x", {4, 8}, x)}, outputs)), "");
}

static Builder makeCounter() {
  Builder b;
  uint32_t type = b.addType({1}), kernel = b.addKernel("test_count", {type}, 1, 0);
  View y{b.addBuffer(BufferKind::Output, 4), type, {}};
  b.launch(kernel, {y}, {});
  b.addOutput("y", type, y);
  return b;
}

// Of programs that are open at one time, each has its own code, whatever its kernels are called.
TEST(Executor, CodeOfOpenProgramsIsApart) {
  auto first = openProgram(makeCounter()), second = openProgram(makeCounter());
  ASSERT_TRUE(first && second);
  for (float calls : {1, 2, 3})
    for (auto *executor : {first.get(), second.get()}) {
      std::vector<Value> outputs;
      ASSERT_EQ(getMessage(executor->run({}, outputs)), "");
      EXPECT_EQ(getFloats(outputs[0]), std::vector<float>{calls});
    }
}

// Weights in panels, slices by rank, a collective on a stream of its own; the same bits with any delays.
TEST(Executor, RunsTensorParallelPrograms) {
  Folder folder;
  folder.write("weights.bin", makeWeightsFile());
  std::vector<float> x = makeFloats(8 * 16, 5), w = makeW();
  uint64_t compared = 0;
  for (uint64_t seed = 0; seed < 5; ++seed) {
    ExecutorOptions options;
    options.weightsFolder = folder.path;
    options.keepsTimes = seed == 1;
    options.findsNan = seed == 2;
    options.communication.delay = seed ? makeDelays(seed) : nullptr;
    Builder program = makeTensorParallel();
    // The folder that is given counts, wherever the compiler had its files.
    if (seed == 3)
      program.program.files[0].path = "/nowhere/weights.bin";
    auto executor = openProgram(program, options);
    ASSERT_TRUE(executor);
    std::vector<Value> outputs;
    for (int call = 0; call < 3; ++call) {
      ASSERT_EQ(getMessage(executor->run({makeArgument("x", {8, 16}, x)}, outputs)), "");
      ASSERT_EQ(outputs.size(), 2u);
      std::vector<float> y = getFloats(outputs[0]), z = getFloats(outputs[1]);
      for (size_t i = 0; i < 8; ++i)
        for (size_t j = 0; j < 32; ++j, ++compared) {
          float expected = 3;
          for (size_t k = 0; k < 16; ++k)
            expected += x[i * 16 + k] * w[k * 32 + j];
          ASSERT_EQ(y[i * 32 + j], expected) << i << ", " << j;
        }
      for (size_t i = 0; i < 128; ++i)
        ASSERT_EQ(z[i], 2 * x[i] + 5);
    }
    // Four ranks: three launches, and both ends of the collective. How often that moves on between is a matter of time.
    std::vector<Event> events = executor->getEvents();
    auto count = std::count_if(events.begin(), events.end(),
                               [](const Event &event) { return event.part != cleave::runtime::Part::Advance; });
    EXPECT_EQ(count, options.keepsTimes ? 20 : 0);
  }
  std::printf("%llu elements compared\n", (unsigned long long)compared);
  EXPECT_EQ(compared, 5u * 3 * 256);
}

TEST(Executor, KeepsStatesBetweenCalls) {
  auto executor = openProgram(makeAccumulator());
  ASSERT_TRUE(executor);
  std::vector<float> x = makeFloats(16, 3), past = makeFloats(16, 4);
  auto expect = [&](const std::vector<Argument> &inputs, float times, bool fromPast) {
    std::vector<Value> outputs;
    ASSERT_EQ(getMessage(executor->run(inputs, outputs)), "");
    ASSERT_EQ(outputs.size(), 1u) << "states are only given if asked for";
    std::vector<float> y = getFloats(outputs[0]);
    for (size_t i = 0; i < 16; ++i)
      EXPECT_EQ(y[i], (fromPast ? past[i] : 0) + times * x[i]);
  };
  Argument inX = makeArgument("x", {2, 8}, x), inPast = makeArgument("past", {2, 8}, past);
  expect({inX}, 1, false);
  expect({inX}, 2, false);
  ASSERT_EQ(getMessage(executor->resetStates()), "");
  expect({inX}, 1, false);
  expect({inX, inPast}, 1, true);
  expect({inX}, 2, true);
  std::vector<Value> outputs;
  ASSERT_EQ(getMessage(executor->run({inX}, outputs, {"total", "y"})), "");
  ASSERT_EQ(outputs.size(), 2u);
  EXPECT_EQ(getFloats(outputs[0]), getFloats(outputs[1]));
}

TEST(Executor, PicksTheVariantByShapes) {
  auto executor = openProgram(makeVariants());
  ASSERT_TRUE(executor);
  for (int64_t rows : {2, 1, 2}) {
    std::vector<float> x = makeFloats(size_t(rows) * 8, 1);
    std::vector<Value> outputs;
    ASSERT_EQ(getMessage(executor->run({makeArgument("x", {rows, 8}, x)}, outputs)), "");
    EXPECT_EQ(outputs[0].shape, (Shape{rows, 8}));
    std::vector<float> y = getFloats(outputs[0]);
    for (size_t i = 0; i < y.size(); ++i)
      EXPECT_EQ(y[i], 2 * x[i] + float(rows));
  }
  std::vector<float> x(24);
  std::vector<Value> outputs;
  EXPECT_EQ(getMessage(executor->run({makeArgument("x", {3, 8}, x)}, outputs)),
            "input \"x\" is f32[3, 8], expected f32[2, 8] or f32[1, 8]");
}

TEST(Executor, MovesPiecesBetweenStages) {
  auto executor = openProgram(makeStages());
  ASSERT_TRUE(executor);
  std::vector<float> x = makeFloats(32, 9);
  for (int call = 0; call < 4; ++call) {
    std::vector<Value> outputs;
    ASSERT_EQ(getMessage(executor->run({makeArgument("x", {4, 8}, x)}, outputs)), "");
    std::vector<float> y = getFloats(outputs[0]);
    for (size_t i = 0; i < 32; ++i)
      EXPECT_EQ(y[i], 4 * x[i] + 4) << i;
  }
}

// Stages by name, with what their ranks did alone and with others; the second one waits for the first.
TEST(Executor, TellsTimesOfRoles) {
  ExecutorOptions options;
  options.keepsTimes = true;
  Builder stages = makeStages();
  uint32_t type = stages.addType({1}), nap = stages.addKernel("test_sleep", {type}, 1, 1);
  View bed{stages.addBuffer(BufferKind::Activations, 4, 0), type, {}};
  std::vector<cleave::program::Command> &first = stages.variant().lists[0].commands;
  first.insert(first.begin(), {0, -1, cleave::program::Launch{nap, {bed}, {{30, -1}}}});
  auto executor = openProgram(std::move(stages), options);
  ASSERT_TRUE(executor);
  std::vector<float> x = makeFloats(32, 9);
  std::vector<Value> outputs;
  ASSERT_EQ(getMessage(executor->run({makeArgument("x", {4, 8}, x)}, outputs)), "");
  std::vector<RoleTime> roles = getRoleTimes(*executor);
  ASSERT_EQ(roles.size(), 2u);
  EXPECT_EQ(roles[0].name, "first");
  EXPECT_EQ(roles[1].name, "second");
  EXPECT_EQ(roles[0].ranks + roles[1].ranks, 4u);
  EXPECT_GT(roles[0].busy, 0.02);
  EXPECT_GT(roles[1].meeting, 0.02);
  EXPECT_LT(roles[1].busy, roles[0].busy);
  for (const RoleTime &role : roles)
    EXPECT_LE(role.busy + role.meeting, executor->getRunSeconds());
  EXPECT_NE(formatProfile(makeProfile(*executor)).find("  second\n"), std::string::npos);
  EXPECT_EQ(formatRoleTimes(roles).rfind("[{\"name\": \"first\", \"ranks\": 2, \"busy_seconds\": 0.0", 0), 0u);
}

// Of a long loop the first runs of a command are kept one by one and the others in sum: all count, and memory does not grow with them.
TEST(Executor, AddsUpTimesOfLongLoops) {
  constexpr uint64_t iterations = 100000;
  Builder counter = makeCounter();
  counter.program.version = cleave::program::kLoopsVersion;
  std::vector<cleave::program::Command> &commands = counter.variant().lists[0].commands;
  commands.insert(commands.begin(), {0, -1, cleave::program::Loop{int64_t(iterations), {}}});
  commands.push_back({0, -1, cleave::program::EndLoop{}});
  ExecutorOptions options;
  options.keepsTimes = true;
  auto executor = openProgram(std::move(counter), options);
  ASSERT_TRUE(executor);
  std::vector<Value> outputs;
  for (float calls : {1, 2}) {
    ASSERT_EQ(getMessage(executor->run({}, outputs)), "");
    EXPECT_EQ(getFloats(outputs[0]), std::vector<float>{calls * iterations});
    EXPECT_LT(executor->getEvents().size(), 70000u);
    std::vector<uint64_t> runs(3);
    double seconds = 0;
    for (const Event &event : executor->getEvents()) {
      runs[event.command] += 1 + event.laterRuns;
      seconds += event.getSeconds();
    }
    EXPECT_EQ(runs, (std::vector<uint64_t>{1, iterations, iterations}));
    EXPECT_LE(seconds, executor->getRunSeconds());
    Profile profile = makeProfile(*executor);
    for (const ProfileRow &row : profile.kinds)
      EXPECT_EQ(row.commands, row.name == "loop" ? 1 : iterations) << row.name;
    EXPECT_NE(formatTrace(*executor).find("\"later_runs\": "), std::string::npos);
  }
}

// Terms of an input: the first rank has it, others what adds nothing. Those of an output are combined, by any reduction.
TEST(Executor, CombinesTerms) {
  for (Reduction reduction : {Reduction::Sum, Reduction::Prod, Reduction::Max, Reduction::Min}) {
    Builder b(3);
    int32_t rank = b.addColumn({0, 1, 2});
    uint32_t type = b.addType({2, 3});
    uint32_t x = b.addBuffer(BufferKind::Input, 24), p = b.addBuffer(BufferKind::Input, 24);
    uint32_t y = b.addBuffer(BufferKind::Output, 24), q = b.addBuffer(BufferKind::Output, 24);
    uint32_t affine = b.addKernel("test_affine", {type, type}, 1, 2);
    b.add(cleave::program::Launch{affine, {{x, type, {}}, {y, type, {}}}, {{6, -1}, {1, rank}}});
    b.add(Copy{{p, type, {}}, {q, type, {}}});
    b.addInput("x", type, {x, type, {}});
    b.addInput("p", type, {p, type, {}});
    b.addOutput("y", type, {y, type, {}});
    b.addOutput("q", type, {q, type, {}});
    for (Tensor *tensor : {&b.variant().inputs[1], &b.variant().outputs[0], &b.variant().outputs[1]}) {
      tensor->reduction = reduction;
      tensor->terms = 3;
      tensor->places[0].term = {0, rank};
    }
    auto executor = openProgram(b);
    ASSERT_TRUE(executor);
    std::vector<float> given = makeFloats(6, 2), part = makeFloats(6, 8);
    std::vector<Value> outputs;
    ASSERT_EQ(getMessage(executor->run({makeArgument("p", {2, 3}, part), makeArgument("x", {2, 3}, given)}, outputs)),
              "");
    for (size_t i = 0; i < 6; ++i) {
      float low = 2 * given[i] + 1, mid = low + 1, high = low + 2;
      float expected = reduction == Reduction::Sum    ? low + mid + high
                       : reduction == Reduction::Prod ? low * mid * high
                       : reduction == Reduction::Max  ? high
                                                      : low;
      EXPECT_EQ(getFloats(outputs[0])[i], expected);
      EXPECT_EQ(getFloats(outputs[1])[i], part[i]);
    }
  }
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

namespace {

using DimSplit = std::vector<uint32_t>;

/// Numbers of a box, by its index in each dim.
struct Numbers {
  Shape shape;
  std::vector<float> elements;

  static size_t at(const Shape &shape, const Shape &index) {
    size_t place = 0;
    for (size_t dim = 0; dim < shape.size(); ++dim)
      place = place * size_t(shape[dim]) + size_t(index[dim]);
    return place;
  }
  float get(const Shape &index) const { return elements[at(shape, index)]; }
};

} // namespace

static int64_t count(const Shape &shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t(1), std::multiplies<int64_t>());
}

/// The index of element `place`.
static Shape indexOf(const Shape &shape, int64_t place) {
  Shape index(shape.size());
  for (size_t dim = shape.size(); dim-- > 0; place /= shape[dim])
    index[dim] = place % shape[dim];
  return index;
}

/// What member `own` gets, by the words of docs/program-file.md.
static Numbers simulate(CollectiveKind kind, const DimSplit &gather, const DimSplit &slice,
                        const std::vector<Numbers> &operands, size_t own) {
  Numbers result;
  const Shape &shape = operands[0].shape;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    result.shape.push_back(shape[dim] * (gather.empty() ? 1 : gather[dim]) / (slice.empty() ? 1 : slice[dim]));
  for (int64_t place = 0; place < count(result.shape); ++place) {
    Shape index = indexOf(result.shape, place);
    size_t from = 0, rest = own;
    for (size_t dim = 0; dim < gather.size(); ++dim) {
      int64_t piece = result.shape[dim] / gather[dim];
      from = from * gather[dim] + size_t(index[dim] / piece);
      index[dim] %= piece;
    }
    for (size_t dim = slice.size(); dim-- > 0; rest /= slice[dim])
      index[dim] += int64_t(rest % slice[dim]) * (shape[dim] / slice[dim]);
    float value = operands[gather.empty() ? 0 : from].get(index);
    if (kind == CollectiveKind::AllReduce || kind == CollectiveKind::ReduceScatter)
      for (size_t member = 1; member < operands.size(); ++member)
        value += operands[member].get(index);
    result.elements.push_back(value);
  }
  return result;
}

/// Each of four ranks gives a part of x, and its result is a part of y. Returns how many elements were compared.
static uint64_t checkCollective(CollectiveKind kind, uint32_t size, const DimSplit &gather, const DimSplit &slice,
                                uint32_t stream) {
  Builder b(4);
  Shape shape = {4, 4, 8};
  Shape result = shape;
  for (size_t dim = 0; dim < 3; ++dim)
    result[dim] = shape[dim] * (gather.empty() ? 1 : gather[dim]) / (slice.empty() ? 1 : slice[dim]);
  std::vector<int64_t> starts = {0, shape[0], 2 * shape[0], 3 * shape[0]}, ends;
  for (int64_t rank = 0; rank < 4; ++rank)
    ends.push_back(rank * result[0]);
  int32_t start = b.addColumn(starts), end = b.addColumn(ends);
  b.addGroup({3, 1, 2, 0}, size);
  uint32_t operandType = b.addType(shape), resultType = b.addType(result);
  uint32_t x = b.addType({16, 4, 8}), y = b.addType({4 * result[0], result[1], result[2]});
  uint64_t bytes = uint64_t(count(result)) * 4;
  uint32_t in = b.addBuffer(BufferKind::Input, 512), out = b.addBuffer(BufferKind::Output, bytes);
  uint32_t out2 = b.addBuffer(BufferKind::Output, bytes);
  View operand{in, operandType, {}}, inY{out, resultType, {}}, inY2{out2, resultType, {}};
  // Two tensors at once.
  b.variant().lists[0].events = 1;
  b.add(Collective{kind, Reduction::None, 0, {operand, operand}, {inY, inY2}, gather, slice}, stream);
  auto &collective = std::get<Collective>(b.variant().lists[0].commands[0].action);
  if (kind == CollectiveKind::AllReduce || kind == CollectiveKind::ReduceScatter)
    collective.reduction = Reduction::Sum;
  b.add(Record{0}, stream);
  b.add(Wait{0});
  b.addInput("x", x, operand, {{0, start}, {}, {}});
  b.addOutput("y", y, inY, {{0, end}, {}, {}});
  b.addOutput("again", y, inY2, {{0, end}, {}, {}});
  auto executor = openProgram(b);
  std::vector<float> given = makeFloats(16 * 4 * 8, size + gather.size());
  std::vector<Value> outputs;
  EXPECT_EQ(getMessage(executor->run({makeArgument("x", {16, 4, 8}, given)}, outputs)), "");
  std::vector<uint32_t> members = b.program.groups[0].ranks;
  uint64_t compared = 0;
  for (size_t place = 0; place < 4 && outputs.size() == 2; ++place) {
    size_t group = place / size * size;
    std::vector<Numbers> operands;
    for (size_t member = 0; member < size; ++member) {
      auto begin = given.begin() + members[group + member] * 128;
      operands.push_back({shape, {begin, begin + 128}});
    }
    Numbers expected = simulate(kind, gather, slice, operands, place - group);
    for (const Value &output : outputs) {
      std::vector<float> got = getFloats(output);
      for (size_t i = 0; i < expected.elements.size(); ++i, ++compared)
        EXPECT_EQ(got[members[place] * expected.elements.size() + i], expected.elements[i])
            << getWord(kind) << " of " << size << ", rank " << members[place] << ", element " << i;
    }
  }
  return compared;
}

// Along each dim, and along several at once, in groups of all and of two, whose members are not in the order of ranks.
TEST(Executor, CollectivesAreWhatTheFileSays) {
  uint64_t compared = 0;
  for (uint32_t stream : {0, 1})
    for (uint32_t size : {2, 4}) {
      std::vector<DimSplit> splits = size == 2
                                         ? std::vector<DimSplit>{{2, 1, 1}, {1, 2, 1}, {1, 1, 2}}
                                         : std::vector<DimSplit>{{4, 1, 1}, {1, 1, 4}, {2, 2, 1}, {1, 2, 2}, {2, 1, 2}};
      compared += checkCollective(CollectiveKind::AllReduce, size, {}, {}, stream);
      for (const DimSplit &split : splits) {
        compared += checkCollective(CollectiveKind::AllGather, size, split, {}, stream);
        compared += checkCollective(CollectiveKind::ReduceScatter, size, {}, split, stream);
        for (const DimSplit &other : splits)
          compared += checkCollective(CollectiveKind::AllToAll, size, other, split, stream);
      }
    }
  std::printf("%llu elements compared\n", (unsigned long long)compared);
  // By kind: one, three and five cuts, nine and twenty-five pairs; each result of four ranks, twice.
  EXPECT_EQ(compared, 2u * 8 * 128 * (2 + (3 * 2 + 5 * 4) + 3 / 2. + 5 / 4. + 9 + 25));
}
