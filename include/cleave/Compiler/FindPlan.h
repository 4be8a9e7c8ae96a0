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

namespace cleave {

struct PlanRequest {
  /// 0: the mesh that the options or their plan name.
  int64_t devices = 0;
  /// Bytes that a rank may take; 0: what the device of the cluster has, or any number where that is not said.
  int64_t memoryBytes = 0;
  /// The answer is the one of those found that takes least memory.
  bool takesLeast = false;
  /// Looks at one mesh only: an axis for each kind of link.
  bool isQuick = false;
};

/// A mesh that was looked at.
struct PlanCell {
  enum class Verdict {
    Best,
    Worse,
    Memory,     ///< nothing fits
    Impossible, ///< the model cannot be sharded so
  };
  /// `data=2,model=4`; of a cell without an answer the sizes alone.
  std::string mesh;
  Verdict verdict = Verdict::Worse;
  /// Predicted for a rank, kernels formed.
  double ns = 0;
  /// At once, and of them what parameters and states take; sent by the busiest rank.
  int64_t peakBytes = 0, storedBytes = 0, sentBytes = 0;
  /// The plan as a file that a person can edit, with comments; empty without an answer.
  std::string text;
};

/// In the order of the enum.
inline constexpr llvm::StringLiteral kVerdictWords[] = {"best", "worse", "memory", "impossible"};

struct FoundPlan {
  /// The best cell's.
  std::shared_ptr<const spmd::Plan> plan;
  /// The least time first, those without an answer last.
  std::vector<PlanCell> cells;
  /// On one device.
  double oneDeviceNs = 0;
  /// The limit that counted; 0: there was none.
  int64_t memoryBytes = 0;
  unsigned solves = 0;
  double seconds = 0;

  const PlanCell &getBest() const { return cells.front(); }
};

/// Finds a plan for a model, which is loaded where it is not yet. Rules of a plan in the options are kept. Nothing after an error: no number
/// of devices, devices that do not fill the nodes of the cluster, nothing that fits.
std::optional<FoundPlan> findPlan(Compilation &compilation, const PlanRequest &request);

} // namespace cleave

#endif // CLEAVE_COMPILER_FINDPLAN_H
