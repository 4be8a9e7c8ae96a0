//===- FormatPlan.h - a plan as text ----------------------------*- C++ -*-===//
#ifndef CLEAVE_PLAN_FORMATPLAN_H
#define CLEAVE_PLAN_FORMATPLAN_H

#include "cleave/Plan/Plan.h"

namespace cleave::spmd {

/// `data=2,model=4`, as --mesh has it.
std::string formatMesh(llvm::ArrayRef<MeshAxis> mesh, llvm::StringRef separator = ",");

/// What `plan` asks of tensors, as the text of a plan that asks for the same: mesh, devices, rules, `uneven`, and
/// attention in the given form. `pipeline`: the text of that section; empty: there is none. What is no part of it: sizes of dims, states, the cluster.
std::string formatPlan(const Plan &plan, AttentionMethod attention, llvm::StringRef pipeline);

/// All that `plan` says, as a file that a person can edit: a key a line, a rule a line; `comments` are its first lines. `attention` as
/// above; of a pipeline what `formatPipeline` says.
std::string formatPlanFile(const Plan &plan, AttentionMethod attention, llvm::ArrayRef<std::string> comments);

/// `{axis: stage, microbatches: 8}`: all that a plan says of its pipeline but where stages are, and the file of a schedule.
std::string formatPipeline(const PlanPipeline &pipeline, int64_t microbatches);

/// The keys of a section `train` and their texts, in the order of docs/training.md: the same step, once they are read.
std::vector<std::pair<llvm::StringRef, std::string>> formatTrain(const PlanTrain &train);

/// `[{nodes: "*/embed*", rank: 1}, {first: "*/layer.3/*"}]`: the stages of a pipeline, as a plan says them.
std::string formatStages(llvm::ArrayRef<PlanStage> stages);

} // namespace cleave::spmd

#endif // CLEAVE_PLAN_FORMATPLAN_H
