//===- Spans.h - how often an op of a microbatch runs -----------*- C++ -*-===//
//
// In the program of one microbatch, an op belongs to one of three spans:
//
//   whole     depends on no part of the batch: the same in all microbatches, so once is enough
//   each      depends on a part: once per microbatch
//   after     depends on what is combined over all microbatches: once, behind the last one
//
// Deciding counts an op as often as it runs, and stages are made of spans.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_SPMD_IR_SPANS_H
#define CLEAVE_DIALECT_SPMD_IR_SPANS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace cleave::spmd {

/// Of the module: microbatches that its functions are one of (i64).
inline constexpr llvm::StringLiteral kMicrobatchesAttr = "pipe.microbatches";
/// Of an argument or result: the dim that is split into microbatches (i64).
inline constexpr llvm::StringLiteral kSplitInTimeAttr = "pipe.split";

/// Of a pin (unit): what it wants of a value that is made of all microbatches it wants of what each of them adds to it, too.
inline constexpr llvm::StringLiteral kOfPartsAttr = "spmd.of_parts";

/// Of an op (unit): it puts its last operand, which one microbatch has made, to what is combined so far. It runs with what makes the
/// operand, so that nothing of a microbatch waits for later ones.
inline constexpr llvm::StringLiteral kCombinesAttr = "spmd.combines";

/// Of an op whose result is what one microbatch has of the operand.
template <typename ConcreteOp> class TakesPart : public mlir::OpTrait::TraitBase<ConcreteOp, TakesPart> {};
/// Of an op whose result is made of the operands of all microbatches.
template <typename ConcreteOp> class CombinesParts : public mlir::OpTrait::TraitBase<ConcreteOp, CombinesParts> {};

enum class Span { Invariant, Each, After };

class Spans {
public:
  /// Precondition: one block. Where there is but one microbatch every op is of `Each`.
  explicit Spans(mlir::func::FuncOp func);

  /// There are several microbatches.
  bool areSeveral() const { return microbatches > 1; }
  Span get(mlir::Value value) const;
  /// That of its results.
  Span get(mlir::Operation *op) const { return spans.lookup(op); }
  /// How often what is of `span` counts in costs: in the step of a training as often as it is computed. All else that microbatches do is
  /// the same for each of them, and a program's costs are those of one.
  int64_t getTimes(Span span) const { return isStep && span == Span::Each ? microbatches : 1; }

private:
  mlir::func::FuncOp func;
  int64_t microbatches;
  bool isStep;
  llvm::DenseMap<mlir::Operation *, Span> spans;
};

} // namespace cleave::spmd

#endif // CLEAVE_DIALECT_SPMD_IR_SPANS_H
