//===- TrainingGraph.h - ONNX's own steps of training -----------*- C++ -*-===//
//
// A model may say itself how it is trained (`training_info`, IR version 7). A step is the model's graph and its algorithm's, one after
// the other; what an update binding names is state:
//
//   graph      x, W (initializer) -> MatMul -> y
//   algorithm  y, t, V (initializer) -> .. Gradient, Momentum .. -> loss, W', V'       update_binding: W = W', V = V'
//
// Of several algorithms (block coordinate descent) a step is all, one after the other on one batch, each with the model's graph as the ones
// before it have left its weights:
//
//   graph                  x, W, U -> y
//   training_info[0]       y, t -> .. -> loss, W'                      update_binding: W = W'
//   graph again            x, W', U -> algorithm1/y
//   training_info[1]       algorithm1/y, t -> .. -> U'                 update_binding: U = U'
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_ONNX_TRAININGGRAPH_H
#define CLEAVE_ONNX_TRAININGGRAPH_H

#include "cleave/Onnx/Model.h"

#include <deque>

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
  /// Outputs of the model's graph come first; behind these are the first algorithm's, whose end is `firstOutputs`, and then what others give.
  size_t modelOutputs = 0, firstOutputs = 0;
  /// Of what is there once more. The joined graph refers to them, and should go first.
  std::shared_ptr<std::deque<std::string>> names = std::make_shared<std::deque<std::string>>();
};

/// Appends the algorithms to the model's graph, as onnx.proto says of `TrainingInfoProto.algorithm`: inputs, initializers, outputs, nodes and
/// value_info, in that order. Of the second algorithm and later ones names that an earlier one has as well, and nodes of the model that read
/// what has changed, get the prefix `algorithmN/`, N being the place in `training_info`; inputs of one name are one. Errors, by name: a binding
/// is of no initializer or to no output, two bind one, an algorithm reads what is another one's, inputs of one name are declared differently,
/// a state has the name of another algorithm's initializer. Precondition: the model has a `training_info`.
llvm::Expected<TrainingStep> joinTraining(ModelProto &model);

} // namespace cleave::onnx

#endif // CLEAVE_ONNX_TRAININGGRAPH_H
