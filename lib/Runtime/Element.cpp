//===- Element.cpp - what ranks exchange and how it combines --------------===//
//
// One row per element type, in the order of the enum.
//
//===----------------------------------------------------------------------===//
#include "cleave/Runtime/Element.h"

using namespace cleave::runtime;

static constexpr struct {
  const char *name;
  size_t size;
} kTypes[kNumElementTypes] = {{"f64", 8}, {"f32", 4}, {"f16", 2}, {"bf16", 2}, {"i64", 8}, {"i32", 4}, {"i16", 2},
                              {"i8", 1},  {"u64", 8}, {"u32", 4}, {"u16", 2},  {"u8", 1},  {"bool", 1}};
static constexpr const char *kReductions[kNumReductions] = {"sum", "prod", "max", "min"};

size_t cleave::runtime::getSize(ElementType type) { return kTypes[static_cast<unsigned>(type)].size; }

const char *cleave::runtime::getName(ElementType type) { return kTypes[static_cast<unsigned>(type)].name; }

const char *cleave::runtime::getName(Reduction reduction) { return kReductions[static_cast<unsigned>(reduction)]; }

bool cleave::runtime::isLegal(Reduction reduction, ElementType type) {
  return type != ElementType::Bool || reduction == Reduction::Max || reduction == Reduction::Min;
}
