//===- Import.h - from an ONNX file to the nn dialect -----------*- C++ -*-===//
//
// The module has one function `main`. Its arguments and results carry the ONNX names of the tensors (`nn.name`), its
// ops have the locations of NodeLoc.h, and weights are `nn.param` symbols that refer to bytes in files: they are never
// read here, so that a model of any size imports in the memory that its graph needs.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_IMPORT_ONNX_IMPORT_H
#define CLEAVE_IMPORT_ONNX_IMPORT_H

#include "cleave/Onnx/TensorData.h"
#include "cleave/Onnx/TrainingGraph.h"
#include "cleave/Reference/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace cleave::onnx {

/// On a module: names of the model's inputs that have a default (an initializer) which the caller gave no other value for.
inline constexpr llvm::StringLiteral kDefaultsAttr = "nn.defaults";

struct ImportOptions {
  /// Values of symbolic dims: `--dim batch=8`.
  llvm::StringMap<int64_t> dims;
  /// Where some of them, and of `shapes`, were written (file or option, line, column): errors about them are there.
  std::map<std::string, mlir::FileLineColLoc> dimPlaces, shapePlaces;
  /// Shapes of inputs, where the model leaves dims open; they must agree with what the model says.
  llvm::StringMap<llvm::SmallVector<int64_t>> shapes;
  /// Shapes of arrays that will be the inputs, in place of their defaults where they have some; names that the model lacks are passed over, `shapes` come first.
  llvm::StringMap<llvm::SmallVector<int64_t>> arrayShapes;
  /// Values of inputs. Used only where the model computes a shape or another structural parameter from an input: the
  /// import then holds for this value, which becomes the argument's attribute `nn.value`.
  llvm::StringMap<reference::Tensor> inputValues;
  /// Tensors of the main graph that folding must not swallow, should they be constants. Where no op takes one in the end,
  /// the module says so (`nn.unused`).
  llvm::StringSet<> kept;
  /// However small, floats of the file stay weights where they have two elements at least: what is trained is no constant.
  bool keepsWeights = false;
  /// With `keepsWeights`, initializers that stay weights though they have one element.
  llvm::StringSet<> singleWeights;
  /// What Dropout nodes pass over is said of their results (Dialect/Nn/IR/Random.h); otherwise they are the identity.
  bool keepsDropout = false;
  /// Elements of initializers, in place of those of the file, and of inputs, which are weights by that; never constants, however small.
  llvm::StringMap<TensorData> weights;
  /// The graph is a step of training (`joinTraining`): its states are arguments, and what they become results. What it begins with is computed.
  std::optional<TrainingStep> step;
  /// Gradients of its loss by its parameters are results of such a step, too.
  bool keepsGradients = false;
  /// Elements that constant folding may produce, over the whole model.
  int64_t foldBudget = int64_t(1) << 24;
  /// Notes for an error that sizes of symbolic dims are missing.
  std::function<std::vector<std::string>()> noteOpen = {};
  /// Goes on after an error, so that all nodes that can't be imported are reported.
  bool collectAllErrors = false;
};

/// Imports a model that has been read. Each error is a diagnostic located at the file that names node, op type, domain,
/// version and output tensor; null after an error.
mlir::OwningOpRef<mlir::ModuleOp> importOnnx(mlir::MLIRContext *context, ModelFile &model,
                                             const ImportOptions &options = {});
/// Reads a file; null after an error, which is emitted.
std::unique_ptr<ModelFile> readModel(mlir::MLIRContext *context, std::shared_ptr<const MappedFile> file);
/// Both, for the file at `path`.
mlir::OwningOpRef<mlir::ModuleOp> importOnnx(mlir::MLIRContext *context, llvm::StringRef path,
                                             const ImportOptions &options = {});

} // namespace cleave::onnx

#endif // CLEAVE_IMPORT_ONNX_IMPORT_H
