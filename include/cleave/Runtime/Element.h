//===- Element.h - what ranks exchange and how it combines ------*- C++ -*-===//
//
// The element types that a program's buffers have, and the ways in which terms combine, are those of the program file.
// Their numbers are part of the headers that ranks compare.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_RUNTIME_ELEMENT_H
#define CLEAVE_RUNTIME_ELEMENT_H

#include "cleave/Program/Words.h"

namespace cleave::runtime {

using ElementType = program::Element;
using Reduction = program::Reduction;

/// Truth values have a maximum (or) and a minimum (and), but no sum and no product; `None` combines nothing.
bool isLegal(Reduction reduction, ElementType type);

} // namespace cleave::runtime

#endif // CLEAVE_RUNTIME_ELEMENT_H
