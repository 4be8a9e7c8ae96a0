//===- Element.h - what ranks exchange and how it combines ------*- C++ -*-===//
//
// The element types that a program's buffers have, and the ways in which terms combine. The numbers are part of the
// program file and of the headers that ranks compare: new ones are added at the end.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_RUNTIME_ELEMENT_H
#define CLEAVE_RUNTIME_ELEMENT_H

#include <cstddef>
#include <cstdint>

namespace cleave::runtime {

enum class ElementType : uint8_t { F64, F32, F16, BF16, I64, I32, I16, I8, U64, U32, U16, U8, Bool };
constexpr unsigned kNumElementTypes = 13;

/// As `spmd` has them (`ReductionKind`), in the same order.
enum class Reduction : uint8_t { Sum, Prod, Max, Min };
constexpr unsigned kNumReductions = 4;

/// Bytes of one element; also its alignment.
size_t getSize(ElementType type);
/// `f32`, `bf16`, `u8`, `bool`.
const char *getName(ElementType type);
/// `sum`, `prod`, `max`, `min`.
const char *getName(Reduction reduction);
/// Truth values have a maximum (or) and a minimum (and), but no sum and no product.
bool isLegal(Reduction reduction, ElementType type);

} // namespace cleave::runtime

#endif // CLEAVE_RUNTIME_ELEMENT_H
