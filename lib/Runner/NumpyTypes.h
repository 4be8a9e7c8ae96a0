//===- NumpyTypes.h - what numpy calls elements -----------------*- C++ -*-===//
#ifndef CLEAVE_LIB_RUNNER_NUMPYTYPES_H
#define CLEAVE_LIB_RUNNER_NUMPYTYPES_H

#include "cleave/Program/Program.h"
#include <algorithm>
#include <iterator>

namespace cleave::runner {

/// numpy's names, in the order of the enum.
inline constexpr const char *kDtypes[] = {"f2", "V2", "f4", "f8", "b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"};

/// Precondition: `readNpz` knows the type. What numpy has no name for is bytes in programs.
inline program::Element getElement(const std::string &dtype) {
  if (dtype == "V1")
    return program::Element::UI8;
  const auto *found = std::find(std::begin(kDtypes), std::end(kDtypes), dtype);
  assert(found != std::end(kDtypes) && "no type of readNpz");
  return program::Element(found - std::begin(kDtypes));
}

} // namespace cleave::runner

#endif // CLEAVE_LIB_RUNNER_NUMPYTYPES_H
