//===- Form.h - how an op reads its operands --------------------*- C++ -*-===//
//
// Every op says it of itself (dialects/Nn/NnBase.td); which ops may share a kernel follows from it (Fusion.h).
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SHARDING_FORM_H
#define CLEAVE_SHARDING_FORM_H

#include <cstdint>

namespace cleave::spmd {

/// How an op reads its operands for an element of its result.
enum class Form : uint8_t {
  Data,        ///< not at all: a constant, a parameter
  Map,         ///< at the element's own place, or at the one that broadcasting pairs with it
  Movement,    ///< at one place or a few that the element's own place, and perhaps an index, tell
  Row,         ///< all of a row, for one result or as many as the row has: a reduction, softmax, a norm
  Scan,        ///< all of a row up to a place
  Window,      ///< some places around one: pooling, resampling
  Sort,        ///< all of a row, in another order
  Scatter,     ///< at places that indices tell, several perhaps for one element
  Contraction, ///< rows of one operand with rows of another
  Convolution, ///< windows of one operand with another one
  Attention,   ///< contraction, softmax, contraction
  Recurrence,  ///< in steps, each with what the one before left; none is in a kernel before it is unrolled
};

} // namespace cleave::spmd

#endif // CLEAVE_SHARDING_FORM_H
