//===- Phases.h - what each phase of a model's way does ---------*- C++ -*-===//
//
// A pipeline is a list of phases, each with its passes and, last, the gate that checks what now holds. What phases are
// called stands in Phase.h.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PIPELINES_PHASES_H
#define CLEAVE_PIPELINES_PHASES_H

#include "cleave/Dialect/Spmd/Transforms/PassOptions.h"
#include "cleave/Sharding/Cluster.h"
#include <optional>

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace cleave::spmd {
struct Decisions;
struct Plan;
class SearchMemory;
} // namespace cleave::spmd

namespace cleave {

/// What a user asked for: the options of all passes.
struct ShardOptions : spmd::AnnotateOptions, spmd::PropagateOptions, spmd::PartitionOptions {
  /// What everything costs, where it is not what `optimize` stands for: links of a known machine.
  std::optional<spmd::CostModel> costs;
  /// The known machine.
  std::optional<spmd::Cluster> cluster;
  /// By what shardings are decided, and so reshards planned (`spmd.costs`), where this comes to less of what `optimize` is after.
  std::optional<spmd::CostModel> decidingCosts;
  /// Elements of a panel's row, for the device that kernels are made for; 0: weights stay as they are.
  int64_t panelWidth = 0;
  /// Kernels are for devices (codegen/Device.h).
  bool isForDevices = false;
  /// What their libraries have is a kernel of its own. Precondition: isForDevices.
  bool usesLibraries = false;
  /// Sums of products over ranks go in parts: so many at most, or, 0, as many as pay. None: they stay whole.
  std::optional<int64_t> chunks;
  /// Floats lie in memory as bf16.
  bool narrowsFloats = false;

  spmd::CostModel getCosts() const { return costs.value_or(spmd::CostModel::create(optimize)); }
  spmd::CostModel getDecidingCosts() const { return decidingCosts.value_or(getCosts()); }
};

/// What goes from phase to phase besides the module.
struct ShardState {
  /// Placed, and taken away, by the first phase that can. Null: spmd-annotate reads what its options name.
  std::shared_ptr<const spmd::Plan> plan;
  /// Where spmd-propagate leaves how it decided, for explaining; may be null.
  spmd::Decisions *decisions = nullptr;
  /// What was decided of copies of the model; null: nothing is known.
  std::shared_ptr<spmd::SearchMemory> memory;
  /// With a pipeline, which all phases from annotation to schedules follow; null: there is none.
  std::shared_ptr<const spmd::Plan> pipeline;
  /// With a step of training, which `train` of this plan describes; null: the model as it is.
  std::shared_ptr<const spmd::Plan> training;
  /// The model is a step of training by itself (`training_info`): nothing is made of it.
  bool isOwnStep = false;
  /// Gradients are results of the step.
  bool keepsGradients = false;
  /// Of the step there is the loss alone, which changes nothing.
  bool evaluates = false;
  /// So many steps are one call, which takes as many batches.
  int64_t stepsPerCall = 1;
  /// The module has a function per rank of a pipeline.
  bool isPipelined = false;

  bool hasStep() const { return training || isOwnStep; }
};

/// One phase of a pipeline: adds its passes and its gate.
struct PipelinePhase {
  Phase phase;
  void (*addPasses)(mlir::OpPassManager &manager, const ShardOptions &options, ShardState &state);
};

/// The phases behind import, in order: to the program of one device, and from there to kernels and commands. A longer way
/// is a longer list.
llvm::ArrayRef<PipelinePhase> getShardPhases();
/// Between these: from one device's program of a microbatch to a program per rank of a pipeline.
llvm::ArrayRef<PipelinePhase> getPipelinePhases();
llvm::ArrayRef<PipelinePhase> getLowerPhases();

} // namespace cleave

#endif // CLEAVE_PIPELINES_PHASES_H
