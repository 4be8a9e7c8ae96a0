//===- TypeInference.h - result types of one op -----------------*- C++ -*-===//
//
// Every op that can tell its result types has a static `inferTypes(Adaptor op, TypeInference &infer)`. It runs in
// builders and in the verifier: types of operands may be trusted there, values of attributes may not. So it checks what
// an attribute says before it indexes or multiplies with it, and never forms a negative or overflowing extent.
//
//   LogicalResult CumsumOp::inferTypes(Adaptor op, TypeInference &infer) {
//     if (failed(infer.checkDim(op.getDim(), op.getInput())))
//       return failure();
//     return infer.giveLike(op.getInput());
//   }
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_DIALECT_NN_IR_TYPEINFERENCE_H
#define CLEAVE_LIB_DIALECT_NN_IR_TYPEINFERENCE_H

#include "cleave/Dialect/Nn/IR/Nn.h"
#include "cleave/Dialect/Spmd/IR/TensorTypes.h"

namespace cleave::nn {

/// Number of elements of a static shape; nothing if it does not fit 63 bits.
std::optional<int64_t> countElements(llvm::ArrayRef<int64_t> shape);
/// `a + b`, `a * b`; nothing if the value does not fit.
std::optional<int64_t> addChecked(int64_t a, int64_t b);
std::optional<int64_t> mulChecked(int64_t a, int64_t b);
/// True if numpy broadcasting repeats `from` to exactly `to`.
bool broadcastsTo(llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to);

/// Collects result types, or says why there are none. Types given have no encoding.
class TypeInference {
public:
  TypeInference(llvm::StringRef opName, std::optional<mlir::Location> location,
                llvm::SmallVectorImpl<mlir::Type> &results)
      : opName(opName), location(location), results(results) {}

  /// Emits the error `'nn.op' op <parts...>`, where there is a place for it; always fails.
  template <typename... Parts> llvm::LogicalResult reject(Parts &&...parts) const {
    return mlir::emitOptionalError(location, "'", opName, "' op ", std::forward<Parts>(parts)...);
  }

  /// Adds a result. Precondition: extents are not negative.
  llvm::LogicalResult give(llvm::ArrayRef<int64_t> shape, mlir::Type elementType);
  /// Adds a result with the shape and element type of `value`.
  llvm::LogicalResult giveLike(mlir::Value value);
  /// Adds the result to which `operands` broadcast (C1), of the one element type of `typed` (C2).
  llvm::LogicalResult giveElementwise(mlir::ValueRange operands, mlir::ValueRange typed);
  /// As `giveElementwise`, with element type bool.
  llvm::LogicalResult giveElementwiseTest(mlir::ValueRange operands);

  /// Rejects a `dim` outside [0, rank of `value`) (constraint `tag`).
  llvm::LogicalResult checkDim(int64_t dim, mlir::Value value, llvm::StringRef tag = "C1") const;
  /// Rejects values of different element types (constraint `tag`).
  llvm::LogicalResult checkElementTypes(mlir::ValueRange values, llvm::StringRef tag) const;
  /// Rejects a `value` that is not a vector of `size` elements; absent values pass.
  llvm::LogicalResult checkVector(llvm::StringRef name, mlir::Value value, int64_t size, llvm::StringRef tag) const;

private:
  llvm::StringRef opName;
  std::optional<mlir::Location> location;
  llvm::SmallVectorImpl<mlir::Type> &results;
};

} // namespace cleave::nn

#endif // CLEAVE_LIB_DIALECT_NN_IR_TYPEINFERENCE_H
