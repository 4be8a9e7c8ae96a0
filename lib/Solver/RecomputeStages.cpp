//===- RecomputeStages.cpp - what each stage makes again ------------------===//
//
// Greedy, and in the end every choice is measured: what a plan of memory takes is not what lifetimes say. A stage never goes back, so that there are
// as many steps at most as stages have choices.
//
//===----------------------------------------------------------------------===//
#include "cleave/Solver/RecomputeStages.h"

using namespace cleave;
using llvm::ArrayRef;
using llvm::SmallVector;

// Boundaries are those of stages that are settled: an op is in one of them, or in none.
void cleave::keepHandedOn(const RecomputeProblem &problem, ArrayRef<int64_t> stageOf, RepeatedOps &repeated) {
  std::vector<int64_t> makers(problem.values.size(), -1);
  for (auto [number, op] : llvm::enumerate(problem.ops))
    for (unsigned value : op.results)
      makers[value] = static_cast<int64_t>(number);
  for (auto [op, stage] : llvm::zip_equal(problem.ops, stageOf))
    for (unsigned value : op.isForward ? ArrayRef<unsigned>(op.operands) : ArrayRef<unsigned>())
      if (int64_t maker = makers[value];
          maker >= 0 && stage >= 0 && stageOf[maker] >= 0 && stageOf[maker] != stage && !problem.ops[maker].mustRepeat)
        repeated.reset(static_cast<unsigned>(maker));
}

RepeatedOps StageChooser::getRepeated(const Chosen &chosen) const {
  RepeatedOps repeated(problem.ops.size());
  for (unsigned op = 0; op < problem.ops.size(); ++op) {
    int64_t stage = stageOf[op];
    repeated[op] = choices[stage < 0 ? 0 : chosen[stage]].repeated[op];
  }
  keepHandedOn(problem, stageOf, repeated);
  return repeated;
}

/// To plan a program takes long, and ways that begin apart meet.
const SmallVector<int64_t> &StageChooser::getBytes(const Chosen &chosen) {
  auto [entry, isNew] = known.try_emplace(chosen);
  if (isNew) {
    entry->second = measure(getRepeated(chosen));
    tried.push_back(chosen);
  }
  return entry->second;
}

std::optional<StageChooser::Chosen> StageChooser::find(int64_t limit) {
  Chosen chosen(rankOf.size(), 0);
  while (true) {
    ArrayRef<int64_t> bytes = getBytes(chosen);
    if (limit == 0 || *llvm::max_element(bytes) <= limit)
      return chosen;
    bool goesOn = false;
    for (auto [own, rank] : llvm::zip_equal(chosen, rankOf))
      if (bytes[std::min<size_t>(rank, bytes.size() - 1)] > limit && own + 1 < choices.size()) {
        ++own;
        goesOn = true;
      }
    if (!goesOn)
      break;
  }
  // A stage that never goes back may go too far: then what all stages do alike may fit, or something that was tried before.
  for (size_t choice = 0; choice < choices.size(); ++choice)
    getBytes(Chosen(rankOf.size(), choice));
  for (const Chosen &other : tried)
    if (getMost(other) <= limit)
      return other;
  return std::nullopt;
}

int64_t StageChooser::findLeast() {
  int64_t least = INT64_MAX;
  for (const Chosen &chosen : tried)
    least = std::min(least, getMost(chosen));
  // With more room other stages stay where they are, and what is found may need less of it.
  while (std::optional<Chosen> found = find(least - 1)) {
    int64_t most = getMost(*found);
    least = find(most) ? most : least - 1;
  }
  return least;
}
