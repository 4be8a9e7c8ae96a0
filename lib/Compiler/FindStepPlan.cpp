//===- FindStepPlan.cpp - what only plans of steps are made of ------------===//
//
// A step keeps what its backward reads, or makes it again; and stages of one have a schedule. Both are variants of a cell:
//
//   made again   none, cheap, blocks   the search of the cell for each, where memory binds: who makes more again may store more
//                auto                  of the best cells, the limit in hand: as little again as it asks for
//   schedules    1f1b in all cells, the others for the plans of the best ones, those first by which equal stages would wait least
//
// What each comes to is predicted like any plan, kernels formed, and its peak with as many microbatches as its schedule has under way.
//
//===----------------------------------------------------------------------===//
#include "PlanFinder.h"

#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "cleave/Schedule/Generate.h"
#include "cleave/Schedule/Messages.h"
#include "cleave/Schedule/Place.h"
#include "cleave/Schedule/Simulate.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::spmd;

/// Of cells that are looked at more closely; one, where a trial takes long.
static constexpr size_t kMostRefined = 3;

/// Bytes of the buffers of the rank that takes most, once memory is planned; 0 where that cannot be.
int64_t Compilation::PlanFinder::measurePlanned(const std::shared_ptr<const Plan> &plan) const {
  OwningOpRef<ModuleOp> planned = state.advanceCopy(plan, state.searchBy(*plan), Phase::Planned);
  if (!planned)
    return 0;
  std::optional<Report> report;
  if (SmallVector<func::FuncOp, 4> ranks = pipe::getRankFunctions(*planned); !ranks.empty())
    report = cleave::makePipelineReport(ranks, state.options.model, &*given.cluster);
  else if (llvm::Expected<func::FuncOp> func = findEntry(*planned))
    report = cleave::makeReport(*func, state.options.model, &*given.cluster);
  else
    llvm::consumeError(func.takeError());
  return report ? report->peakBytesPerRank : 0;
}

//===----------------------------------------------------------------------===//
// Made again
//===----------------------------------------------------------------------===//

/// What a plan asks for itself is kept. A step that a file gives has no section to say it in.
bool Compilation::PlanFinder::mayRecompute() const {
  return answer.isStep && given.train && given.train->memory.policy == PlanPolicy::None;
}

/// What fits goes before what does not, then what is to be little; of what does not fit, what takes less memory.
static bool isBetter(const PlanCell &one, const PlanCell &known, double measure, double knownMeasure) {
  bool isAnswer = !one.text.empty(), isKnown = !known.text.empty();
  if (isAnswer != isKnown)
    return isAnswer;
  return isAnswer ? measure < knownMeasure : one.peakBytes < known.peakBytes;
}

void Compilation::PlanFinder::keepBetter(Tried one, Tried &known) const {
  if (one.plan && (!known.plan || isBetter(one.cell, known.cell, getMeasure(one.cell), getMeasure(known.cell))))
    known = std::move(one);
}

/// Only where a faster answer of the cell had no room: what is made again takes time. A policy whose fastest answer fits leaves nothing to those
/// that make more again.
/// \param met what the search without one ended with; null: nothing
void Compilation::PlanFinder::takeAgain(Look &look, const CellAnswer *met) {
  CellSearch &search = look.cell.getSearch();
  bool hasAnswer = !look.best.cell.text.empty();
  bool isTight = limit > 0 && (!hasAnswer || !met || search.findFaster(*met));
  bool isAsked = isTight || request.takesLeast || request.wantsFront;
  if (!mayRecompute() || !isAsked || !look.best.plan || (request.isQuick && hasAnswer))
    return;
  for (PlanPolicy policy : {PlanPolicy::Cheap, PlanPolicy::Blocks}) {
    Tried own{makeImpossible(look.candidate, ""), nullptr};
    Look again{look.candidate, look.plan, look.cell, own};
    again.plan.train->memory.policy = policy;
    search.setValueShare(0);
    const CellAnswer *found = searchCell(again);
    // What people write is another way down, and one that takes as long as all prices together.
    if (found && own.cell.text.empty() && !request.takesLeast)
      takeStyles(again);
    if (found && request.wantsFront)
      followFront(again);
    bool isEasy = !own.cell.text.empty() && found && !search.findFaster(*found);
    keepBetter(std::move(own), look.best);
    if (isEasy && !request.takesLeast && !request.wantsFront)
      return;
  }
}

/// The best of those that were found, and of those that do not fit the smallest.
std::vector<Compilation::PlanFinder::Tried *>
Compilation::PlanFinder::pickTried(llvm::function_ref<bool(const Tried &)> isWanted) {
  std::vector<Tried *> picked;
  for (Tried &one : found)
    if (one.plan && isWanted(one))
      picked.push_back(&one);
  // Of equal ones the one that was looked at first.
  llvm::sort(picked, [&](const Tried *lhs, const Tried *rhs) {
    if (isBetter(lhs->cell, rhs->cell, getMeasure(lhs->cell), getMeasure(rhs->cell)))
      return true;
    return !isBetter(rhs->cell, lhs->cell, getMeasure(rhs->cell), getMeasure(lhs->cell)) && lhs < rhs;
  });
  picked.resize(std::min(picked.size(), state.isSmall() ? kMostRefined : 1));
  return picked;
}

