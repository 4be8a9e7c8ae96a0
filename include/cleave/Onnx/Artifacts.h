//===- Artifacts.h - what onnxruntime trains with ---------------*- C++ -*-===//
//
// A folder that onnxruntime.training.artifacts.generate_artifacts (1.16 to 1.19) has made:
//
//   eval_model.onnx        the model and its loss; weights are inputs            ─▶ forward and loss
//   training_model.onnx    the same with gradients, each added to a buffer       ─▶ which weights are trained
//   optimizer_model.onnx   one node                                              ─▶ the optimizer
//   checkpoint             weights, a FlatBuffer (lib/Onnx/OrtCheckpoint.fbs)    ─▶ what they begin as
//
// Gradients are not read: they are taken of the model anew.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_ONNX_ARTIFACTS_H
#define CLEAVE_ONNX_ARTIFACTS_H

#include "cleave/Onnx/TensorData.h"

namespace cleave::onnx {

/// `eval_model.onnx` in that folder.
std::string getEvalModel(llvm::StringRef folder);

/// Weights of a checkpoint, and what it says of the optimizer.
struct OrtCheckpoint {
  llvm::StringMap<TensorData> weights;
  /// Of an optimizer that has begun: where it stands is not taken over.
  std::optional<double> rate;
  bool hasMoments = false;
};

/// Reads a checkpoint; its bytes stay in the file. Errors: it is none, is of a version after 2, is cut off or its tables are damaged; it is
/// nominal, or has its elements in another file; a weight has no name, one of another, a type that tensors do not have, or more or fewer
/// bytes than its shape asks for. Elements that have changed are not seen: the format has no digest.
llvm::Expected<OrtCheckpoint> readOrtCheckpoint(std::shared_ptr<const MappedFile> file);

struct OrtOptimizer {
  /// Of AdamWOptimizer: PyTorch's form (its mode 0) and that of Hugging Face's transformers (1).
  enum class Kind { Sgd, TorchAdamW, HfAdamW };
  Kind kind = Kind::Sgd;
  double betas[2] = {0.9, 0.999}, epsilon = 1e-8, decay = 0;
  bool correctsBias = true;
  /// The most that all gradients may be long together.
  std::optional<double> clip;
};

struct Artifacts {
  /// The output of eval_model.onnx that is minimized.
  std::string loss;
  std::vector<std::string> trained;
  /// Nothing where the folder has no optimizer_model.onnx.
  std::optional<OrtOptimizer> optimizer;
  OrtCheckpoint checkpoint;
  /// What onnxruntime does otherwise in training than in eval_model.onnx, in the style of a warning.
  std::vector<std::string> notes;
};

/// Reads all of a folder. Errors name the file: it is missing (but for optimizer_model.onnx), damaged, or none that is made so: no weight is
/// trained, a trained weight is not in the checkpoint, the optimizer is unknown.
llvm::Expected<Artifacts> readArtifacts(llvm::StringRef folder);

} // namespace cleave::onnx

#endif // CLEAVE_ONNX_ARTIFACTS_H
