//===- IndexRange.cpp - numbers of an input that are indices --------------===//
//
// One walk over the numbers, by their type, which ends at the first that is no place.
//
//===----------------------------------------------------------------------===//
#include "cleave/Program/IndexRange.h"

#include <cstring>
#include <type_traits>

using namespace cleave::program;

namespace {
/// The first number that is not from `least` to `most`.
struct Outside {
  uint64_t place;
  int64_t number;
};
} // namespace

template <typename T>
static std::optional<Outside> find(const char *data, uint64_t count, int64_t least, int64_t most) {
  for (uint64_t i = 0; i < count; ++i) {
    T given;
    std::memcpy(&given, data + i * sizeof(T), sizeof(T));
    // What no signed number holds is above all places.
    bool isHuge = std::is_unsigned_v<T> && sizeof(T) == 8 && uint64_t(given) > uint64_t(INT64_MAX);
    int64_t number = isHuge ? INT64_MAX : int64_t(given);
    if (number < least || number > most)
      return Outside{i, number};
  }
  return std::nullopt;
}

static std::optional<Outside> find(Element element, const char *data, uint64_t count, int64_t least, int64_t most) {
  switch (element) {
  case Element::I8:
    return find<int8_t>(data, count, least, most);
  case Element::I16:
    return find<int16_t>(data, count, least, most);
  case Element::I32:
    return find<int32_t>(data, count, least, most);
  case Element::I64:
    return find<int64_t>(data, count, least, most);
  case Element::UI8:
    return find<uint8_t>(data, count, least, most);
  case Element::UI16:
    return find<uint16_t>(data, count, least, most);
  case Element::UI32:
    return find<uint32_t>(data, count, least, most);
  case Element::UI64:
    return find<uint64_t>(data, count, least, most);
  default:
    return std::nullopt;
  }
}

Status cleave::program::checkIndices(std::string_view input, Element element, const char *data, uint64_t count,
                                     std::string_view node, int64_t least, int64_t most) {
  std::optional<Outside> outside = find(element, data, count, least, most);
  if (!outside)
    return kGood;
  std::string who = node.empty() ? "a node" : concat("node ", quote(node));
  return makeError("input ", quote(input), ": element ", outside->place, ", ", outside->number,
                   ", is an index out of range: ", who, " looks it up in ", most + 1, " places, ", least, " to ", most);
}