/// Policies are said of all of a step, and make more again than a limit asks for. Devices that differ have no limit of one number.
void Compilation::PlanFinder::takeAuto() {
  if (!mayRecompute() || limit == 0 || limit == std::numeric_limits<int64_t>::max() || request.takesLeast ||
      !given.cluster->unlike.empty())
    return;
  auto isTight = [](const Tried &one) {
    return one.cell.text.empty() || one.plan->train->memory.policy != PlanPolicy::None;
  };
  for (Tried *one : pickTried(isTight)) {
    Plan plan = *one->plan;
    plan.train->memory.policy = PlanPolicy::Auto;
    plan.train->memory.limit = limit;
    std::optional<Tried> made = makeTried(std::move(plan), one->cell.stages, one->cell.storedBytes, one->cell.ns);
    Tried own{one->cell, nullptr};
    own.cell.text.clear();
    if (made) {
      take(std::move(*made), own);
      keepBetter(std::move(own), *one);
    }
  }
}

//===----------------------------------------------------------------------===//
// Schedules
//===----------------------------------------------------------------------===//

namespace {
struct NamedSchedule {
  std::string name;
  int32_t chunks = 1;
  /// Of equal stages, by the work of a rank.
  double makespan = 0;
  size_t place = 0;
};
} // namespace

/// All that run a step by themselves, but those whose microbatches go two ways: each rank has two stages then, and no bound is told of it. The
/// least makespan first, as of stages that take equally long.
static std::vector<NamedSchedule> listSchedules(const StageCell &cell) {
  std::vector<NamedSchedule> schedules;
  auto ranks = static_cast<int32_t>(cell.stages), microbatches = static_cast<int32_t>(cell.microbatches);
  for (const schedule::GeneratorInfo &info : schedule::getGenerators()) {
    if (info.isForwardOnly || !schedule::hasFlush(info.name))
      continue;
    for (int32_t chunks : {1, 2, 4}) {
      llvm::Expected<schedule::Schedule> table =
          schedule::generatePlaced(info.name, {ranks, microbatches, chunks, 1}, {});
      if (!table) {
        llvm::consumeError(table.takeError());
        continue;
      }
      if (table->replicas.size() != 1 || table->numStages != ranks * chunks)
        continue;
      if (table->isComputeOnly())
        llvm::cantFail(schedule::addMessages(*table));
      schedule::Costs costs = schedule::Costs::uniform(table->numStages, chunks);
      llvm::Expected<schedule::Simulation> simulation = schedule::simulate(*table, costs);
      if (!simulation) {
        llvm::consumeError(simulation.takeError());
        continue;
      }
      schedules.push_back({info.name.str(), chunks, simulation->makespan, schedules.size()});
    }
  }
  // Of equal ones the order of docs/pipelines.md, simple ones first.
  llvm::sort(schedules, [](const NamedSchedule &lhs, const NamedSchedule &rhs) {
    return std::pair(lhs.makespan, lhs.place) < std::pair(rhs.makespan, rhs.place);
  });
  return schedules;
}

/// The plans of the best cells under other schedules, with what these have room for: one that has fewer microbatches under way may make less
/// again, another one more.
void Compilation::PlanFinder::takeSchedules() {
  constexpr size_t kMostSchedules = 6, kMostOfLarge = 3;
  if (!answer.isStep || request.isQuick)
    return;
  auto isStaged = [](const Tried &one) { return one.plan->pipeline.has_value() && one.cell.stages.microbatches > 1; };
  for (Tried *one : pickTried(isStaged)) {
    std::vector<NamedSchedule> schedules = listSchedules(one->cell.stages);
    schedules.resize(std::min(schedules.size(), state.isSmall() ? kMostSchedules : kMostOfLarge));
    const Plan given = *one->plan;
    for (const NamedSchedule &schedule : schedules) {
      Plan plan = given;
      plan.pipeline->schedule = schedule.name;
      plan.pipeline->chunks = schedule.chunks;
      std::vector<PlanPolicy> policies{PlanPolicy::None};
      if (plan.train)
        policies[0] = plan.train->memory.policy;
      if (mayRecompute())
        policies = {PlanPolicy::None, PlanPolicy::Cheap, PlanPolicy::Blocks};
      for (PlanPolicy policy : policies) {
        if (plan.train)
          plan.train->memory.policy = policy;
        std::optional<Tried> made = makeTried(plan, one->cell.stages, one->cell.storedBytes, one->cell.ns);
        Tried own{one->cell, nullptr};
        own.cell.text.clear();
        bool fits = made && take(std::move(*made), own);
        keepBetter(std::move(own), *one);
        // What has no program is no matter of memory.
        if (!made || fits)
          break;
      }
    }
  }
}
