//===- Properties.h - what a model's properties say of devices --*- C++ -*-===//
//
// ONNX has no words for the axes of a mesh, nor for schedules: these properties of a model say them, and other readers pass them over.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_ANNOTATIONS_PROPERTIES_H
#define CLEAVE_ANNOTATIONS_PROPERTIES_H

#include "cleave/Dialect/Spmd/IR/Spmd.h"

namespace cleave::onnx {

/// The property of a model that names the axes of the mesh: `data=2,model=4`.
constexpr llvm::StringLiteral kMeshProperty = "cleave.mesh";

/// The device of each rank of that mesh, where it is not its number: `1,0,3,2`.
constexpr llvm::StringLiteral kDevicesProperty = "cleave.devices";
/// What a plan's `pipeline:` says but stages, in its words: `{axis: stage, microbatches: 4}`.
constexpr llvm::StringLiteral kPipelineProperty = "cleave.pipeline";
/// The stages of ops of which those of nodes say it otherwise or nothing: `{"linear nn.add": 1}`.
constexpr llvm::StringLiteral kStagesProperty = "cleave.stages";
/// The plan that the annotations come of, and a digest of all that it decides them by: see `readOrigin`.
constexpr llvm::StringLiteral kPlanProperty = "cleave.plan";
constexpr llvm::StringLiteral kPlanDigestProperty = "cleave.plan.digest";

/// The text of `kMeshProperty`: `data=2,model=4`.
std::string formatMesh(spmd::MeshAttr mesh);

} // namespace cleave::onnx

#endif // CLEAVE_ANNOTATIONS_PROPERTIES_H
