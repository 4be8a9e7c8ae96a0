//===- Rules.h - what the families of sharding rules share ------*- C++ -*-===//
//
// Most rules start from "one parallel factor per dim of the result" and say what is different. Every dim of 2 or more
// elements has a factor, also one that no choice cuts, so that rules print completely and a remark can name it.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_DIALECT_NN_SHARDINGRULES_RULES_H
#define CLEAVE_LIB_DIALECT_NN_SHARDINGRULES_RULES_H

#include "cleave/Dialect/Nn/IR/Ops/Reduction.h"
#include "cleave/Dialect/Spmd/IR/TensorTypes.h"

namespace cleave::nn {

/// Factor of a dim, or nothing for a dim of fewer than 2 elements.
using MaybeFactor = std::optional<spmd::FactorId>;
/// One entry per dim of a tensor.
using FactorList = llvm::SmallVector<MaybeFactor, 4>;

/// Bytes of one element.
int64_t bytesOf(mlir::Value value);
/// Bytes of a statistic that is computed in f32, or f64 for f64 values.
int64_t statisticBytes(mlir::Value value);
/// Bytes of one index while the ranks agree on the place of a maximum: what the rule counts is what is sent.
int64_t getSentIndexBytes(ArgReduceOp op);

/// A builder for `op`, and helpers for the shapes that rules come in.
class OpRule : public spmd::RuleBuilder {
public:
  explicit OpRule(mlir::Operation *op) : RuleBuilder(op->getNumOperands(), op->getNumResults()), op(op) {}

  /// One parallel factor per dim of `shape`.
  FactorList addParallelDims(llvm::ArrayRef<int64_t> shape);
  /// A factor that no choice cuts; nothing for size < 2.
  MaybeFactor addReplicated(int64_t size);

  /// Appends the dims of operand / result `index`, one factor each.
  OpRule &operandDims(unsigned index, llvm::ArrayRef<MaybeFactor> factors);
  OpRule &resultDims(unsigned index, llvm::ArrayRef<MaybeFactor> factors);
  /// Appends the dims of operand `index`, which numpy broadcasting aligns with `factors`: dims of size 1 have none.
  OpRule &alignOperand(unsigned index, llvm::ArrayRef<MaybeFactor> factors);

  /// The factors that are there.
  static llvm::SmallVector<spmd::FactorId, 4> present(llvm::ArrayRef<MaybeFactor> factors);
  /// `times` all_reduces of one number per element of `elements` where any of `cut` is cut; those become ordered.
  OpRule &addStatistics(llvm::ArrayRef<MaybeFactor> split, int64_t times, llvm::ArrayRef<MaybeFactor> elements,
                        int64_t elementBytes);

  /// An all_gather of `scale` numbers per element of `elements` from each rank that cuts `cut`, which becomes ordered.
  OpRule &addGather(MaybeFactor split, llvm::ArrayRef<MaybeFactor> elements, int64_t scale, int64_t elementBytes);

  /// Factors of one dim of a coarse tensor and of a fine one that has some positions per coarse position. If
  /// `isLocal`, a piece of the one is a piece of the other; else both stay whole.
  struct Spatial {
    llvm::SmallVector<spmd::FactorId, 4> coarse, fine;
  };
  Spatial addSpatialDim(bool isLocal, int64_t coarse, int64_t fine);

  /// Factors of one dim of operand 0 and of the result, over which a window slides: both can be cut together, by an
  /// exchange with neighbors, which reads what `window` says. What does not divide both extents cuts them unevenly.
  struct Windowed {
    llvm::SmallVector<spmd::FactorId, 4> input, result;
  };
  Windowed addWindowDim(int64_t input, int64_t result, spmd::SlidingDim window);
  /// Lets factors that are there be cut together, as above.
  OpRule &addSlide(const spmd::SlidingDim &slide);
  /// Adds what the exchange of all such dims sends, once all dims of operand 0 are there.
  OpRule &addExchange();
  /// Adds what an exchange of `slides`, dims of `operand`, sends.
  OpRule &addExchangeOf(unsigned operand, llvm::ArrayRef<spmd::SlidingDim> slides);

  /// The op only moves elements of `operands` (or repeats them): any kind of partial result passes through.
  OpRule &addMovement(llvm::ArrayRef<int32_t> operands);

  /// The finished rule. Where nothing but `none` is possible, `reason` is what the user is told.
  spmd::ShardingRule finish(llvm::StringRef reason = "");

private:
  OpRule &addOrdered(spmd::InnerCost cost);

  mlir::Operation *op;
  /// Of operand 0.
  llvm::SmallVector<spmd::SlidingDim, 2> slides;
};

/// Kind of a partial result where each element is right on one rank and zero on all others: sum, or max for bool.
spmd::ReductionKind getMaskKind(mlir::Type elementType);

/// How the results of ranks that reduce by `kind` combine; those of a mean are a sum, once each is scaled by its share.
spmd::ReductionKind getReductionKind(ReduceKind kind);

/// One parallel factor per dim of the result, operands aligned by broadcasting.
OpRule alignedRule(mlir::Operation *op);

/// The rule of an elementwise op that is linear in each of `operandSets` (all operands of one set partial together).
spmd::ShardingRule getPointwiseRule(mlir::Operation *op, llvm::ArrayRef<llvm::SmallVector<int32_t, 2>> operandSets = {},
                                    spmd::ReductionKind kind = spmd::ReductionKind::Sum);

/// True if a window slides in such a way that a piece of the result depends on just the same piece of the input: steps
/// at least as wide as the window and no padding, with the input an exact number of steps.
bool isPatchwise(int64_t inputExtent, int64_t resultExtent, int64_t kernel, int64_t stride, int64_t dilation,
                 int64_t padLow, int64_t padHigh);

} // namespace cleave::nn

#endif // CLEAVE_LIB_DIALECT_NN_SHARDINGRULES_RULES_H
