//===- Annotate.h - a model with its shardings ------------------*- C++ -*-===//
//
// The way back of cleave/Annotations/DevicePlan.h: a decided module says how the tensors of its model lie, and the model's
// file gets that as device annotations (`configuration`, `device_configurations`), which other tools and Cleave read.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_ANNOTATIONS_ANNOTATE_H
#define CLEAVE_ANNOTATIONS_ANNOTATE_H

#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "cleave/Onnx/Model.h"
#include "cleave/Plan/Pipeline.h"
#include "cleave/Support/File.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"
#include <map>

namespace cleave::onnx {

/// What the tensors of a model are, by their names.
using TensorTypes = llvm::StringMap<mlir::RankedTensorType>;

/// Of a module as it was imported: canonical form may leave a tensor's name on a value of another shape.
TensorTypes collectTensors(mlir::ModuleOp module);

/// What a model's file says of a pipeline.
struct NodeStages {
  /// Of each node of the main graph; -1: it is in none.
  std::vector<int64_t> ofNode;
  /// The rank of the pipeline on which each stage is.
  std::vector<int64_t> rankOf;
  /// All ranks, and which of its axes is the pipeline.
  spmd::MeshAttr mesh;
  std::string axis;
  /// What reads stages back: the property `cleave.pipeline`.
  std::string property;
  /// Ops that are elsewhere than those of nodes say: the property `cleave.stages`.
  std::map<std::string, int64_t> ops;
};

/// What annotations come of: the text of a plan, and what else decides (`readOrigin`).
struct PlanOrigin {
  std::string plan, settings;
};

/// The stages of nodes, by those of the ops that they have become in `module`; a node without ops is where it is needed first. A node
/// whose ops are in several stages is where most of them are, and behind what it takes; `told` has the names of nodes whose ops are not all
/// where they are. Error: no node is in a stage, which has parts of some. Precondition: pipe-assign-stages has run; `module` was imported from the graph.
llvm::Expected<NodeStages> findNodeStages(const GraphProto &graph, mlir::ModuleOp module,
                                          const spmd::PlanPipeline &pipeline, std::vector<std::string> &told);

/// Writes the ONNX model in `model` with, on each node of its main graph, the shardings of those of `tensors` that values of
/// `module` are; annotations that it had are gone. Everything else stays as it is in the file, byte by byte, but the IR version,
/// which is at least 11. Of a tensor in terms (partial) nothing is said, as ONNX has no words for it. With `stages` nodes have theirs, and
/// tensors lie on devices of the stage of the node that says it. Error: the file is malformed. Precondition: `module` has been propagated,
/// and was imported from the model; it is the program of one microbatch if there are stages. `origin`: goes along as a property; null: none does.
llvm::Error writeAnnotated(const MappedFile &model, mlir::ModuleOp module, const TensorTypes &tensors,
                           const NodeStages *stages, const PlanOrigin *origin, llvm::raw_ostream &os);

} // namespace cleave::onnx

#endif // CLEAVE_ANNOTATIONS_ANNOTATE_H
