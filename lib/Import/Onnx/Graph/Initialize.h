//===- Initialize.h - what a step of training begins with -------*- C++ -*-===//
#ifndef CLEAVE_LIB_IMPORT_ONNX_GRAPH_INITIALIZE_H
#define CLEAVE_LIB_IMPORT_ONNX_GRAPH_INITIALIZE_H

#include "cleave/Import/Onnx/Import.h"

namespace cleave::onnx {

/// Computes the graphs `initialization` of a model, and adds what they give to `options.weights` under the names of the initializers that
/// begin as it. Errors are those of importing and of running such a graph. Precondition: `options.step`.
llvm::LogicalResult initialize(mlir::MLIRContext *context, const ModelFile &model, ImportOptions &options);

} // namespace cleave::onnx

#endif // CLEAVE_LIB_IMPORT_ONNX_GRAPH_INITIALIZE_H
