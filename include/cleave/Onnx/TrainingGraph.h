//===- TrainingGraph.h - ONNX's own steps of training -----------*- C++ -*-===//
//
// A model may say itself how it is trained (`training_info`, IR version 7). A step is the model's graph and its algorithm's, one after
// the other; what an update binding names is state:
//
//   graph      x, W (initializer) -> MatMul -> y
//   algorithm  y, t, V (initializer) -> .. Gradient, Momentum .. -> loss, W', V'       update_binding: W = W', V = V'
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_ONNX_TRAININGGRAPH_H
#define CLEAVE_ONNX_TRAININGGRAPH_H

#include "cleave/Onnx/Model.h"

namespace cleave::onnx {

/// What a model says of its step. Names are views of the model's file.
struct TrainingStep {
  /// An initializer that each step changes.
  struct State {
    llvm::StringRef name;
    /// The output that it is next.
    llvm::StringRef next;
    /// It is the model's own, and not of the algorithm.
    bool isOfModel = false;
  };
  /// In the order of their bindings.
  std::vector<State> states;
  /// An initializer that begins as the output of one of the graphs `initialization`.
  struct Beginning {
    llvm::StringRef name, output;
    size_t info;
  };
  std::vector<Beginning> beginnings;
  /// Outputs of the model's graph come first; behind these are the algorithm's.
  size_t modelOutputs = 0;
};

/// Appends the algorithm to the model's graph, as onnx.proto says of `TrainingInfoProto.algorithm`: inputs, initializers, outputs, nodes and
/// value_info, in that order. Errors, by name: there are several algorithms, a binding is of no initializer or to no output, two bind one.
/// Precondition: the model has a `training_info`.
llvm::Expected<TrainingStep> joinTraining(ModelProto &model);

} // namespace cleave::onnx

#endif // CLEAVE_ONNX_TRAININGGRAPH_H
