//===- DevicePlan.h - a model's own device annotations ----------*- C++ -*-===//
//
// What a model says of devices (IR version 11 and later: `configuration`, `device_configurations`) as a plan. Where onnx.proto
// is silent, this holds:
//
//   * a spec is about the tensor; that of an output counts, or else that of the first node that takes it. Nodes that take it
//     otherwise are told of: between both lies a reshard, which is decided by cost.
//   * devices are ranks, or those of the ranks that the property `cleave.devices` of the model lists. Lists of devices know no axes: these are the fewest of which all lists are made, or those that
//     the property `cleave.mesh` of the model names.
//   * the devices of a pipeline stage are those on which tensors of its nodes lie: as many for each stage, and the same for stages on
//     one rank of the pipeline, which are numbered by their first device. Where no tensor says it, one stage stands behind the other.
//   * what a plan says of a pipeline but where stages are (its axis, microbatches, schedule) is said by the property `cleave.pipeline`; else there is one microbatch, and
//     the axis is called `stage`. Ops that are elsewhere than their node are listed by `cleave.stages`.
//   * the plan that they come of, if the model keeps it (`cleave.plan`) and they have not changed since, is taken in their place: it decides of
//     values that are no tensors of the model as it did then (DeviceOrigin.cpp).
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_ANNOTATIONS_DEVICEPLAN_H
#define CLEAVE_ANNOTATIONS_DEVICEPLAN_H

#include "cleave/Onnx/Model.h"
#include "cleave/Plan/Plan.h"

namespace cleave::onnx {

/// Nodes of the main graph and what they make, with their stages. `ofNode`: of each node, -1 where it says none: it is where the last of what it takes is.
spmd::StageNames nameStages(const GraphProto &graph, std::vector<int64_t> ofNode);

/// True if a node of the main graph says how a tensor of its is split, or which stage it is in.
bool hasDevicePlan(const ModelProto &model);

/// Gives `plan` mesh, rules and stages of the model; what else it says stays. Fails where annotations contradict each other
/// or the graph, or mean what no plan can say; `error` names node and tensor. Where there are several configurations,
/// the first that a node names counts; `notes` say what was passed over. Precondition: it has annotations.
llvm::LogicalResult readDevicePlan(const ModelFile &file, spmd::Plan &plan, spmd::PlanError &error,
                                   std::vector<std::string> &notes);

/// Of a plan, the annotations that come of it, and what else these depend on.
class PlanDigest {
public:
  /// As each stands encoded in its node, in the order of nodes.
  void addAnnotation(llvm::StringRef bytes);
  /// `settings`: a text that differs where anything else does that decides.
  std::string get(llvm::StringRef plan, llvm::StringRef settings) const;

private:
  std::string all; ///< digests
};

/// Puts mesh, rules, attention and pipeline of the property `cleave.plan` in place of those that annotations have given `plan`, if
/// they are still those that come of it. `isOther`: there is such a property, and it is about others.
bool readOrigin(const ModelFile &file, llvm::StringRef settings, spmd::Plan &plan, bool &isOther);

} // namespace cleave::onnx

#endif // CLEAVE_ANNOTATIONS_DEVICEPLAN_H
