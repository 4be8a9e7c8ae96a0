//===- RefinePlan.cpp - small models, tensor by tensor --------------------===//
//
// What the solver's costs leave out of some op counts most where a model is little else. Of such a model programs cost nothing to predict: from
// what was found each tensor that a plan may name is split in each other way, the rest as it is, and what is predicted to take less is kept, until
// nothing does.
//
//   x [_, _]  w [_, model]  y          x [model, _]  w [_, model]  y          x [model, _]  w [_, _]  y
//   9.8 us                      ─▶     9.1 us                          ─▶     7.3 us
//
//===----------------------------------------------------------------------===//
#include "PlanFinder.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::spmd;

namespace {
/// One way for each tensor, by number; 0: the plan does not name it.
struct Placement {
  std::vector<size_t> ways;
  /// What no rule names is decided by time along all axes, or follows from the rules.
  bool isFree = true;
};
} // namespace

/// Rules of the tensors that are named; what is split in no way is held to that.
static Plan makePlaced(const Plan &bare, ArrayRef<PlaceableTensor> tensors, const Placement &placement,
                       const ModelNames &names) {
  std::vector<TensorDims> placed;
  for (auto [tensor, way] : llvm::zip_equal(tensors, placement.ways))
    if (way > 0)
      placed.push_back({tensor.name, tensor.ways[way - 1]});
  Plan plan = bare;
  llvm::append_range(plan.rules, makePlanRules(placed, names));
  plan.areAllFree = placement.isFree;
  return plan;
}

/// Of cells that are far from the best nothing is hoped for.
void Compilation::PlanFinder::refine(Look &look, const CellAnswer &met) {
  constexpr unsigned kMostPredicted = 160, kMostRounds = 3;
  constexpr double kFar = 1.5;
  // Sums of the same times in another order differ.
  constexpr double kLess = 1 - 1e-6;
  if (request.isQuick || answer.isStep || look.candidate.stages.isPipeline() || look.best.cell.text.empty() ||
      getMeasure(look.best.cell) > kFar * best)
    return;
  Plan bare = look.cell.makeBarePlan(met, look.plan, look.candidate.borders);
  std::vector<PlaceableTensor> tensors = look.cell.listPlaceable(met, bare.getInnerAxes());
  if (tensors.empty())
    return;
  unsigned predicted = 0;
  auto measure = [&](const Placement &placement) {
    ++predicted;
    std::optional<Tried> made =
        makeTried(makePlaced(bare, tensors, placement, names), look.candidate.stages, std::nullopt, kNever);
    bool isAnswer = made && made->cell.verdict == PlanCell::Verdict::Worse;
    double least = isAnswer ? getMeasure(made->cell) : kNever;
    if (least < getMeasure(look.best.cell) * kLess)
      take(std::move(*made), look.best);
    return least;
  };
  Placement present{std::vector<size_t>(tensors.size(), 0)};
  for (auto [tensor, way] : llvm::zip_equal(tensors, present.ways))
    way = tensor.decided;
  double least = measure(present);
  bool isBetter = true;
  for (unsigned round = 0; round < kMostRounds && isBetter; ++round) {
    isBetter = false;
    // Of all changes of one tensor the best: the first that helps may bar the way to it.
    const Placement from = present;
    for (size_t index = 0; index < tensors.size(); ++index)
      for (size_t way = 0; way <= tensors[index].ways.size(); ++way)
        for (bool isFree : {true, false}) {
          Placement other = from;
          other.ways[index] = way;
          other.isFree = isFree;
          if (predicted == kMostPredicted)
            return;
          if (double ns = measure(other); ns < least * kLess) {
            least = ns;
            present = std::move(other);
            isBetter = true;
          }
        }
  }
}
