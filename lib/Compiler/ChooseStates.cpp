//===- ChooseStates.cpp - who keeps what a step learns --------------------===//
//
// Ranks that share the batch may each keep all parameters and states, and update them all; or a part each, which they gather where it is read
// (ZeRO of stage 3). Time decides how inputs are stored anyway, but a search from axis to axis, with one op after the other, hardly comes from
// one to the other: a state that is moved alone is a gather more, and all of them together save the update. So the other one is tried, too.
// On threads of a machine it takes less for nearly all models: the update reads and writes 28 bytes a parameter.
//
//===----------------------------------------------------------------------===//
#include "State.h"

#include "cleave/Dialect/Spmd/IR/AddAxis.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "cleave/Dialect/Spmd/IR/States.h"
#include "cleave/Plan/Plan.h"

#include <limits>

using namespace mlir;
using namespace cleave;
using spmd::AnnotationAttr;
using spmd::SpmdDialect;

/// What is stored otherwise than the model's author may expect must save something: a hundredth.
static constexpr double kStatesSaving = 1.01;

namespace {
/// Annotations of arguments, to be put back.
class Annotations {
public:
  explicit Annotations(func::FuncOp func) : func(func) {
    for (unsigned index = 0; index < func.getNumArguments(); ++index)
      kept.push_back(func.getArgAttr(index, SpmdDialect::kAnnotationAttr));
  }

  void put() const {
    for (auto [index, annotation] : llvm::enumerate(kept)) {
      func.removeArgAttr(index, SpmdDialect::kAnnotationAttr);
      if (annotation)
        func.setArgAttr(index, SpmdDialect::kAnnotationAttr, annotation);
    }
  }

private:
  mutable func::FuncOp func;
  SmallVector<Attribute> kept;
};
} // namespace

/// Shards all states that the axis divides and nothing is asked of; what a rule names stays as it asks. False if there are none.
static bool shardStates(func::FuncOp func, spmd::MeshAttr mesh, StringRef axis) {
  FailureOr<SmallVector<spmd::StatePlace>> states = spmd::getStates(func);
  bool isAny = false;
  if (failed(states))
    return false;
  MLIRContext *context = func.getContext();
  auto cause = NameLoc::get(StringAttr::get(context, "states of a step are sharded where that takes less time"));
  for (const spmd::StatePlace &state : *states) {
    auto type = dyn_cast<RankedTensorType>(func.getArgument(state.argument).getType());
    bool isAsked = func.getArgAttr(state.argument, SpmdDialect::kAnnotationAttr) != nullptr;
    if (!type || isAsked || spmd::getBytes(type) < spmd::PlanZero().minBytes)
      continue;
    if (AnnotationAttr sharded = spmd::addAxis(mesh, {}, type, axis, cause)) {
      func.setArgAttr(state.argument, SpmdDialect::kAnnotationAttr, sharded);
      isAny = true;
    }
  }
  return isAny;
}

void Compilation::State::chooseStates(const Prediction &decided) {
  ShardOptions &sharding = options.sharding;
  bool isAsked = !handed.training || handed.evaluates || !handed.training->train->zero.empty();
  llvm::Expected<func::FuncOp> func = findEntry(*module);
  if (isAsked || !func)
    return llvm::consumeError(func.takeError());
  spmd::MeshAttr mesh = getWholeMesh();
  Telling telling(onProgress, "states");
  const Annotations before(*func);
  std::optional<Annotations> chosen;
  StringRef along;
  Prediction best = decided;
  int64_t memory = sharding.cluster ? sharding.cluster->device.memoryBytes : 0;
  int64_t most = memory ? std::max(memory, decided.peakBytes) : std::numeric_limits<int64_t>::max();
  for (auto [name, size] : llvm::zip_equal(mesh.getNames(), mesh.getSizes())) {
    if (size == 1 || !shardStates(*func, mesh, name)) {
      before.put();
      continue;
    }
    // What sends less is the better one of two that are as fast: what is sent goes through the memory in which other ranks compute, too.
    for (spmd::Optimize by : {spmd::Optimize::Time, spmd::Optimize::Balanced, spmd::Optimize::Bytes}) {
      ShardOptions trial = sharding;
      trial.decidingCosts.reset();
      if (by != spmd::Optimize::Time)
        trial.decidingCosts = makeCosts(by);
      Prediction taken = predict(handed.plan, trial, Trial::WithKernels);
      bool isFaster = taken.ns * kStatesSaving < best.ns;
      bool isAlike = taken.ns < best.ns * kStatesSaving && taken.sentBytes < best.sentBytes;
      if (taken.hasRings || taken.peakBytes > most || (!isFaster && !isAlike))
        continue;
      best = taken;
      sharding.decidingCosts = trial.decidingCosts;
      chosen.emplace(*func);
      along = name;
    }
    before.put();
  }
  if (!chosen)
    return;
  chosen->put();
  emitRemark(FileLineColLoc::get(context.get(), options.model, 0, 0))
      << "parameters, gradients and states of the optimizer are sharded along \"" << along
      << "\", as 'zero: {axis: " << along << ", stage: 3}' has them: predicted " << formatTime(best.ns)
      << " per rank after fusion, " << formatTime(decided.ns) << " without";
}
