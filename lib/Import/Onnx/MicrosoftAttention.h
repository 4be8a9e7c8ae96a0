//===- MicrosoftAttention.h - attention on packed q, k and v ----*- C++ -*-===//
#ifndef CLEAVE_LIB_IMPORT_ONNX_MICROSOFTATTENTION_H
#define CLEAVE_LIB_IMPORT_ONNX_MICROSOFTATTENTION_H

#include "NodeContext.h"

namespace cleave::onnx {

/// What onnxruntime's Attention and QAttention have beside their product.
struct PackedAttention {
  int64_t heads = 0;
  bool isCausal = false;
  /// Added to scores of what is masked out.
  double filter = 0;
  /// 0: by the size of the heads.
  double scale = 0;
  /// Columns of q, k and v; empty where they are equal.
  Ints sizes;
  /// Null where absent.
  Value mask, past, bias;
};

/// Reads the attributes, not the operands.
PackedAttention readPackedAttention(NodeContext &node);

/// Attention of [batch, length, q | k | v], joined again; sets the node's second result, the cache.
Value attendPacked(NodeContext &node, Value packed, const PackedAttention &options);

} // namespace cleave::onnx

#endif // CLEAVE_LIB_IMPORT_ONNX_MICROSOFTATTENTION_H
