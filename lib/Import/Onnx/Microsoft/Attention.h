//===- Attention.h - attention on packed q, k and v -------------*- C++ -*-===//
#ifndef CLEAVE_LIB_IMPORT_ONNX_MICROSOFT_ATTENTION_H
#define CLEAVE_LIB_IMPORT_ONNX_MICROSOFT_ATTENTION_H

#include "../NodeContext.h"

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

/// The form in which GroupQueryAttention keeps keys and values; without quantization values pass as they are.
class QuantizedCache {
public:
  explicit QuantizedCache(NodeContext &node) : node(node) {}

  /// False after an error, which has been reported.
  bool readAttributes();
  /// Scales, and what caches that come in must be. False after an error.
  bool readOperands(int64_t heads, int64_t headSize);

  bool isUsed() const { return bits != 0; }
  /// A cache that comes in, so that it can be joined and written into; null for null.
  Value open(Value cache);
  /// One that has been, as it goes out.
  Value close(Value cache);
  /// [batch, heads, keys, size] as it is kept, opened.
  Value narrow(Value x, bool isKey);
  /// An opened cache as numbers of `type`.
  Value widen(Value cache, bool isKey, mlir::Type type);

private:
  NodeContext &node;
  int64_t bits = 0, size = 0;
  llvm::StringRef keyType, valueType;
  Value keyScale, valueScale;
  /// Of elements in the cache.
  mlir::Type stored;
};

} // namespace cleave::onnx

#endif // CLEAVE_LIB_IMPORT_ONNX_MICROSOFT_ATTENTION_H
