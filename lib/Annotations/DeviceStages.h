//===- DeviceStages.h - pipeline stages of a model's nodes ------*- C++ -*-===//
#ifndef CLEAVE_LIB_ANNOTATIONS_DEVICESTAGES_H
#define CLEAVE_LIB_ANNOTATIONS_DEVICESTAGES_H

#include "cleave/Onnx/Model.h"
#include "cleave/Plan/Plan.h"
#include "llvm/ADT/SmallVector.h"

namespace cleave::onnx {

/// In which stage nodes of the main graph are, and which devices each stage has.
struct DeviceStages {
  /// 1: there are no stages.
  int64_t count = 1;
  /// Per node its stage, or, where it says none, that of the last of what it takes; -1: that has none either.
  std::vector<int64_t> ofNode;
  /// Per stage the rank of the pipeline that it is on, and per rank its devices (as ranks of the mesh), ascending; all have as many.
  std::vector<size_t> rankOf;
  std::vector<std::vector<int64_t>> devices;

  bool isSplit() const { return count > 1; }
  /// The devices of a node that is in a stage.
  llvm::ArrayRef<int64_t> getDevices(size_t node) const { return devices[rankOf[ofNode[node]]]; }
};

/// What is wrong, and at which node; null: with the model.
struct StageProblem {
  const NodeProto *node = nullptr;
  std::string message;
};

/// What a node says for one configuration; null if nothing.
const NodeDeviceConfigurationProto *findTold(const NodeProto &node, llvm::StringRef configuration);

/// Reads the stages of a configuration; `rankOf`: of each device, its rank of the mesh. False where they do not count from 0, an edge goes back, or devices are not
/// dealt out to them evenly.
bool readStages(const GraphProto &graph, llvm::StringRef configuration, llvm::ArrayRef<int64_t> rankOf,
                DeviceStages &stages, StageProblem &problem);

/// The section of a plan for stages: with what the property `cleave.pipeline` says of axis and microbatches, if it is there.
/// Ranks of stages stand in it where they are not the stages in order.
bool makePipeline(const ModelProto &model, const DeviceStages &stages, const spmd::PlanPlace &place,
                  spmd::PlanPipeline &pipeline, StageProblem &problem);

} // namespace cleave::onnx

#endif // CLEAVE_LIB_ANNOTATIONS_DEVICESTAGES_H
