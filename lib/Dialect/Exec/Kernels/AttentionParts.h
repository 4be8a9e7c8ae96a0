//===- AttentionParts.h - attention as simple ops ---------------*- C++ -*-===//
//
// What stands around a softmax that is attention's, in the forward and in the gradients:
//
//   scores = q k^T ─▶ factor, masks, casts ─▶ softmax p ─▶ mixed = p v
//
//   dv = p^T dy      dp = dy v^T ─▶ p (dp - sum(dp p)) ─▶ factor, masks, casts ─▶ ds      dq = ds k      dk = ds^T q
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_DIALECT_EXEC_KERNELS_ATTENTIONPARTS_H
#define CLEAVE_LIB_DIALECT_EXEC_KERNELS_ATTENTIONPARTS_H

#include "cleave/Dialect/Exec/IR/Exec.h"
#include "cleave/Dialect/Nn/IR/Ops/Contraction.h"
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"
#include "cleave/Dialect/Nn/IR/Ops/Reduction.h"
#include "llvm/ADT/DenseSet.h"

namespace cleave::exec {

using Dims = llvm::SmallVector<int64_t>;

/// What is added to scores, or decides which count.
struct AttentionMask {
  mlir::Value added;     ///< a number for each score
  mlir::Value condition; ///< or: which scores stay, the others become `otherwise`
  mlir::Value otherwise;
};

/// The forward. Orders of dims are those that attention wants.
struct AttentionParts {
  nn::EinsumOp scores, mixed; ///< `mixed` is null where gradients alone read the weights
  nn::SoftmaxOp softmax;
  double scale = 1;
  double cap = 0;                         ///< scores are `cap * tanh(scale * product)`, where positive
  mlir::Value capped;                     ///< the tanh
  llvm::SmallVector<AttentionMask> masks; ///< the last one first
  unsigned probabilities = 0;             ///< which operand of `mixed` they are
  bool isSwapped = false;                 ///< queries are the second operand of `scores`
  Dims query, key, value;
  Dims result;       ///< the order in which the result is wanted
  int64_t batch = 0; ///< dims of a batch, heads among them: 2 at most

  /// As attention has it, which divides by the cap.
  double getScale() const { return cap > 0 ? scale * cap : scale; }
  mlir::Value getQuery() { return scores.getInputs()[isSwapped]; }
  mlir::Value getKey() { return scores.getInputs()[!isSwapped]; }
};

/// Of a rank's rows those that there are: the last shards of uneven ones are filled up. Places along one dim, in shards of `step` over
/// `axes`, are below a limit.
struct RowsBelow {
  mlir::ArrayAttr axes;
  int64_t step, limit;

  bool operator==(const RowsBelow &other) const {
    return axes == other.axes && step == other.step && limit == other.limit;
  }
  /// Which of `count` rows there are, along dim `dim` of `rank`.
  mlir::Value test(mlir::OpBuilder &builder, mlir::Location loc, int64_t count, int64_t rank, int64_t dim) const;
};

/// The gradients of one softmax's attention.
struct AttentionGradientParts {
  /// An einsum of gradients that is found, and the order in which its result is wanted; null if nobody wanted it.
  struct Result {
    nn::EinsumOp einsum;
    Dims order;
  };

  mlir::Value gradient, value; ///< as the first of the five products reads them
  Dims gradientOrder, valueOrder;
  int64_t getRowOfGradient() const { return gradientOrder[gradientOrder.size() - 2]; }
  Result ofQuery, ofKey, ofValue;
  /// Which queries count in the gradients of keys and values; nothing: all do.
  std::optional<RowsBelow> rows;
  /// All that reads the weights, and so has to go.
  llvm::SmallPtrSet<mlir::Operation *, 8> readers;
};

/// The dims of `einsum` with operand `first` as the first one; nothing if it is no product of two matrices, head by head: up to two
/// dims of a batch, one of each other kind.
std::optional<MatmulDims> getMatrixDims(nn::EinsumOp einsum, unsigned first);
/// Sorts dims of a batch as one of its tensors has them, and says whether these are then the first dims of that tensor.
bool sortBatch(MatmulDims::OperandDims &batch, llvm::SmallVector<int64_t, 2> MatmulDims::OperandDims::*by);
/// Dims of a batch, and two behind.
Dims joinDims(llvm::ArrayRef<int64_t> batch, int64_t row, int64_t column);
/// Of `order[i]`, the place of dim i among attention's: what `permute` brings attention's result into.
Dims invert(llvm::ArrayRef<int64_t> order);

/// The value itself, behind exec.again.
mlir::Value skipAgain(mlir::Value value);

/// `is_nan(p) ? 0 : p` that reads `weights`, if nothing but that and `others` does; null if there is none.
mlir::Value skipGuard(mlir::Value weights, const llvm::SmallPtrSetImpl<mlir::Operation *> &others);

/// Zeros in the rows of `value`, whose dim is the last but one, that do not count. What has one row for all stays, and so do conditions.
mlir::Value keepRows(mlir::OpBuilder &builder, mlir::Value value, const std::optional<RowsBelow> &rows);

/// The gradients of `softmax`, so far as they follow from the softmax alone; nothing if there are none that look so.
std::optional<AttentionGradientParts> findGradientsBehind(nn::SoftmaxOp softmax);
/// Completes `gradients` by what is done with the gradients of the scores, which has to mirror `parts`; else `reason` says what does
/// not.
bool findGradientsOfScores(AttentionParts &parts, AttentionGradientParts &gradients, llvm::StringRef &reason);

} // namespace cleave::exec

#endif // CLEAVE_LIB_DIALECT_EXEC_KERNELS_ATTENTIONPARTS_H
