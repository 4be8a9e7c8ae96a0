//===- Epilogue.h - what stands around a product ----------------*- C++ -*-===//
//
// A product's own dims are where everything is compared: how the result leaves the kernel, and what is added on the way.
//
//   Library/Epilogue.cpp      from the result of a region back to its product
//   Library/Matmul.cpp        dims of an einsum as those of matrices
//   Library/Convolution.cpp   dims of a convolution, channels last
//   Library/Attention.cpp     attention, which has nothing around it
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_CODEGEN_LIBRARY_EPILOGUE_H
#define CLEAVE_LIB_CODEGEN_LIBRARY_EPILOGUE_H

#include "../Lowerings.h"
#include "cleave/Codegen/Library/Libraries.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"

namespace cleave::codegen {

using Strides = llvm::SmallVector<int64_t>;

/// A buffer, and its strides in the dims of some value.
struct Placed {
  unsigned buffer = 0;
  Strides strides;
};

/// How a value that was only moved lies in the buffer that it came from. Nothing where elements of `value` are computed, lie in panels, or are not all that its buffer has.
std::optional<Placed> placeOperand(mlir::Value value);

/// The one op of a region that is of kind `OpT`, if there is one.
template <typename OpT> OpT findOnly(mlir::Block &region) {
  auto found = region.getOps<OpT>();
  return !found.empty() && std::next(found.begin()) == found.end() ? *found.begin() : OpT();
}

/// True if there is something to multiply, of floats that lie in memory as they are.
bool areFactors(const std::optional<Placed> &a, const std::optional<Placed> &b, mlir::Block &region,
                mlir::Value result);

/// What stands between a product and the one result of its region, all in the dims of the product's own result.
class Epilogue {
public:
  /// Nothing if a library cannot do all of it.
  static std::optional<Epilogue> find(mlir::Block &region, mlir::Operation *product);

  Placed result;
  /// What is added, the last first; which is bias, and which residual, is the caller's to see.
  llvm::SmallVector<Placed> added;
  double scale = 1;
  LibraryActivation activation = LibraryActivation::None;

private:
  bool stepBack(mlir::Operation *op, mlir::Value main);
  bool reorder(nn::TransposeOp op);
  bool reshape(nn::ReshapeOp op);
  bool add(mlir::Operation *op, mlir::Value other);
  bool activate(LibraryActivation which);
  template <typename Fn> bool change(Fn fn) {
    for (Placed &tensor : added)
      if (!fn(tensor))
        return false;
    return fn(result);
  }

  mlir::Type element;     ///< of the result
  bool isRounded = false; ///< something that computes stands behind
  bool isScaled = false;
};

} // namespace cleave::codegen

#endif // CLEAVE_LIB_CODEGEN_LIBRARY_EPILOGUE_H
