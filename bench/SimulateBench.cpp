//===- SimulateBench.cpp - how long a large schedule takes to check -------===//
//
// SimulateBench [NAME] [RANKS] [ACTIONS]: makes a schedule of so many computations per rank (1f1b, 16,384 and 1,000 without
// arguments), simulates it, checks it with the messages that it needs, and says seconds and the most memory so far. Aims
// for simulation and check together: 10 s and 4 GB on one core.
//
//===----------------------------------------------------------------------===//
#include "cleave/Schedule/Check.h"
#include "cleave/Schedule/Generate.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <sys/resource.h>

using namespace cleave::schedule;

/// Runs `work` and prints what it took.
template <typename Work> static double time(const char *name, Work work) {
  auto start = std::chrono::steady_clock::now();
  work();
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  llvm::outs() << llvm::formatv("{0,-10} {1,7:f2} s, {2:f2} GB at most so far\n", name, seconds,
                                double(usage.ru_maxrss) * 1024 / 1e9);
  return seconds;
}

int main(int argc, char **argv) {
  std::string name = argc > 1 ? argv[1] : "1f1b";
  int ranks = argc > 2 ? std::atoi(argv[2]) : 16384, actions = argc > 3 ? std::atoi(argv[3]) : 1000;
  Schedule schedule;
  bool isMade = true;
  // F and B are two, F, I and W three: the first shape says which.
  Shape shape;
  shape.ranks = ranks;
  shape.microbatches = actions / (name.rfind("zb", 0) == 0 ? 3 : 2);
  time("generate", [&] {
    llvm::Expected<Schedule> made = generate(name, shape);
    isMade = bool(made);
    if (isMade)
      schedule = std::move(*made);
    else
      llvm::errs() << "error: " << llvm::toString(made.takeError()) << '\n';
  });
  if (!isMade)
    return 1;
  Costs costs = Costs::uniform(schedule.numStages, std::max(1, schedule.numStages / ranks));
  bool isRight = true;
  double total = time("simulate", [&] {
    llvm::Expected<Simulation> run = simulate(schedule, costs);
    isRight = bool(run);
    if (!isRight)
      llvm::consumeError(run.takeError());
  });
  total += time("check", [&] { isRight &= check(schedule, costs).violations.empty(); });
  llvm::outs() << llvm::formatv("{0}, {1} ranks, {2} actions each: simulation and check {3:f2} s, {4}\n", name, ranks,
                                schedule.programs[0].size(), total, isRight ? "right" : "WRONG");
  return isRight ? 0 : 1;
}
