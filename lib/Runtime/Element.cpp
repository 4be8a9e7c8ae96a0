//===- Element.cpp - what ranks exchange and how it combines --------------===//
//
// Which element types combine in which ways.
//
//===----------------------------------------------------------------------===//
#include "cleave/Runtime/Element.h"

using namespace cleave::runtime;

bool cleave::runtime::isLegal(Reduction reduction, ElementType type) {
  if (reduction == Reduction::None)
    return false;
  return type != ElementType::I1 || reduction == Reduction::Max || reduction == Reduction::Min;
}
