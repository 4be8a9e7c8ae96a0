//===- GradientBuilder.h - what a rule of a gradient sees -------*- C++ -*-===//
//
// A rule takes the gradients of an op's results and adds those of its operands, as ops of nn:
//
//   LogicalResult TanhOp::differentiate(GradientBuilder &g) {
//     return g.add(0, g.f.mul(g.of(), g.f.sub(1, g.f.square(g.result()))));
//   }
//
// Every op of nn says one of three (dialects/Nn/NnBase.td): `Nn_Differentiable` and has a rule in lib/Dialect/Nn/Gradients,
// `Nn_NoGradient`, or `Nn_NotDifferentiable` with a reason. Rules are composed of ops that have rules themselves, but for few, so that
// gradients can be taken of gradients.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_NN_GRADIENTS_GRADIENTBUILDER_H
#define CLEAVE_DIALECT_NN_GRADIENTS_GRADIENTBUILDER_H

#include "cleave/Dialect/Nn/IR/Composer.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace cleave::nn {

/// A gradient has shape and element type of what it is the gradient of.
class GradientBuilder {
public:
  using Value = mlir::Value;
  using AddFn = llvm::function_ref<void(Value operand, Value gradient)>;
  using WantsFn = llvm::function_ref<bool(Value operand)>;

  /// \param gradients of the results, null where a result has none; \param wantsValue says of what gradients are wanted, \param addTo
  /// takes one share.
  GradientBuilder(Composer &f, mlir::Operation *op, mlir::ValueRange gradients, WantsFn wantsValue, AddFn addTo)
      : f(f), op(op), gradients(gradients), wantsValue(wantsValue), addTo(addTo) {}

  /// The gradient of a result; null where nothing that is differentiated is made of it. Of an op of one result it is never null.
  Value of(unsigned index = 0) const { return gradients[index]; }
  Value result(unsigned index = 0) const { return op->getResult(index); }
  Value operand(unsigned index) const { return op->getOperand(index); }
  /// True if what is differentiated by depends on this operand; a null one is an absent one.
  bool wants(Value value) const { return value && wantsValue(value); }
  bool wants(unsigned index) const { return wants(operand(index)); }

  /// Adds to the gradient of an operand: a tensor to which it broadcasts, of any float type, which is summed over the dims that
  /// repeat the operand. What is not wanted, or null, is dropped.
  llvm::LogicalResult add(Value value, Value gradient);
  llvm::LogicalResult add(unsigned index, Value gradient) { return add(operand(index), gradient); }
  /// For what costs ops that nobody else reads: made if it is wanted.
  llvm::LogicalResult addBy(Value value, llvm::function_ref<Value()> make) {
    return wants(value) ? add(value, make()) : llvm::success();
  }
  llvm::LogicalResult addBy(unsigned index, llvm::function_ref<Value()> make) { return addBy(operand(index), make); }

  /// There is no gradient, for a reason that completes "'nn.x' has no gradient: ".
  llvm::LogicalResult refuse(const llvm::Twine &reason) {
    refusal = reason.str();
    return llvm::failure();
  }
  llvm::StringRef getRefusal() const { return refusal; }

  /// Sums over dims that `shape` lacks or has once, as numpy broadcasts.
  Value sumTo(Value value, Shape shape);
  /// Zeros like a value.
  Value zerosLike(Value value) { return f.broadcast(f.scalarLike(value, 0), Composer::shape(value)); }
  /// Gradients of the operands of another op that computes the same of the same operands, by its own rule: `made` is such an op's
  /// results, behind which nothing else was made of the operands.
  llvm::LogicalResult addThrough(mlir::ValueRange made);

  Composer &f;

private:
  mlir::Operation *op;
  llvm::SmallVector<Value, 2> gradients;
  WantsFn wantsValue;
  AddFn addTo;
  std::string refusal;
};

} // namespace cleave::nn

#endif // CLEAVE_DIALECT_NN_GRADIENTS_GRADIENTBUILDER_H
