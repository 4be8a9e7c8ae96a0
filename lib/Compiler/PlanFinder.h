//===- PlanFinder.h - the search for a plan ---------------------*- C++ -*-===//
//
//   cells      stages x microbatches x mesh       FindPlan.cpp: which, in which order, and the answer of all
//   one cell   prices of memory x styles          LookAtCell.cpp: what is decided becomes a plan, whose program is predicted
//   small ones tensor by tensor                   RefinePlan.cpp: what is predicted to take less than what was found
//   steps      what is made again x schedules     FindStepPlan.cpp: variants of cells
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_COMPILER_PLANFINDER_H
#define CLEAVE_LIB_COMPILER_PLANFINDER_H

#include "CellPlan.h"

#include "llvm/ADT/StringMap.h"

#include <limits>

namespace cleave {

/// What has no program takes that long.
inline constexpr double kNever = std::numeric_limits<double>::infinity();

class Compilation::PlanFinder {
public:
  PlanFinder(State &state, const PlanRequest &request) : state(state), request(request) {}

  /// Nothing after an error.
  std::optional<FoundPlan> run();

private:
  struct Candidate {
    spmd::StageCell stages;
    /// Of the devices of a stage.
    std::vector<spmd::MeshAxis> mesh;
    /// See `nameAxes`; nothing: axes have names.
    std::optional<std::vector<unsigned>> borders;
  };
  /// A program that was predicted, and its plan.
  struct Tried {
    PlanCell cell;
    std::shared_ptr<const spmd::Plan> plan;
  };
  /// A cell while it is looked at.
  struct Look {
    const Candidate &candidate;
    /// What is given, in that cell.
    spmd::Plan plan;
    CellPlan &cell;
    /// Best so far.
    Tried &best;
  };

  // FindPlan.cpp
  bool prepare();
  bool checkDevices();
  void findStates();
  void predictOneDevice();
  llvm::Expected<std::vector<Candidate>> listCandidates(spmd::StageCell stages, bool isQuick);
  bool lookAtStages();
  std::vector<spmd::StageCell> pickBest() const;
  void lookAtMeshes(llvm::ArrayRef<spmd::StageCell> picked);
  void dropEqual();
  void addOthers();
  void listFront();
  void findBinding();
  std::optional<FoundPlan> findLeast();
  bool failWithout();
  bool fail(llvm::Error error, Blame blame = Blame::Input) { return state.fail(std::move(error), blame); }

  // LookAtCell.cpp
  Tried look(const Candidate &candidate);
  PlanCell makeImpossible(const Candidate &candidate, std::string reason) const;
  const spmd::CellAnswer *searchCell(Look &look);
  void takeOthers(Look &look, const spmd::CellAnswer &met);
  void followFront(Look &look);
  void takeStyles(Look &look);
  void takeMixtures(Look &look, const spmd::CellAnswer &met);
  bool tryPlan(spmd::Plan plan, std::optional<int64_t> storedBytes, Look &look);
  bool isProvable(const spmd::Plan &plan);
  std::optional<Tried> makeTried(spmd::Plan plan, const spmd::StageCell &stages, std::optional<int64_t> storedBytes,
                                 double least);
  bool take(Tried one, Tried &known);
  /// What came of a plan, as its text says it: cells whose axes are called alike find the same ones.
  struct Predicted {
    State::Prediction taken;
    /// By other objectives too, where those count.
    bool isCompared = false;
  };
  State::Prediction predictAsTaken(const std::shared_ptr<spmd::Plan> &plan, double least);
  State::Prediction predictInMemory(std::shared_ptr<spmd::Plan> &plan, double least);
  double getBar() const;
  bool isBeyond(const spmd::StageCell &stages, double ns) const;
  /// What is to be little of an answer.
  double getMeasure(const PlanCell &cell) const;
  bool fitsMemory(int64_t peakBytes, bool fitsDevices) const;
  bool fits(const PlanCell &cell) const;
  int64_t getLeastMemory() const;
  int64_t getLimit(const spmd::StageCell &stages) const;
  std::string writeText(const PlanCell &cell, const spmd::Plan &plan) const;

  // RefinePlan.cpp
  void refine(Look &look, const spmd::CellAnswer &met);

  // FindStepPlan.cpp
  bool mayRecompute() const;
  int64_t measurePlanned(const std::shared_ptr<const spmd::Plan> &plan) const;
  void keepBetter(Tried one, Tried &known) const;
  void takeAgain(Look &look, const spmd::CellAnswer *met);
  std::vector<Tried *> pickTried(llvm::function_ref<bool(const Tried &)> isWanted);
  void takeAuto();
  void takeSchedules();

  State &state;
  const PlanRequest &request;
  /// What is given, with all axes free, on the machine that counts.
  spmd::Plan given;
  /// Of the model as it was loaded.
  spmd::ModelNames names;
  int64_t limit = 0;
  std::vector<Tried> found;
  /// All that has a program, whether it fits or not.
  std::vector<Tried> tried;
  llvm::StringMap<Predicted> predicted;
  /// Of the cell that is looked at; null: none is.
  const spmd::Problem *problemOfCell = nullptr;
  /// The least measure of an answer, and of all that was met the least memory and time of a call.
  double best = std::numeric_limits<double>::infinity(), leastNs = std::numeric_limits<double>::infinity();
  int64_t leastBytes = std::numeric_limits<int64_t>::max();
  /// No program of a cell that was looked at takes less, by proof.
  int64_t provedBytes = std::numeric_limits<int64_t>::max();
  /// See `findShareBeside`; until it is known, all could be.
  double shareBeside = 1;
  FoundPlan answer;
};

} // namespace cleave

#endif // CLEAVE_LIB_COMPILER_PLANFINDER_H
