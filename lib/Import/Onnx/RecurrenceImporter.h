//===- RecurrenceImporter.h - what LSTM, GRU and RNN share ------*- C++ -*-===//
//
// Attributes, shapes, directions, lengths and results of recurrent nets are the same whether their weights are floats or
// quantized (Microsoft/QuantizedRecurrence.cpp): what differs is how a node says its weights, and what a run of some directions is.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_IMPORT_ONNX_RECURRENCEIMPORTER_H
#define CLEAVE_LIB_IMPORT_ONNX_RECURRENCEIMPORTER_H

#include "NodeContext.h"

#include "cleave/Dialect/Nn/IR/Recurrence.h"

namespace cleave::onnx {

/// One activation with its numbers.
struct ActivationChoice {
  llvm::StringRef name;
  double alpha = 0, beta = 0;
  bool operator==(const ActivationChoice &other) const {
    return name == other.name && alpha == other.alpha && beta == other.beta;
  }
};

class RecurrenceImporter {
public:
  RecurrenceImporter(NodeContext &node, nn::RecurrenceKind kind)
      : node(node), kind(kind), gates(nn::countGates(kind)), isLstm(kind == nn::RecurrenceKind::Lstm) {}
  virtual ~RecurrenceImporter() = default;
  void run();

protected:
  /// Sizes of `x`, W and R; false after an error.
  virtual bool readShapes();
  /// The recurrence of directions [first, first + count): sequence and last states.
  virtual llvm::SmallVector<Value> runDirections(int64_t first, int64_t count);

  llvm::SmallVector<Value> takeNoStep(int64_t first, int64_t count);
  Value getInitial(unsigned operand, int64_t first, int64_t count);
  Value getPeepholes(int64_t first, int64_t count);
  /// The node's bias of what the input makes and of what the state makes, [count, gates, hidden] each; null without one.
  std::pair<Value, Value> getBias(int64_t first, int64_t count);
  /// Steps from the last to the first, of each sample that has steps; dim 0 are steps, dim `batchDim` samples.
  Value reverse(Value value, int64_t batchDim);
  /// `value` for each of the directions, reversed where that is from the end: [steps, count, batch, ..], or without the
  /// dim of directions where there is one.
  Value getInput(Value value, int64_t first, int64_t count);
  /// nn.recurrence of directions from `first` on, with this node's activations.
  llvm::SmallVector<Value> makeSteps(int64_t first, Value projected, Value weight, mlir::ValueRange initial, Value bias,
                                     Value peepholes, Value lengths);
  /// Puts the sequence of `results` into the order of the input: the step that ran first is the last one of a direction from the end.
  llvm::SmallVector<Value> joinDirections(llvm::SmallVector<Value> results, int64_t first, int64_t count);

  NodeContext &node;
  nn::RecurrenceKind kind;
  int64_t gates;
  bool isLstm;
  Value x, lengths;
  int64_t steps = 0, batch = 0, inputs = 0, hidden = 0;
  llvm::SmallVector<bool, 2> isReversed;
  bool isBatchFirst = false, isLinear = false, inputForget = false;
  double clip = 0;

private:
  bool readDirections();
  bool readActivations();
  void readLengths();
  Value project(int64_t first, int64_t count, Value &resetBias);
  llvm::ArrayRef<ActivationChoice> getActivations(int64_t direction) const {
    unsigned count = nn::countActivations(kind);
    return llvm::ArrayRef(activations).slice(direction * count, count);
  }

  llvm::SmallVector<ActivationChoice> activations;
};

} // namespace cleave::onnx

#endif // CLEAVE_LIB_IMPORT_ONNX_RECURRENCEIMPORTER_H
