//===- Exec.h - the exec dialect --------------------------------*- C++ -*-===//
//
// What a device does; see dialects/Exec for what each op means.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_EXEC_IR_EXEC_H
#define CLEAVE_DIALECT_EXEC_IR_EXEC_H

#include "cleave/Dialect/Nn/IR/Nn.h"
#include "cleave/Program/Collective.h"

namespace cleave::nn {
class AttentionOp;
} // namespace cleave::nn

namespace cleave::exec {

/// What ranks of a group do together.
using program::CollectiveKind;

/// The dims of a batch of matrix products, by kind: where each lies in the first operand, the second, and the result.
/// The dims of one kind stand in one order in all three lists. `rows` are none of the second operand's, `columns` none of
/// the first's, `depth` none of the result's.
struct MatmulDims {
  struct OperandDims {
    llvm::SmallVector<int64_t, 2> lhs, rhs, result;
  };
  OperandDims batch, rows, columns, depth;

  /// Those of an einsum; nothing if it is no contraction of two operands of floats, dim by dim of one size.
  static std::optional<MatmulDims> get(llvm::StringRef equation, mlir::TypeRange operands);
};

/// How a weight lies in memory; see exec.pack.
struct Layout {
  llvm::SmallVector<int64_t> order;
  int64_t batch = 0, width = 0, interleave = 1;

  bool operator==(const Layout &other) const {
    return order == other.order && batch == other.batch && width == other.width && interleave == other.interleave;
  }
};

/// The shape of a tensor of `shape` in that layout; nothing if it has none (C1, C2 of exec.pack).
std::optional<llvm::SmallVector<int64_t>> getPackedShape(llvm::ArrayRef<int64_t> shape, const Layout &layout);

/// Where the result of `op` begins in the bytes of its operand, in elements, if it is nothing but these bytes seen in
/// another shape: a reshape, a movement that keeps the order of elements, a slice that is one range. The result is
/// no smaller than a range: elements follow each other without gaps.
std::optional<int64_t> getAliasOffset(mlir::Operation *op);

/// True if both bodies compute the same from their arguments; locations and notes (discardable attributes) do not count.
bool haveEqualBodies(mlir::Region &a, mlir::Region &b);
/// Equal for equal bodies.
llvm::hash_code hashBody(mlir::Region &body);

/// The strides of a view in elements; nothing if one is unknown or negative, or the layout adds an offset.
std::optional<llvm::SmallVector<int64_t>> getStrides(mlir::MemRefType type);
/// Bytes from the first to behind the last element. Precondition: it has strides.
int64_t getSpanBytes(mlir::MemRefType type);

/// True for commands that wait for other ranks.
bool isMeeting(mlir::Operation *command);

} // namespace cleave::exec

#include "cleave/Dialect/Exec/IR/ExecDialect.h.inc"
#include "cleave/Dialect/Exec/IR/ExecEnums.h.inc"
#include "cleave/Dialect/Exec/IR/ExecInterfaces.h.inc"

#define GET_ATTRDEF_CLASSES
#include "cleave/Dialect/Exec/IR/ExecAttrs.h.inc"

#define GET_OP_CLASSES
#include "cleave/Dialect/Exec/IR/ExecOps.h.inc"

#endif // CLEAVE_DIALECT_EXEC_IR_EXEC_H
