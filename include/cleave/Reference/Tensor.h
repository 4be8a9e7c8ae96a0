//===- Tensor.h - values of the reference evaluator -------------*- C++ -*-===//
//
// A tensor type and its elements: little-endian, row-major, bool as one byte of 0 or 1, f16 and bf16 as their 16 bits.
// Copies share the bytes; whoever makes a tensor writes it before handing it on.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_REFERENCE_TENSOR_H
#define CLEAVE_REFERENCE_TENSOR_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include <memory>

namespace cleave::reference {

/// Bytes of one element as stored here (bool: 1).
int64_t getElementBytes(mlir::Type elementType);

/// Bytes that this process could have at best: those of the machine, or of a limit on it.
double getMemory();

class Tensor {
public:
  Tensor() = default;
  /// True if the element type is one of the evaluator's, and the elements do not exceed the machine's memory.
  static bool fits(mlir::RankedTensorType type);
  /// Zeros of `type`; its encoding is dropped. Precondition: it fits.
  static Tensor zeros(mlir::RankedTensorType type);
  /// Copies of one element, given by its bytes. Precondition: they fit.
  static Tensor filled(mlir::RankedTensorType type, llvm::ArrayRef<char> element);
  /// The elements of an attribute (dense, splat or resource); fails for other ones and if they do not fit.
  static mlir::FailureOr<Tensor> fromAttr(mlir::ElementsAttr attr);
  /// Wraps bytes that `owner` keeps alive (a mapped file). Precondition: `bytes` has the type's size.
  static Tensor fromBytes(mlir::RankedTensorType type, llvm::ArrayRef<char> bytes, std::shared_ptr<const void> owner);

  mlir::RankedTensorType getType() const { return type; }
  llvm::ArrayRef<int64_t> getShape() const { return type.getShape(); }
  mlir::Type getElementType() const { return type.getElementType(); }
  int64_t getNumElements() const { return type.getNumElements(); }
  llvm::ArrayRef<char> getBytes() const { return {data, size}; }

  /// Elements as `T`. Precondition: T has the element's size.
  template <typename T> llvm::ArrayRef<T> as() const {
    assert(sizeof(T) == getElementBytes(getElementType()) && "read as another type");
    return llvm::ArrayRef<T>(reinterpret_cast<const T *>(data), size / sizeof(T));
  }
  /// For the maker of the tensor only. Precondition: made by `zeros`.
  template <typename T> llvm::MutableArrayRef<T> write() {
    assert(isOwn && "these bytes are someone else's");
    return llvm::MutableArrayRef<T>(reinterpret_cast<T *>(const_cast<char *>(data)), size / sizeof(T));
  }

  /// The elements with another shape of as many elements; shares the bytes.
  Tensor reshaped(llvm::ArrayRef<int64_t> shape) const;
  /// As a dense attribute (one copy).
  mlir::DenseElementsAttr toAttr() const;

private:
  mlir::RankedTensorType type;
  const char *data = nullptr;
  size_t size = 0;
  bool isOwn = false; ///< made by `zeros`
  std::shared_ptr<const void> owner;
};

} // namespace cleave::reference

#endif // CLEAVE_REFERENCE_TENSOR_H
