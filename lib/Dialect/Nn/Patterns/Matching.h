//===- Matching.h - small questions that patterns ask -----------*- C++ -*-===//
#ifndef CLEAVE_LIB_DIALECT_NN_PATTERNS_MATCHING_H
#define CLEAVE_LIB_DIALECT_NN_PATTERNS_MATCHING_H

#include "cleave/Dialect/Nn/IR/Composer.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "cleave/Dialect/Nn/IR/Ops/Reduction.h"
#include "cleave/Dialect/Nn/IR/Splat.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/PatternMatch.h"

namespace cleave::nn {

/// True if `value` is a constant of that number, to the precision of the element type.
bool isNumber(mlir::Value value, double number);

/// Integers of a constant, or of what is made of constants and counts by moving, adding and multiplying; or nothing.
std::optional<llvm::SmallVector<int64_t>> getConstantIntegers(mlir::Value value);

/// Values that carry a sharding already must stay.
inline bool isFree(mlir::Value value) { return !getTensorType(value).getEncoding(); }

/// Dim of a reshape's operand that holds exactly result dim `dim`, or nothing.
std::optional<int64_t> getSameDim(ReshapeOp op, int64_t dim);

/// True if `parameter`, where there is one, varies along dims of `input` from `dim` on only.
bool isAlong(mlir::Value parameter, mlir::Value input, int64_t dim);

/// For a commutative op: its operands in the order (what `matches`, the other one); nothing if neither matches.
template <typename Op, typename Predicate>
std::optional<std::pair<mlir::Value, mlir::Value>> matchEither(Op op, Predicate matches) {
  if (matches(op.getLhs()))
    return std::make_pair(op.getLhs(), op.getRhs());
  if (matches(op.getRhs()))
    return std::make_pair(op.getRhs(), op.getLhs());
  return std::nullopt;
}

/// Applies `patterns` to the ops for which `startsAt` holds and to all that this changes, until none applies; folds
/// these and drops what is dead on the way. Untouched ops cost no more than the question, which is what a model of
/// 100,000 ops needs.
llvm::LogicalResult applyPatterns(mlir::ModuleOp module, mlir::RewritePatternSet &&patterns,
                                  llvm::function_ref<bool(mlir::Operation *)> startsAt);

/// The recomposition patterns, one file each.
void populateGeluPatterns(mlir::RewritePatternSet &patterns);
void populateSiluPatterns(mlir::RewritePatternSet &patterns);
void populateLayerNormPatterns(mlir::RewritePatternSet &patterns);
void populateRmsNormPatterns(mlir::RewritePatternSet &patterns);

/// `1 / sqrt(v)`, as a reciprocal, a quotient or a power, times `scale` if there is one.
struct InverseRoot {
  mlir::Value radicand, scale;
};
std::optional<InverseRoot> matchInverseRoot(mlir::Value value);

/// `y / sqrt(v)`, `y * (1 / sqrt(v))` or `y * (scale * (1 / sqrt(v)))`: how a norm ends.
struct Normalized {
  mlir::Value numerator;
  InverseRoot root;
};
std::optional<Normalized> matchNormalized(mlir::Operation *op);

/// Matches `mean(square of x) + epsilon` over the last dims: x, the first reduced dim and epsilon.
struct MeanSquare {
  mlir::Value input;
  int64_t dim;
  double epsilon;
};
std::optional<MeanSquare> matchMeanSquare(mlir::Value value);

/// The first of the reduced dims if they are all dims from there to the last.
std::optional<int64_t> getTrailingDim(ReduceOp op);

} // namespace cleave::nn

#endif // CLEAVE_LIB_DIALECT_NN_PATTERNS_MATCHING_H
