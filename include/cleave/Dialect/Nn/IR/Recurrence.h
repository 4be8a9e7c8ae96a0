//===- Recurrence.h - activations and steps of a recurrence -----*- C++ -*-===//
//
// What the verifier, the partitioner and the lowering of nn.recurrence share: which activations there are, and the op
// written as its steps.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_NN_IR_RECURRENCE_H
#define CLEAVE_DIALECT_NN_IR_RECURRENCE_H

#include "cleave/Dialect/Nn/IR/Ops/Recurrence.h"

namespace cleave::nn {

/// Source of the formulas: the ONNX operator LSTM, version 22.
enum class Activation {
  Relu,            ///< max(x, 0)
  Tanh,            ///< tanh(x)
  Sigmoid,         ///< 1 / (1 + e^-x)
  Affine,          ///< alpha x + beta
  LeakyRelu,       ///< x, or alpha x where x < 0
  ThresholdedRelu, ///< x, or 0 where x < alpha
  ScaledTanh,      ///< alpha tanh(beta x)
  HardSigmoid,     ///< alpha x + beta, clamped to [0, 1]
  Elu,             ///< x, or alpha (e^x - 1) where x < 0
  Softsign,        ///< x / (1 + |x|)
  Softplus         ///< log(1 + e^x)
};

/// By its name in attributes, `leaky_relu`; nothing for others.
std::optional<Activation> findActivation(llvm::StringRef name);

/// Activations that the formula of a step names; states that go from step to step; gates.
unsigned countActivations(RecurrenceKind kind);
unsigned countStates(RecurrenceKind kind);
int64_t countGates(RecurrenceKind kind);

/// Builds the steps of `op` on `operands`, its own or a rank's, and returns what stands for its results.
///
/// \param gather gives the hidden state of all ranks, [directions, batch, hidden], from this rank's; null where it has
/// all of it.
llvm::SmallVector<mlir::Value> unrollRecurrence(mlir::OpBuilder &builder, mlir::Location loc, RecurrenceOp op,
                                                mlir::ValueRange operands,
                                                llvm::function_ref<mlir::Value(mlir::Value)> gather = nullptr);

} // namespace cleave::nn

#endif // CLEAVE_DIALECT_NN_IR_RECURRENCE_H
