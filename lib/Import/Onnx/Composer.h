//===- Composer.h - formulas of nn ops --------------------------*- C++ -*-===//
//
// What nn has no op for is spelled out in those that it has, so that evaluator, kernels, sharding rules and gradients
// come with them. A formula reads as one here:
//
//   Composer f(node);
//   node.result(0, f.mul(x, f.sigmoid(f.mul(x, 1.702))));   // QuickGelu
//
// Numbers become constants of the other operand's type. After an error everything gives null, as in NodeContext.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_IMPORT_ONNX_COMPOSER_H
#define CLEAVE_LIB_IMPORT_ONNX_COMPOSER_H

#include "NodeContext.h"

namespace cleave::onnx {

class Composer {
public:
  explicit Composer(NodeContext &node) : node(node) {}

  mlir::Type f32() const { return node.getBuilder().getF32Type(); }
  mlir::Type i64() const { return node.getBuilder().getI64Type(); }
  mlir::Type i32() const { return node.getBuilder().getI32Type(); }
  mlir::Type boolean() const { return node.getBuilder().getI1Type(); }

  // Arithmetic, with numpy broadcasting.
  Value add(Value x, Value y) { return node.create<nn::AddOp>(x, y); }
  Value sub(Value x, Value y) { return node.create<nn::SubOp>(x, y); }
  Value mul(Value x, Value y) { return node.create<nn::MulOp>(x, y); }
  Value div(Value x, Value y) { return node.create<nn::DivOp>(x, y); }
  Value min(Value x, Value y) { return node.create<nn::MinOp>(x, y); }
  Value max(Value x, Value y) { return node.create<nn::MaxOp>(x, y); }
  Value pow(Value x, Value y) { return node.create<nn::PowOp>(x, y); }
  /// With the sign of `y`.
  Value mod(Value x, Value y) { return node.create<nn::ModOp>(x, y, false); }
  Value add(Value x, double y) { return add(x, node.scalarLike(x, y)); }
  Value sub(Value x, double y) { return sub(x, node.scalarLike(x, y)); }
  Value sub(double x, Value y) { return sub(node.scalarLike(y, x), y); }
  Value mul(Value x, double y) { return mul(x, node.scalarLike(x, y)); }
  Value div(Value x, double y) { return div(x, node.scalarLike(x, y)); }
  Value min(Value x, double y) { return min(x, node.scalarLike(x, y)); }
  Value max(Value x, double y) { return max(x, node.scalarLike(x, y)); }
  Value mod(Value x, double y) { return mod(x, node.scalarLike(x, y)); }
  Value clamp(Value x, double low, double high) { return min(max(x, low), high); }
  Value square(Value x) { return mul(x, x); }

  Value neg(Value x) { return node.create<nn::NegOp>(x); }
  Value abs(Value x) { return node.create<nn::AbsOp>(x); }
  Value floor(Value x) { return node.create<nn::FloorOp>(x); }
  Value ceil(Value x) { return node.create<nn::CeilOp>(x); }
  Value round(Value x) { return node.create<nn::RoundOp>(x); }
  Value sqrt(Value x) { return node.create<nn::SqrtOp>(x); }
  Value exp(Value x) { return node.create<nn::ExpOp>(x); }
  Value log(Value x) { return node.create<nn::LogOp>(x); }
  Value cos(Value x) { return node.create<nn::CosOp>(x); }
  Value tanh(Value x) { return node.create<nn::TanhOp>(x); }
  Value sigmoid(Value x) { return node.create<nn::SigmoidOp>(x); }

  // Tests.
  Value eq(Value x, Value y) { return node.create<nn::EqOp>(x, y); }
  Value lt(Value x, Value y) { return node.create<nn::LtOp>(x, y); }
  Value le(Value x, Value y) { return node.create<nn::LeOp>(x, y); }
  Value gt(Value x, Value y) { return node.create<nn::GtOp>(x, y); }
  Value ge(Value x, Value y) { return node.create<nn::GeOp>(x, y); }
  Value eq(Value x, double y) { return eq(x, node.scalarLike(x, y)); }
  Value lt(Value x, double y) { return lt(x, node.scalarLike(x, y)); }
  Value le(Value x, double y) { return le(x, node.scalarLike(x, y)); }
  Value gt(Value x, double y) { return gt(x, node.scalarLike(x, y)); }
  Value ge(Value x, double y) { return ge(x, node.scalarLike(x, y)); }
  Value both(Value x, Value y) { return node.create<nn::AndOp>(x, y); }
  Value either(Value x, Value y) { return node.create<nn::OrOp>(x, y); }
  Value negate(Value x) { return node.create<nn::NotOp>(x); }
  Value select(Value condition, Value x, Value y) { return node.create<nn::SelectOp>(condition, x, y); }
  Value select(Value condition, Value x, double y) { return select(condition, x, node.scalarLike(x, y)); }

  // Bits of integers.
  Value bitAnd(Value x, double y) { return node.create<nn::BitwiseAndOp>(x, node.scalarLike(x, y)); }
  Value bitXor(Value x, Value y) { return node.create<nn::BitwiseXorOp>(x, y); }
  Value shiftRight(Value x, Value y) { return node.create<nn::ShiftOp>(x, y, true); }
  Value shiftRight(Value x, double y) { return shiftRight(x, node.scalarLike(x, y)); }
  Value shiftLeft(Value x, double y) { return node.create<nn::ShiftOp>(x, node.scalarLike(x, y), false); }

  // Over dims, which are dropped unless they are to be kept.
  Value reduce(nn::ReduceKind kind, Value x, Shape dims, bool keepDims = false) {
    return dims.empty() ? x : node.create<nn::ReduceOp>(kind, x, dims, keepDims);
  }
  Value sum(Value x, Shape dims, bool keepDims = false) { return reduce(nn::ReduceKind::Sum, x, dims, keepDims); }
  Value mean(Value x, Shape dims, bool keepDims = false) { return reduce(nn::ReduceKind::Mean, x, dims, keepDims); }

  Value einsum(mlir::ValueRange operands, llvm::StringRef equation) {
    return node.create<nn::EinsumOp>(operands, equation);
  }
  Value gather(Value table, Value indices, int64_t dim) { return node.create<nn::GatherOp>(table, indices, dim); }
  /// `start + i * step` along `dim`.
  Value iota(Shape shape, int64_t dim, mlir::Type type, int64_t start = 0, int64_t step = 1) {
    return node.createTyped<nn::IotaOp>(mlir::RankedTensorType::get(shape, type), dim, start, step);
  }
  /// Pads with a number.
  Value pad(Value x, Shape low, Shape high, double value = 0) {
    auto isZero = [](int64_t amount) { return amount == 0; };
    if (llvm::all_of(low, isZero) && llvm::all_of(high, isZero))
      return x;
    return node.create<nn::PadOp>(nn::PadMode::Constant, x, node.scalarLike(x, value), low, high);
  }
  /// A tensor of floats of `type`, in row-major order.
  Value table(mlir::Type type, Shape shape, llvm::ArrayRef<double> values);

  /// An error unless all these operands of the node are there, where an optional one stands in front of them.
  bool require(llvm::ArrayRef<unsigned> operands);

private:
  NodeContext &node;
};

} // namespace cleave::onnx

#endif // CLEAVE_LIB_IMPORT_ONNX_COMPOSER_H
