//===- Movement.h - movement where it costs nothing -------------*- C++ -*-===//
#ifndef CLEAVE_LIB_DIALECT_EXEC_KERNELS_MOVEMENT_H
#define CLEAVE_LIB_DIALECT_EXEC_KERNELS_MOVEMENT_H

#include "cleave/Dialect/Nn/IR/Nn.h"
#include "llvm/ADT/DenseSet.h"

namespace cleave::exec {

/// Transposes that are not looked through.
using Stops = llvm::DenseSet<mlir::Value>;

/// True for a cast from one float type to another. `op` may be null.
bool isFloatCast(mlir::Operation *op);

/// The value that `value` is a chain of transposes of; `permutation` becomes that of the whole chain.
mlir::Value skipTransposes(mlir::Value value, llvm::SmallVectorImpl<int64_t> &permutation, const Stops &stops = {});

/// `value` with its dims in the order of `permutation`: the value itself, or one transpose of what it is a transpose of,
/// dims of size 1 put in or dropped on the way.
mlir::Value permute(mlir::OpBuilder &builder, mlir::Value value, llvm::ArrayRef<int64_t> permutation,
                    const Stops &stops = {});

/// `value` in another shape: a reshape, or the value itself.
mlir::Value reshapeTo(mlir::OpBuilder &builder, mlir::Value value, llvm::ArrayRef<int64_t> shape);

/// Lets elementwise ops behind the anchor of a kernel's body work in the shape of its result, with transposes and reshapes
/// behind them. Other operands are brought into that shape: they are read in another order.
///
///     relu(transpose x)          transpose(relu x)
///     add(reshape x, %r)         reshape(add(x, reshape %r))
void sinkMovement(mlir::Block &body);

/// Makes a concat of many operands one of concats of fewer: each operand is a loop in its kernel, and compilers of machine code take more than
/// Sums of what lies side by side, each with zeros around it, as gradients of the parts of a value are, become one behind the other.
void joinPads(mlir::Block &block);

/// linear time for a function of thousands. What lies one behind the other in memory anyway stays.
void groupConcats(mlir::Block &block);

} // namespace cleave::exec

#endif // CLEAVE_LIB_DIALECT_EXEC_KERNELS_MOVEMENT_H
