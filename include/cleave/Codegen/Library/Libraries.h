//===- Libraries.h - kernels that a library of a device has -----*- C++ -*-===//
//
// cuBLASLt and cuDNN know some regions as one call: a product or a convolution, and what their epilogues add, or attention. Who finds one
// says it in the library's words, on the buffers of the kernel, which stays as it is and stands in where there is no library.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_CODEGEN_LIBRARY_LIBRARIES_H
#define CLEAVE_CODEGEN_LIBRARY_LIBRARIES_H

#include "mlir/IR/Block.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

namespace cleave::codegen {

/// A tensor as a library sees it.
///
/// All elements of a buffer of a kernel, in another order of dims: those of size 1 come and go, 0 strides repeat.
struct LibraryTensor {
  unsigned buffer = 0; ///< arguments, then results
  llvm::SmallVector<int64_t> shape, strides;
};

/// What a library does to each element last of all; Gelu is that by tanh.
enum class LibraryActivation { None, Relu, GeluTanh };

/// activation(scale * product + bias + residual). A bias has an element per column, or channel, of the result, whose shape a
/// residual has; both have its element type.
struct LibraryEpilogue {
  double scale = 1;
  std::optional<LibraryTensor> bias, residual;
  LibraryActivation activation = LibraryActivation::None;
};

/// a [batch.., m, k] x b [batch.., k, n], or [k, n] where all of the batch has the same. The columns of the result hold
/// the dim whose elements lie side by side.
struct LibraryMatmul {
  LibraryTensor a, b, result;
  LibraryEpilogue epilogue;

  int64_t getDepth() const { return a.shape.back(); }
  /// In the order in which a command names them: a, b, bias, residual, result.
  llvm::SmallVector<const LibraryTensor *> getTensors() const;
};

/// Input [N, spatial.., C], filter [C out, spatial.., C in / groups], result [N, spatial.., C out].
struct LibraryConvolution {
  LibraryTensor input, filter, result;
  LibraryEpilogue epilogue;
  llvm::SmallVector<int64_t> strides, dilations, padsLow, padsHigh;
  int64_t groups = 1;

  llvm::SmallVector<const LibraryTensor *> getTensors() const;
};

/// softmax(scale * query x key' + mask) x value, all [batch, heads, length, size], the mask [batch, heads, queries, keys], 1 where it is
/// the same all along. Causal: query i of Q sees keys up to i + K - Q.
struct LibraryAttention {
  LibraryTensor query, key, value, result;
  std::optional<LibraryTensor> mask;
  double scale = 1;
  bool isCausal = false;

  llvm::SmallVector<const LibraryTensor *> getTensors() const;
};

/// What a region is, if it is nothing else: every op of it is the product, moves what the library reads or writes, or is part
/// of the epilogue. Tensors have the shapes above, whatever order of dims their buffers have; dims that all tensors step
/// through alike are one. Nothing where operands are computed in the region, lie in panels, or are parts of buffers.
std::optional<LibraryMatmul> findMatmul(mlir::Block &region);
std::optional<LibraryConvolution> findConvolution(mlir::Block &region);
/// As above, of f16 and bf16 alone, where every query has a key: no library has more.
std::optional<LibraryAttention> findAttention(mlir::Block &region);

} // namespace cleave::codegen

#endif // CLEAVE_CODEGEN_LIBRARY_LIBRARIES_H
