//===- Turn.h - transposes in registers -------------------------*- C++ -*-===//
#ifndef CLEAVE_LIB_CODEGEN_HOST_TURN_H
#define CLEAVE_LIB_CODEGEN_HOST_TURN_H

#include "../Lowerings.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"

namespace cleave::codegen {

/// True for a transpose that leaves no neighbors together, of elements that squares of vectors can be made of.
bool canTurn(nn::TransposeOp op, int64_t width);

/// Stores all of its result in `buffer`, square by square of `width` x `width` elements: `placeOf` says where neighbors at a
/// point of the result go. The operand is evaluated in vectors.
void turn(Emitter &e, nn::TransposeOp op, int64_t width, mlir::Value buffer,
          llvm::function_ref<Index(const Point &)> placeOf);

} // namespace cleave::codegen

#endif // CLEAVE_LIB_CODEGEN_HOST_TURN_H
