//===- RecomputeTest.cpp - against trying everything ----------------------===//
//
// Small steps, of which each choice is tried: what is kept and taken is counted anew here, step by step, from what the header says.
//
//===----------------------------------------------------------------------===//
#include "cleave/Solver/Recompute.h"
#include <gtest/gtest.h>
#include <random>
#include <set>

using namespace cleave;

namespace {

using Op = RecomputeProblem::Op;

/// Appends an op of one result of so many bytes, and returns that.
unsigned addOp(RecomputeProblem &problem, bool isForward, double ns, llvm::ArrayRef<unsigned> operands, int64_t bytes) {
  Op op;
  op.ns = ns;
  op.isForward = op.mayRepeat = isForward;
  op.operands.append(operands.begin(), operands.end());
  unsigned result = problem.addValue(bytes);
  op.results.push_back(result);
  problem.ops.push_back(op);
  return result;
}

/// An argument, some ops of the forward, and some behind it that read what there is.
RecomputeProblem drawProblem(std::mt19937 &random) {
  RecomputeProblem problem;
  problem.addValue(random() % 9);
  problem.values[0].isGiven = true;
  unsigned forward = 1 + random() % 9, behind = 1 + random() % 4;
  for (unsigned number = 0; number < forward + behind; ++number) {
    llvm::SmallVector<unsigned> operands;
    for (unsigned count = 1 + random() % 2; count > 0; --count)
      operands.push_back(random() % problem.values.size());
    unsigned value = addOp(problem, number < forward, random() % 8, operands, random() % 9);
    problem.ops.back().mayRepeat &= random() % 4 != 0;
    problem.values[value].mustKeep = random() % 12 == 0;
  }
  problem.values.back().isResult = true;
  return problem;
}

/// What the ops of `repeated` take, and what has to be kept for them and for what stands behind; nothing if that cannot be.
struct Counted {
  double ns = 0;
  int64_t bytes = 0;
};
std::optional<Counted> countChoice(const RecomputeProblem &problem, const RepeatedOps &repeated) {
  std::vector<int> makers(problem.values.size(), -1);
  std::set<unsigned> needed;
  Counted sum;
  for (size_t number = 0; number < problem.ops.size(); ++number) {
    const Op &op = problem.ops[number];
    if (op.isForward)
      makers[op.results[0]] = int(number);
    if (repeated.test(number) && !op.mayRepeat)
      return std::nullopt;
    sum.ns += repeated.test(number) ? op.ns : 0;
    if (!op.isForward || repeated.test(number))
      needed.insert(op.operands.begin(), op.operands.end());
  }
  for (unsigned value : needed)
    if (makers[value] >= 0 && !repeated.test(makers[value]) && !problem.values[value].mustKeep)
      sum.bytes += problem.values[value].bytes;
  return sum;
}

template <typename Visit> void forEachChoice(const RecomputeProblem &problem, Visit visit) {
  unsigned forward = 0;
  while (forward < problem.ops.size() && problem.ops[forward].isForward)
    ++forward;
  for (unsigned bits = 0; bits < 1U << forward; ++bits) {
    RepeatedOps repeated(problem.ops.size());
    for (unsigned op = 0; op < forward; ++op)
      if (bits >> op & 1)
        repeated.set(op);
    if (std::optional<Counted> counted = countChoice(problem, repeated))
      visit(*counted);
  }
}

TEST(RecomputeTest, TheOptimumIsTheLeastOfAllChoices) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 500; ++trial) {
    RecomputeProblem problem = drawProblem(random);
    for (double price : {0.5, 1.0, 4.0}) {
      RecomputeOptimum cut = findOptimum(problem, price);
      double least = HUGE_VAL;
      forEachChoice(problem, [&](Counted one) { least = std::min(least, double(one.bytes) + price * one.ns); });
      EXPECT_EQ(cut.least, least);
      std::optional<Counted> counted = countChoice(problem, cut.repeated);
      ASSERT_TRUE(counted);
      EXPECT_EQ(double(counted->bytes) + price * counted->ns, least);
    }
  }
}

// Whatever is kept, no choice is faster than the hull of the cuts says.
TEST(RecomputeTest, TheHullBoundsAllChoices) {
  std::mt19937 random(2);
  int bounded = 0;
  for (int trial = 0; trial < 300; ++trial) {
    RecomputeProblem problem = drawProblem(random);
    for (RecomputeProblem::Value &value : problem.values)
      value.mustKeep = false;
    for (const RecomputeChoice &choice : findChoices(problem)) {
      bounded += choice.leastNs > 0;
      forEachChoice(problem, [&](Counted one) {
        if (one.bytes <= choice.costs.keptBytes) {
          EXPECT_GE(one.ns + 1e-9, choice.leastNs);
        }
      });
    }
  }
  EXPECT_GT(bounded, 20);
}

