//===- Layout.cpp - where a weight's elements lie, and as what ------------===//
//
// Panels, for dims b.., k.., n in the layout's order:
//
//   [b.., n / width, k.., k last / interleave, width, interleave]
//
// The place of an element is a sum over its dims: n gives (n / width) panels and (n % width) columns, the last k gives
// rows of a panel and places in a group of `interleave`, each other dim a multiple of its stride.
//
//===----------------------------------------------------------------------===//
#include "Layout.h"
#include "Numbers.h"
#include "cleave/Program/Operands.h"
#include "cleave/Program/Words.h"

#include <cassert>
#include <cstring>

using namespace cleave::runtime;
using cleave::program::Element;

/// The table of a dim whose indices are counted in groups of `by`: `outer` from group to group, `inner` within.
static std::vector<int64_t> makeTable(int64_t size, int64_t by, int64_t outer, int64_t inner) {
  std::vector<int64_t> table(static_cast<size_t>(size));
  for (int64_t i = 0; i < size; ++i)
    table[size_t(i)] = i / by * outer + i % by * inner;
  return table;
}

Scatter::Scatter(const program::Load &load, Element from, Element to)
    : shape(load.shape), from(from), to(to), tables(load.shape.size()) {
  const program::Layout &layout = load.layout;
  assert(program::getLaidOutShape(shape, layout) && "the layout does not suit the slice (P16)");
  size_t dims = shape.size();
  std::vector<int64_t> laidOut = *program::getLaidOutShape(shape, layout);
  std::vector<int64_t> strides(laidOut.size());
  int64_t stride = 1;
  for (size_t dim = laidOut.size(); dim-- > 0; stride *= laidOut[dim])
    strides[dim] = stride;
  for (size_t place = 0; place < dims; ++place) {
    size_t dim = layout.order.empty() ? place : layout.order[place];
    int64_t size = shape[dim];
    // Behind the batch stands the dim of panels.
    size_t at = layout.width && place >= layout.batch ? place + 1 : place;
    if (layout.width && place + 1 == dims)
      tables[dim] = makeTable(size, layout.width, strides[layout.batch], layout.interleave);
    else if (layout.width && place + 2 == dims)
      tables[dim] = makeTable(size, layout.interleave, strides[at], 1);
    else
      tables[dim] = makeTable(size, 1, strides[at], 0);
  }
  if (dims)
    for (size_t i = 0; i < tables.back().size(); ++i)
      keepsRows = keepsRows && tables.back()[i] == int64_t(i);
}

/// What all dims but the last say.
int64_t Scatter::getBase(const std::vector<int64_t> &index) const {
  int64_t base = 0;
  for (size_t dim = 0; dim + 1 < shape.size(); ++dim)
    base += tables[dim][size_t(index[dim])];
  return base;
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

template <typename T> static T readAs(const char *source) {
  T value;
  std::memcpy(&value, source, sizeof(value));
  return value;
}

/// Any float. All but f64 are exact in f32.
static double readFloat(Element element, const char *source) {
  switch (element) {
  case Element::F16:
    return double(load(readAs<Half>(source)));
  case Element::BF16:
    return double(load(readAs<BFloat>(source)));
  case Element::F32:
    return double(readAs<float>(source));
  default:
    return readAs<double>(source);
  }
}

template <typename T> static void writeAs(char *target, double value) {
  T stored;
  store(stored, static_cast<std::conditional_t<std::is_same_v<T, double>, double, float>>(value));
  std::memcpy(target, &stored, sizeof(stored));
}

/// To nearest, ties to even; narrow floats by way of f32.
static void writeFloat(Element element, char *target, double value) {
  switch (element) {
  case Element::F16:
    return writeAs<Half>(target, value);
  case Element::BF16:
    return writeAs<BFloat>(target, value);
  case Element::F32:
    return writeAs<float>(target, value);
  default:
    return writeAs<double>(target, value);
  }
}

/// One element after the other, to places that `table` says.
template <size_t kBytes>
static void putElements(const int64_t *table, int64_t count, const char *source, char *target) {
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(target + table[i] * int64_t(kBytes), source + i * int64_t(kBytes), kBytes);
}

void Scatter::put(const std::vector<int64_t> &index, int64_t first, int64_t count, const char *source,
                  char *target) const {
  static const std::vector<int64_t> kScalar = {0};
  const int64_t *table = (shape.empty() ? kScalar : tables.back()).data() + first;
  int64_t size = program::getElementBytes(to), sourceSize = program::getElementBytes(from);
  char *base = target + getBase(index) * size;
  if (from != to) {
    for (int64_t i = 0; i < count; ++i)
      writeFloat(to, base + table[i] * size, readFloat(from, source + i * sourceSize));
    return;
  }
  if (keepsRows) {
    std::memcpy(base + first * size, source, size_t(count * size));
    return;
  }
  switch (size) {
  case 1:
    return putElements<1>(table, count, source, base);
  case 2:
    return putElements<2>(table, count, source, base);
  case 4:
    return putElements<4>(table, count, source, base);
  default:
    return putElements<8>(table, count, source, base);
  }
}

/// What lies beside the elements in a panel stays zero.
void Scatter::fill(const char *source, const std::vector<int64_t> &extents, char *target) const {
  int64_t row = extents.empty() ? 1 : extents.back();
  std::string elements;
  for (int64_t i = 0; i < row; ++i)
    elements.append(source, program::getElementBytes(from));
  std::vector<int64_t> index(extents.size());
  for (;;) {
    put(index, 0, row, elements.data(), target);
    size_t dim = extents.empty() ? 0 : extents.size() - 1;
    while (dim-- > 0) {
      if (++index[dim] < extents[dim])
        break;
      index[dim] = 0;
    }
    if (dim == size_t(-1))
      return;
  }
}
