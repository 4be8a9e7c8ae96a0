//===- Loops.cpp - walking strided and broadcast tensors ------------------===//
//
// Loop nests are merged before they are walked: neighboring dims become one where, for every tensor involved, a step
// of the major dim equals a whole walk through the minor one.
//
//===----------------------------------------------------------------------===//
#include "Loops.h"

#include <cstring>

using namespace mlir;
using namespace cleave::reference;
using Strides = SmallVector<int64_t>;

Strides cleave::reference::getRowMajorStrides(ArrayRef<int64_t> shape) {
  Strides strides(shape.size());
  uint64_t step = 1; // wraps where nothing is ever read
  for (int64_t dim = shape.size() - 1; dim >= 0; --dim) {
    strides[dim] = int64_t(step);
    step *= uint64_t(shape[dim]);
  }
  return strides;
}

// Dims are aligned at the minor end; those that the operand lacks, or has with one element, repeat: stride 0.
Strides cleave::reference::getBroadcastStrides(ArrayRef<int64_t> shape, ArrayRef<int64_t> result) {
  Strides strides(result.size(), 0);
  Strides own = getRowMajorStrides(shape);
  size_t missing = result.size() - shape.size();
  for (size_t dim = 0; dim < shape.size(); ++dim)
    strides[missing + dim] = shape[dim] == 1 ? 0 : own[dim];
  return strides;
}

Odometer::Odometer(ArrayRef<int64_t> shape, ArrayRef<SmallVector<int64_t>> strides)
    : shape(shape), position(shape.size(), 0), offsets(strides.size(), 0), strides(strides) {}

/// Amortized constant: the last position changes most, and carries are rare.
void Odometer::next() {
  for (int64_t dim = shape.size() - 1; dim >= 0; --dim) {
    bool wraps = ++position[dim] == shape[dim];
    for (size_t i = 0; i < offsets.size(); ++i)
      // Back to the first element of the dim, without a multiplication by the position.
      offsets[i] += wraps ? -(shape[dim] - 1) * strides[i][dim] : strides[i][dim];
    if (!wraps)
      return;
    position[dim] = 0;
  }
}

/// Drops dims of size 1 and merges dims that all `strides` walk through as one.
static void mergeDims(Strides &shape, MutableArrayRef<Strides> strides) {
  size_t kept = 0;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    if (shape[dim] == 1)
      continue;
    bool merges =
        kept > 0 && llvm::all_of(strides, [&](const Strides &of) { return of[kept - 1] == of[dim] * shape[dim]; });
    size_t target = merges ? kept - 1 : kept++;
    shape[target] = merges ? shape[target] * shape[dim] : shape[dim];
    for (Strides &of : strides)
      of[target] = of[dim];
  }
  shape.resize(kept);
  for (Strides &of : strides)
    of.resize(kept);
}

// The most minor dim, as long as merging makes it, becomes the run; the others are counted through by an odometer.
Runs::Runs(ArrayRef<int64_t> result, ArrayRef<ArrayRef<int64_t>> operands) : outerShape(result) {
  for (ArrayRef<int64_t> operand : operands)
    outerStrides.push_back(getBroadcastStrides(operand, result));
  mergeDims(outerShape, outerStrides);
  innerStrides.assign(operands.size(), 0);
  if (!outerShape.empty()) {
    inner = outerShape.pop_back_val();
    for (auto [stride, of] : llvm::zip_equal(innerStrides, outerStrides))
      stride = of.pop_back_val();
  }
  numOuter = product(outerShape);
}

/// Copies `count` elements of type `T` with strides.
template <typename T>
static void copyRow(int64_t count, const char *from, int64_t fromStride, char *to, int64_t toStride) {
  constexpr int64_t size = sizeof(T); // signed: strides may be negative
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(to + i * toStride * size, from + i * fromStride * size, size);
}

void cleave::reference::copyStrided(ArrayRef<int64_t> shape, int64_t elementBytes, const char *from,
                                    ArrayRef<int64_t> fromStrides, char *to, ArrayRef<int64_t> toStrides) {
  if (llvm::is_contained(shape, 0))
    return;
  Strides extents(shape);
  Strides strides[] = {Strides(fromStrides), Strides(toStrides)};
  mergeDims(extents, strides);
  int64_t count = 1, fromStride = 1, toStride = 1;
  if (!extents.empty()) {
    count = extents.pop_back_val();
    fromStride = strides[0].pop_back_val();
    toStride = strides[1].pop_back_val();
  }
  // Elements are moved as integers of their width: no type matters here.
  auto row = elementBytes == 1   ? copyRow<uint8_t>
             : elementBytes == 2 ? copyRow<uint16_t>
             : elementBytes == 4 ? copyRow<uint32_t>
                                 : copyRow<uint64_t>;
  bool isContiguous = fromStride == 1 && toStride == 1;
  Odometer odometer(extents, strides);
  for (int64_t outer = product(extents); outer > 0; --outer, odometer.next()) {
    const char *source = from + odometer.getOffsets()[0] * elementBytes;
    char *target = to + odometer.getOffsets()[1] * elementBytes;
    if (isContiguous)
      std::memcpy(target, source, count * elementBytes);
    else
      row(count, source, fromStride, target, toStride);
  }
}

/// Offsets are folded into the start, so that only strides are left to walk.
void cleave::reference::copyBox(ArrayRef<int64_t> shape, const Tensor &from, ArrayRef<int64_t> fromOffset, Tensor &to,
                                ArrayRef<int64_t> toOffset) {
  if (llvm::is_contained(shape, 0))
    return;
  Strides fromStrides = getRowMajorStrides(from.getShape()), toStrides = getRowMajorStrides(to.getShape());
  int64_t elementBytes = getElementBytes(from.getElementType()), source = 0, target = 0;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    source += fromOffset[dim] * fromStrides[dim];
    target += toOffset[dim] * toStrides[dim];
  }
  copyStrided(shape, elementBytes, from.getBytes().data() + source * elementBytes, fromStrides,
              to.write<char>().data() + target * elementBytes, toStrides);
}

Tensor cleave::reference::broadcastTo(const Tensor &tensor, ArrayRef<int64_t> shape) {
  if (tensor.getShape() == shape)
    return tensor;
  Tensor result = Tensor::zeros(RankedTensorType::get(shape, tensor.getElementType()));
  copyStrided(shape, getElementBytes(tensor.getElementType()), tensor.getBytes().data(),
              getBroadcastStrides(tensor.getShape(), shape), result.write<char>().data(), getRowMajorStrides(shape));
  return result;
}
