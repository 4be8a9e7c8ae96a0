// Splitting large graphs into stages: layers of ten ops with times that differ, a skip over each layer, and a mask that
// all layers use.
#include "cleave/Schedule/StageSplit.h"
#include <benchmark/benchmark.h>
#include <random>

using namespace cleave::schedule;

static SplitProblem makeLayers(uint32_t numOps) {
  std::mt19937 engine(1);
  SplitProblem problem;
  problem.ops.resize(numOps);
  SplitValue mask{4096, 0, {}, "mask"};
  for (uint32_t op = 0; op < numOps; ++op) {
    problem.ops[op].ns = 1000 + engine() % 10000;
    problem.ops[op].parameters = {op / 2};
    SplitValue value{1 << 20, op, {}, ""};
    for (uint32_t user : {op + 1, op % 10 == 0 ? op + 10 : numOps})
      if (user < numOps)
        value.users.push_back(user);
    problem.values.push_back(value);
    if (op % 10 == 5)
      mask.users.push_back(op);
  }
  problem.values.push_back(mask);
  problem.parameterBytes.assign(numOps / 2 + 1, 1 << 22);
  return problem;
}

static void split(benchmark::State &state) {
  SplitProblem problem = makeLayers(static_cast<uint32_t>(state.range(0)));
  SplitOptions options;
  for (int32_t stage = 0; stage < state.range(1); ++stage)
    options.placement.push_back(stage);
  for (auto _ : state) {
    StageSplit answer = llvm::cantFail(splitStages(problem, options));
    state.counters["over bound"] = static_cast<double>(answer.bottleneckNs) / static_cast<double>(answer.boundNs);
  }
}
BENCHMARK(split)->Args({10000, 16})->Args({100000, 64})->Args({1000000, 64})->Unit(benchmark::kMillisecond);
