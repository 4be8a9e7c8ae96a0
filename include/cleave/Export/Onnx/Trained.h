//===- Trained.h - trained weights back into a model ------------*- C++ -*-===//
#ifndef CLEAVE_EXPORT_ONNX_TRAINED_H
#define CLEAVE_EXPORT_ONNX_TRAINED_H

#include "cleave/Export/Onnx/Adapters.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace cleave::onnx {
struct ModelProto;
struct TensorProto;

/// What went where.
struct TrainedWeights {
  std::vector<std::string> replaced; ///< initializers, in the order of the model
  std::vector<std::string>
      others; ///< tensors of the checkpoint that are no weight of the model: what an optimizer keeps
};

/// What can be written back: by its name each initializer of the model, and each value of a node Constant, also of its training graphs.
llvm::StringMap<const TensorProto *> findStored(const ModelProto &model);
/// An error at the first of `weights` that the ONNX model at `model` has no such place for.
llvm::Error checkStored(llvm::ArrayRef<std::string> weights, llvm::StringRef model);

/// The file next to the model `out` that elements are written to where the model had some in files of their own.
std::string getTrainedData(llvm::StringRef out);

/// Writes the ONNX model at `model` to `out` with the weights of the checkpoint (safetensors) at `checkpoint`: each initializer that has
/// the name of a tensor there gets its elements, rounded to the initializer's type, floats to floats. All else of the file stays as it is,
/// byte by byte, but for inputs that are weights of `artifacts` (a folder, Onnx/Artifacts.h; empty: none), which become initializers. To a
/// weight that has `adapters` their products are added. Elements that the model has in other files go to `getTrainedData`. Errors: a file
/// cannot be read or written, a shape or an element type is another one, no initializer has a tensor.
llvm::Expected<TrainedWeights> exportTrained(llvm::StringRef model, llvm::StringRef checkpoint, llvm::StringRef out,
                                             llvm::ArrayRef<Adapter> adapters = {}, llvm::StringRef artifacts = {});

} // namespace cleave::onnx

#endif // CLEAVE_EXPORT_ONNX_TRAINED_H
