//===- Oracle.h - what elements are, once more ------------------*- C++ -*-===//
//
// Elements as bits, made and combined by formulas of the test's own: narrow floats by arithmetic on long doubles, integers
// modulo a power of two, f32 and f64 in a plain loop from left to right.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_TEST_UNIT_RUNTIME_ORACLE_H
#define CLEAVE_TEST_UNIT_RUNTIME_ORACLE_H

#include "cleave/Runtime/Element.h"
#include <string>
#include <vector>

namespace cleave::runtime::test {

/// A number that looks random and follows from its arguments.
uint64_t scramble(uint64_t x, uint64_t y);

/// Element bits that `seed` stands for: all values of an integer type; of f32 and f64 such that the order of a sum shows;
/// of f16 and bf16 such that sums and products of 8 are exact in f32, and rounding twice shows.
uint64_t makeElement(ElementType type, Reduction reduction, uint64_t seed);
/// The terms combined from left to right.
uint64_t combineElements(ElementType type, Reduction reduction, const std::vector<uint64_t> &terms);

uint64_t readElement(const char *at, ElementType type);
void writeElement(char *at, ElementType type, uint64_t bits);

/// An f16 or bf16 as a number, and the nearest one to a number, ties to even.
long double decodeNarrow(ElementType type, uint64_t bits);
uint64_t encodeNarrow(ElementType type, long double value);

} // namespace cleave::runtime::test

#endif // CLEAVE_TEST_UNIT_RUNTIME_ORACLE_H
