//===- Random.h - random numbers of ops -------------------------*- C++ -*-===//
#ifndef CLEAVE_LIB_IMPORT_ONNX_RANDOM_H
#define CLEAVE_LIB_IMPORT_ONNX_RANDOM_H

#include "NodeContext.h"

namespace cleave::onnx {

/// Numbers of one node, each a function of the node's key and of its place in the tensor (Random.cpp).
class RandomNumbers {
public:
  /// The key comes from attribute `seed`, or else from the name of the node's first output.
  explicit RandomNumbers(NodeContext &node);

  /// In [0, 1), multiples of 2^-24, of f32 or f64.
  Value uniform(Shape shape, mlir::Type type);
  /// Of mean 0 and deviation 1.
  Value normal(Shape shape, mlir::Type type);

private:
  /// Two words of 32 bits for each element, as i64.
  std::pair<Value, Value> words(Shape shape);

  NodeContext &node;
  uint32_t key = 0;
};

} // namespace cleave::onnx

#endif // CLEAVE_LIB_IMPORT_ONNX_RANDOM_H
