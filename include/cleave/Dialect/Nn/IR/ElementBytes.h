//===- ElementBytes.h - elements of attributes, as bytes --------*- C++ -*-===//
//
// Attributes hold elements in three ways: bools as bits, equal elements as one, all others as they are in memory. Who reads or makes
// many of them does so as bytes, in row-major order, a bool in a byte.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_NN_IR_ELEMENTBYTES_H
#define CLEAVE_DIALECT_NN_IR_ELEMENTBYTES_H

#include "mlir/IR/BuiltinAttributes.h"
#include <memory>
#include <optional>
#include <vector>

namespace cleave::nn {

struct ElementBytes {
  llvm::ArrayRef<char> bytes;                     ///< of all elements, or of the one that all are equal to
  bool isSplat = false;                           ///< the latter
  std::shared_ptr<const std::vector<char>> owner; ///< of the bytes; null: the attribute
};

/// Nothing where there are no elements, as of a resource that nobody gave, or not as many as the type has.
std::optional<ElementBytes> readElements(mlir::ElementsAttr elements);

/// Of the bytes of all elements of `type`.
mlir::DenseElementsAttr makeElements(mlir::RankedTensorType type, llvm::ArrayRef<char> bytes);

} // namespace cleave::nn

#endif // CLEAVE_DIALECT_NN_IR_ELEMENTBYTES_H
