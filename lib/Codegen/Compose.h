//===- Compose.h - ops of nn in a few letters -------------------*- C++ -*-===//
//
// For `expand` lowerings: builds simple ops at the place of a composite one, in the type that kernels compute in.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_CODEGEN_COMPOSE_H
#define CLEAVE_LIB_CODEGEN_COMPOSE_H

#include "Elements.h"
#include "Lowerings.h"
#include "cleave/Dialect/Nn/IR/Composer.h"

namespace cleave::codegen {

class Composer : public nn::Composer {
public:
  Composer(mlir::OpBuilder &builder, mlir::Operation *op) : nn::Composer(builder, op->getLoc()) {}

  /// f16 and bf16 as f32.
  mlir::Value toCompute(mlir::Value x) { return cast(x, ElementBuilder::getComputeType(elementType(x))); }
};

} // namespace cleave::codegen

#endif // CLEAVE_LIB_CODEGEN_COMPOSE_H
