//===- FindPlan.h - a plan that is found ------------------------*- C++ -*-===//
//
//   cleave::Compilation compilation(options);
//   std::optional<cleave::FoundPlan> found = cleave::findPlan(compilation, {.devices = 8});
//   if (!found)
//     return complainAbout(compilation.getDiagnostics());
//   writeFile("plan.yaml", found->getBest().text);
//
// Candidates are *cells*: meshes of so many devices, all of whose axes are free. In each the solver finds what takes least time within the
// memory of a device, and the program of that is predicted as a report predicts it, kernels formed; the least counts (docs/finding-plans.md).
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_COMPILER_FINDPLAN_H
#define CLEAVE_COMPILER_FINDPLAN_H

#include "cleave/Compiler/Compilation.h"
#include "cleave/Search/StageCells.h"

namespace cleave {

/// What is to be least.
enum class PlanObjective {
  Latency,    ///< the time of a call
  Throughput, ///< the time of a call where calls follow each other
  Step,       ///< the time of a call that gives the next values of its states: a training step, a decoded token
};
/// In the order of the enum.
inline constexpr llvm::StringLiteral kPlanObjectiveWords[] = {"latency", "throughput", "step"};

struct PlanRequest {
  /// 0: the mesh that the options or their plan name.
  int64_t devices = 0;
  /// Bytes that a rank may take; 0: what the device of the cluster has, or any number where that is not said.
  int64_t memoryBytes = 0;
  /// The answer is the one of those found that takes least memory.
  bool takesLeast = false;
  /// Looks at one cell only: one stage, an axis for each kind of link.
  bool isQuick = false;
  PlanObjective objective = PlanObjective::Latency;
  /// Nanoseconds that a call may take; 0: any number.
  double withinNs = 0;
  /// Where devices are given and no mesh: how many stages and microbatches are looked at, and axes of a mesh.
  spmd::CountRange stages = {1, 8}, microbatches = {1, 16};
  int64_t mostAxes = 3;
  /// So many different plans are wanted: cells are left out only where they cannot be among these, and where there are not as many cells, the next
  /// best plans of cells count as well.
  size_t top = 1;
  /// A certificate is wanted: plans of which nothing could be proved are no answers.
  bool wantsProof = false;
  /// Follows time against memory, from what takes least time to what takes least memory.
  bool wantsFront = false;
  /// Decides everything anew, also what was decided before (Solver/SearchMemory.h): the same answer, in more time. For tests.
  bool forgets = false;
};

/// Stages as they were cut, by the times that cuts and schedules are made of: nanoseconds.
struct StagesTime {
  /// All microbatches by the schedule, and what no order of the same work is below.
  double ns = 0, orderBoundNs = 0;
  /// The slowest stage or link, and what no cuts of the program into as many are below.
  double slowestNs = 0, splitBoundNs = 0;
};

/// What was looked at: stages, microbatches and a mesh.
struct PlanCell {
  enum class Verdict {
    Best,
    Worse,
    Memory,     ///< nothing fits
    Impossible, ///< the model cannot be sharded so
    Pruned,     ///< cannot be better than another that was found
    Slow,       ///< a call takes more than it may
  };
  /// `stage=2,data=2,model=4`; of a cell without an answer the sizes alone.
  std::string mesh;
  spmd::StageCell stages;
  Verdict verdict = Verdict::Worse;
  /// Why the model cannot be sharded so.
  std::string reason;
  /// A call, and a call where calls follow each other, as predicted with kernels formed.
  double ns = 0, spanNs = 0;
  /// At once, and of them what parameters and states take; sent by the busiest rank.
  int64_t peakBytes = 0, storedBytes = 0, sentBytes = 0;
  /// Of a step: what is made again, in the words of `recompute`; and of one in stages its schedule, with the stages of a rank where there are
  /// several, `interleaved, 2 a rank`. Empty of others.
  std::string recompute, schedule;
  /// No rank takes more than its device has, where devices differ.
  bool fitsDevices = true;
  /// The plan as a file that a person can edit, with comments; empty without an answer.
  std::string text;
};

/// In the order of the enum.
inline constexpr llvm::StringLiteral kVerdictWords[] = {"best", "worse", "memory", "impossible", "pruned", "slow"};

/// Why a cell is not an answer, for people; empty where it is one.
llvm::StringRef describeVerdict(PlanCell::Verdict verdict);

/// What a limit costs: so much more memory of a rank would save so much time.
struct PlanBinding {
  int64_t moreBytes = 0;
  double savedNs = 0;
};

struct FoundPlan {
  /// The best cell's.
  std::shared_ptr<const spmd::Plan> plan;
  /// The least time first, those without an answer last.
  std::vector<PlanCell> cells;
  /// A call is a step of training.
  bool isStep = false;
  /// That counted: of a step `Step`, unless it is asked for otherwise.
  PlanObjective objective = PlanObjective::Latency;
  /// On one device.
  double oneDeviceNs = 0;
  /// Samples of a call: the batch of its inputs.
  int64_t samples = 1;
  /// The limit that counted; 0: there was none.
  int64_t memoryBytes = 0;
  /// The best that was met of time and memory, the fastest first, where that is asked for.
  std::vector<PlanCell> front;
  std::optional<PlanBinding> binding;
  /// Where no states are given: `past*=present*`, as `--state` has it, of outputs that look like next values of inputs.
  std::vector<std::string> proposedStates;
  /// Stages and microbatches of which a bound said that nothing is gained.
  unsigned pruned = 0;
  /// Meshes that nobody looked at, for there are many.
  unsigned leftOut = 0;
  unsigned solves = 0;
  double seconds = 0;

  const PlanCell &getBest() const { return cells.front(); }
  /// `call` or `step`.
  llvm::StringRef getWord() const { return isStep ? "step" : "call"; }
};

/// Finds a plan for a model, which is loaded where it is not yet. Rules of a plan in the options are kept. Nothing after an error: no number
/// of devices, devices that do not fill the nodes of the cluster, nothing that fits.
std::optional<FoundPlan> findPlan(Compilation &compilation, const PlanRequest &request);

} // namespace cleave

#endif // CLEAVE_COMPILER_FINDPLAN_H
