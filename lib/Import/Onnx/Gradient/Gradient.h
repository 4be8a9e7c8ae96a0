//===- Gradient.h - derivatives of nn ops -----------------------*- C++ -*-===//
//
// A rule takes an op and the gradient of its result, and gives those of its operands:
//
//   static bool differentiateTanh(Derivative &d, nn::TanhOp) {
//     return d.give(0, f.mul(d.gradient(), f.sub(1, f.square(d.result()))));
//   }
//
// Rules are composed of nn ops that have rules themselves, but for few, so that gradients can be taken of gradients.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_IMPORT_ONNX_GRADIENT_GRADIENT_H
#define CLEAVE_LIB_IMPORT_ONNX_GRADIENT_GRADIENT_H

#include "../NodeContext.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace cleave::onnx {

/// What a rule sees of its op. A gradient has shape and type of what it is the gradient of.
class Derivative {
public:
  using Give = llvm::function_ref<void(Value operand, Value gradient)>;
  using Wants = llvm::function_ref<bool(Value operand)>;

  Derivative(NodeContext &node, mlir::Operation *op, Value gradient, Wants wantsValue, Give giveValue)
      : node(node), f(node), op(op), out(gradient), wantsValue(wantsValue), giveValue(giveValue) {}

  /// The gradient of the first result; others have none.
  Value gradient() const { return out; }
  Value result(unsigned index = 0) const { return op->getResult(index); }
  Value operand(unsigned index) const { return op->getOperand(index); }
  /// True if what is asked for depends on this operand; a null one is an absent one.
  bool wants(Value value) const { return value && wantsValue(value); }
  bool wants(unsigned index) const { return wants(operand(index)); }
  /// The gradient of an operand, from a tensor that it was broadcast to, of any float type: summed over the dims that repeat it.
  /// A value that is not wanted is dropped.
  void give(Value value, Value gradient);
  void give(unsigned index, Value gradient) { give(operand(index), gradient); }

  /// Sums over dims that `shape` lacks or has once, as numpy broadcasts.
  Value sumTo(Value value, Shape shape);
  /// Zeros like a value.
  Value zerosLike(Value value) { return node.broadcast(node.scalarLike(value, 0), NodeContext::shape(value)); }

  NodeContext &node;
  nn::Composer &f;

private:
  mlir::Operation *op;
  Value out;
  Wants wantsValue;
  Give giveValue;
};

// By family; false where no rule is known for the op, or not for what is wanted of it.
bool differentiateElementwise(Derivative &d, mlir::Operation *op);
bool differentiateMovement(Derivative &d, mlir::Operation *op);
bool differentiateIndexing(Derivative &d, mlir::Operation *op);
bool differentiateRows(Derivative &d, mlir::Operation *op);

} // namespace cleave::onnx

#endif // CLEAVE_LIB_IMPORT_ONNX_GRADIENT_GRADIENT_H
