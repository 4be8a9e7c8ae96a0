//===- Families.h - what importers of several families use ------*- C++ -*-===//
#ifndef CLEAVE_LIB_IMPORT_ONNX_FAMILIES_H
#define CLEAVE_LIB_IMPORT_ONNX_FAMILIES_H

#include "NodeContext.h"

namespace cleave::onnx {

/// numpy's matmul: the last two dims of each are multiplied, those before broadcast; a vector is a row or a column that
/// goes away again. (Contraction.cpp)
Value matmul(NodeContext &node, Value lhs, Value rhs);

/// A convolution by the node's attributes; channels are dim 1. (Convolution.cpp)
Value convolve(NodeContext &node, Value x, Value weight, Value bias);

/// [batch, sequence, heads * size] as [batch, heads, sequence, size], heads being major; and back. (Attention.cpp)
Value splitHeads(NodeContext &node, Value value, int64_t heads);
Value joinHeads(NodeContext &node, Value value);

/// Scores of a model of ai.onnx.ml behind its `post_transform`: NONE, LOGISTIC or SOFTMAX. (Ml/Learning.cpp)
Value applyTransform(NodeContext &node, Value scores, llvm::StringRef name);

/// NonMaxSuppression of `most` boxes a class, and Unique of all elements, of what data tell: results have as many rows as there may be. (Bounded/Selection.cpp)
void suppressWithinBound(NodeContext &node, int64_t most, bool isCentered);
void findUniqueWithinBound(NodeContext &node, bool isSorted);
void findNonZeroWithinBound(NodeContext &node);
void compressWithinBound(NodeContext &node, Value input, int64_t axis);
/// Rows [n, ..] that are `found` (bool, [n]) in front, and `rest` in all others.
Value compactRows(NodeContext &node, Value rows, Value found, double rest);
/// How many are.
Value countRows(NodeContext &node, Value found);

/// `FindRowsFn` of ops whose result is that of broadcast operands, and of those whose samples are dim 0 of the first operand. (Bounded/PaddedRows.cpp)
std::optional<int64_t> findBroadcastRows(NodeContext &node, unsigned operand, int64_t dim);
std::optional<int64_t> findSamples(NodeContext &node, unsigned operand, int64_t dim);

/// What a reduction is over. (Reduction.cpp)
struct ReducedDims {
  Ints dims;
  bool keepDims;
  /// No axes were given, and that means no reduction.
  bool isNoop;
};
ReducedDims readReducedDims(NodeContext &node);

} // namespace cleave::onnx

#endif // CLEAVE_LIB_IMPORT_ONNX_FAMILIES_H