/// The most bytes at a step, of values that have been made and that a later step reads, each run by itself.
int64_t countPeak(const RecomputeProblem &problem, const std::vector<RecomputeStep> &steps) {
  struct Buffer {
    int64_t bytes;
    size_t first, last;
  };
  std::vector<Buffer> buffers;
  std::vector<int> now(problem.values.size(), -1);
  int64_t given = 0;
  for (const RecomputeProblem::Value &value : problem.values)
    given += value.isGiven ? value.bytes : 0;
  for (size_t step = 0; step < steps.size(); ++step) {
    const Op &op = problem.ops[steps[step].op];
    for (unsigned value : op.operands)
      if (now[value] >= 0)
        buffers[now[value]].last = step;
    for (unsigned value : op.results) {
      now[value] = int(buffers.size());
      buffers.push_back({problem.values[value].bytes, step, problem.values[value].isResult ? steps.size() : step});
    }
  }
  int64_t peak = 0;
  for (size_t step = 0; step < steps.size(); ++step) {
    int64_t sum = 0;
    for (const Buffer &buffer : buffers)
      sum += buffer.first <= step && step <= buffer.last ? buffer.bytes : 0;
    peak = std::max(peak, sum);
  }
  return given + peak;
}

TEST(RecomputeTest, StepsReadWhatHasBeenMadeAndPeaksAreTheirs) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 300; ++trial) {
    RecomputeProblem problem = drawProblem(random);
    for (const RecomputeChoice &choice : findChoices(problem)) {
      std::vector<RecomputeStep> steps = listSteps(problem, choice.repeated);
      std::set<unsigned> again;
      double ns = 0;
      for (RecomputeStep step : steps) {
        if (!step.isAgain)
          continue;
        EXPECT_TRUE(choice.repeated.test(step.op) && again.insert(step.op).second);
        ns += problem.ops[step.op].ns;
        // What it reads runs again before it, if at all.
        for (unsigned value : problem.ops[step.op].operands)
          for (size_t maker = 0; maker < problem.ops.size(); ++maker)
            if (problem.ops[maker].results[0] == value && choice.repeated.test(maker)) {
              EXPECT_TRUE(again.count(maker));
            }
      }
      EXPECT_EQ(ns, choice.costs.ns);
      EXPECT_EQ(choice.costs.peakBytes, countPeak(problem, steps));
    }
  }
}

/// Layers of some values each, of which the layer before hands on one; behind the loss all are read, back to front.
RecomputeProblem makeLayers(unsigned layers, unsigned inside) {
  RecomputeProblem problem;
  unsigned x = problem.addValue(0);
  problem.values[x].isGiven = true;
  std::vector<unsigned> made;
  for (unsigned layer = 0; layer < layers; ++layer) {
    unsigned last = x;
    for (unsigned number = 0; number < inside; ++number)
      made.push_back(last = addOp(problem, true, 1, {x, last}, 10));
    made.push_back(x = addOp(problem, true, 1, {last, x}, 10));
  }
  unsigned gradient = addOp(problem, true, 1, {x}, 0);
  for (unsigned value : llvm::reverse(made))
    gradient = addOp(problem, false, 1, {value, gradient}, 1);
  return problem;
}

// Between layers one value is kept, and one layer is there at a time: n + inside, not n x inside.
TEST(RecomputeTest, OneBlockIsMadeAgainAtATime) {
  constexpr unsigned kLayers = 16, kInside = 7;
  RecomputeProblem problem = makeLayers(kLayers, kInside);
  RepeatedOps none(problem.ops.size());
  EXPECT_GE(countCosts(problem, none).peakBytes, int64_t(10 * kLayers * (kInside + 1)));
  RecomputeChoice blocks = findBlocks(problem);
  EXPECT_LE(blocks.costs.peakBytes, int64_t(10 * (kLayers + kInside + 4)));
  // Without boundaries all of the forward would be there again at once.
  EXPECT_GT(countCosts(problem, findOptimum(problem, 1e-9).repeated).peakBytes, 2 * blocks.costs.peakBytes);
  // What is between layers is kept, and nothing else.
  llvm::BitVector kept = findBlockEnds(problem, 10 * (kInside + 1));
  for (unsigned value : kept.set_bits())
    EXPECT_EQ(value % (kInside + 1), 0U) << "of value " << value;
  EXPECT_GE(kept.count(), kLayers / 2);
}

// What has to run again does, and what has to be kept is.
TEST(RecomputeTest, WishesGoFirst) {
  RecomputeProblem problem = makeLayers(2, 2);
  problem.ops[1].mustRepeat = true;
  problem.values[problem.ops[4].results[0]].mustKeep = true;
  for (double price : {1e-9, 1e9}) {
    RepeatedOps repeated = findOptimum(problem, price).repeated;
    EXPECT_TRUE(repeated.test(1));
    EXPECT_FALSE(repeated.test(4));
  }
}

} // namespace
