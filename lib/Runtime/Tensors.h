//===- Tensors.h - callers' tensors and the boxes of ranks ------*- C++ -*-===//
#ifndef CLEAVE_LIB_RUNTIME_TENSORS_H
#define CLEAVE_LIB_RUNTIME_TENSORS_H

#include "Bind.h"

namespace cleave::runtime {

/// One rank's box of a tensor: how it goes between the caller's whole and the rank's view.
struct TensorBox {
  /// Which input or output of the variant, and which term of it.
  uint32_t tensor = 0, term = 0;
  /// Into the whole, in bytes.
  uint64_t offset = 0;
  char *address = nullptr;
  /// From the whole to the view (inputs), or from the view to the whole (outputs).
  BoxCopy box;
  /// Whether there is less of it than the view has room for: the rest is padding.
  bool isPadded = false;
  /// In elements: for pieces.
  std::vector<int64_t> shape, strides, fullStrides;
};

/// The boxes that `rank` fills of the inputs of a variant.
std::vector<TensorBox> findInputs(const BindContext &context, uint32_t variant);
/// Those that it hands out of the outputs: of ranks with copies only the first hands out.
std::vector<TensorBox> findOutputs(const BindContext &context, uint32_t variant);

/// The place by which `rank` hands out a box of `tensor`; null where it has none, or a copy of another rank's.
const program::Place *findOwnPlace(const program::Program &program, const program::Tensor &tensor, uint32_t rank);

/// What all ranks hand out of an output to rank 0, as the pieces that concern this rank; `term` is the term that they
/// belong to.
std::vector<Piece> findGatherPieces(const program::Program &program, uint32_t variant, uint32_t output, uint32_t term,
                                    uint32_t rank);

/// Fills a view with what changes nothing: a rank that does not hold the first term of an input.
void fillNeutral(const program::Type &type, Reduction reduction, char *address);

} // namespace cleave::runtime

#endif // CLEAVE_LIB_RUNTIME_TENSORS_H
