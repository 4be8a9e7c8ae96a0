//===- Compose.h - ops of nn in a few letters -------------------*- C++ -*-===//
//
// For `expand` forms: builds simple ops, with inferred types, at the place of a composite one.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_CODEGEN_COMPOSE_H
#define CLEAVE_LIB_CODEGEN_COMPOSE_H

#include "Elements.h"
#include "Forms.h"

namespace cleave::codegen {

class Composer {
public:
  Composer(mlir::OpBuilder &builder, mlir::Operation *op) : b(builder), loc(op->getLoc()) {}

  /// Of ops that infer their type.
  template <typename OpT, typename... Args> mlir::Value make(Args &&...args) {
    return OpT::create(b, loc, std::forward<Args>(args)...).getResult();
  }
  mlir::Value cast(mlir::Value x, mlir::Type element) {
    if (getElementType(x) == element)
      return x;
    return make<nn::CastOp>(mlir::RankedTensorType::get(getShape(x), element), x);
  }
  /// f16 and bf16 as f32.
  mlir::Value widen(mlir::Value x) { return cast(x, ElementBuilder::getComputeType(getElementType(x))); }
  mlir::Value reshape(mlir::Value x, llvm::ArrayRef<int64_t> shape) {
    if (getShape(x) == shape)
      return x;
    return make<nn::ReshapeOp>(mlir::RankedTensorType::get(shape, getElementType(x)), x);
  }
  /// Keeps the reduced dims.
  mlir::Value reduce(nn::ReduceKind kind, mlir::Value x, llvm::ArrayRef<int64_t> dims) {
    return make<nn::ReduceOp>(kind, x, dims, /*keepDims=*/true);
  }
  mlir::Value number(mlir::Type element, double value) {
    auto type = mlir::RankedTensorType::get({}, element);
    mlir::TypedAttr attr = b.getFloatAttr(element, value);
    return make<nn::ConstantOp>(mlir::DenseElementsAttr::get(type, mlir::Attribute(attr)));
  }

private:
  mlir::OpBuilder &b;
  mlir::Location loc;
};

} // namespace cleave::codegen

#endif // CLEAVE_LIB_CODEGEN_COMPOSE_H
