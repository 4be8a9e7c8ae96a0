//===- BoxCopy.cpp - boxes of tensors from place to place -----------------===//
//
// A box is a nest of loops around runs of bytes. What lies one behind the other on both sides is merged first, so that
// most boxes are one run or a few rows. From the first element to the last, so that a tensor can move down over itself.
//
//===----------------------------------------------------------------------===//
#include "cleave/Runtime/Device.h"

#include <cstring>

using namespace cleave::runtime;

Queue::~Queue() = default;
Device::~Device() = default;

/// Those of row-major order where there are none.
static std::vector<int64_t> getStrides(const std::vector<int64_t> &shape, const std::vector<int64_t> &given) {
  if (!given.empty())
    return given;
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t dim = shape.size(); dim-- > 0; stride *= shape[dim])
    strides[dim] = stride;
  return strides;
}

uint64_t BoxCopy::getBytes() const {
  uint64_t bytes = run;
  for (const Dim &dim : dims)
    bytes *= uint64_t(dim.size);
  return bytes;
}

BoxCopy cleave::runtime::planCopy(uint64_t elementBytes, const std::vector<int64_t> &shape,
                                  const std::vector<int64_t> &sourceStrides,
                                  const std::vector<int64_t> &targetStrides) {
  std::vector<int64_t> from = getStrides(shape, sourceStrides), to = getStrides(shape, targetStrides);
  BoxCopy box;
  box.run = elementBytes;
  // From the inside out; `dims` is turned over at the end.
  for (size_t dim = shape.size(); dim-- > 0;) {
    int64_t size = shape[dim], source = from[dim] * int64_t(elementBytes), target = to[dim] * int64_t(elementBytes);
    if (size == 1)
      continue;
    if (box.dims.empty() && source == int64_t(box.run) && target == int64_t(box.run)) {
      box.run *= uint64_t(size);
      continue;
    }
    if (!box.dims.empty()) {
      BoxCopy::Dim &inner = box.dims.back();
      if (source == inner.source * inner.size && target == inner.target * inner.size) {
        inner.size *= size;
        continue;
      }
    }
    box.dims.push_back({size, source, target});
  }
  box.dims = {box.dims.rbegin(), box.dims.rend()};
  return box;
}

/// Elements of `kBytes`, or of `run` bytes where that is 0, one dim.
template <size_t kBytes> static void copyDim(const BoxCopy::Dim &dim, uint64_t run, const char *source, char *target) {
  for (int64_t i = 0; i < dim.size; ++i, source += dim.source, target += dim.target)
    kBytes ? std::memcpy(target, source, kBytes) : std::memmove(target, source, run);
}

/// Single elements are copied by their size, which the compiler then knows.
static void copyInner(const BoxCopy::Dim &dim, uint64_t run, const char *source, char *target) {
  switch (run) {
  case 1:
    return copyDim<1>(dim, run, source, target);
  case 2:
    return copyDim<2>(dim, run, source, target);
  case 4:
    return copyDim<4>(dim, run, source, target);
  case 8:
    return copyDim<8>(dim, run, source, target);
  default:
    return copyDim<0>(dim, run, source, target);
  }
}

/// The loops from `level` on.
static void copyFrom(const BoxCopy &box, size_t level, const char *source, char *target) {
  const BoxCopy::Dim &dim = box.dims[level];
  if (level + 1 == box.dims.size())
    return copyInner(dim, box.run, source, target);
  for (int64_t i = 0; i < dim.size; ++i)
    copyFrom(box, level + 1, source + i * dim.source, target + i * dim.target);
}

void cleave::runtime::copyBox(const BoxCopy &box, const char *source, char *target) {
  if (box.getBytes() == 0)
    return;
  if (box.dims.empty())
    std::memmove(target, source, box.run);
  else
    copyFrom(box, 0, source, target);
}
