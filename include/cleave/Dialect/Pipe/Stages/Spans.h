//===- Spans.h - how often an op of a microbatch runs -----------*- C++ -*-===//
//
// In the program of one microbatch, an op belongs to one of three spans:
//
//   whole     depends on no part of the batch: the same in all microbatches, so once is enough
//   each      depends on a part: once per microbatch
//   after     depends on what is combined over all microbatches: once, behind the last one
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_PIPE_STAGES_SPANS_H
#define CLEAVE_DIALECT_PIPE_STAGES_SPANS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace cleave::pipe {

enum class Span { Invariant, Each, After };

class Spans {
public:
  /// Precondition: one block. Where there is but one microbatch every op is of `Each`.
  explicit Spans(mlir::func::FuncOp func);

  /// There are several microbatches.
  bool areSeveral() const { return isSplit; }
  Span get(mlir::Value value) const;
  /// That of its results.
  Span get(mlir::Operation *op) const { return spans.lookup(op); }

private:
  mlir::func::FuncOp func;
  bool isSplit;
  llvm::DenseMap<mlir::Operation *, Span> spans;
};

} // namespace cleave::pipe

#endif // CLEAVE_DIALECT_PIPE_STAGES_SPANS_H
