//===- Movement.cpp - elements change place, not value --------------------===//
//
// Everything is a strided copy: a transpose permutes strides, a broadcast has strides of 0, a slice starts elsewhere
// and multiplies them, concatenation copies boxes. Padding looks up its source per dim in a table of positions.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "Kernels.h"
#include "Loops.h"

#include <cstring>

using namespace mlir;
using namespace cleave;
using namespace cleave::reference;

/// Elements of `from`, first one at `offset`, read with `strides` in the order of the result.
static Tensor gatherStrided(const Tensor &from, int64_t offset, ArrayRef<int64_t> strides, RankedTensorType type) {
  Tensor result = Tensor::zeros(type);
  int64_t elementBytes = getElementBytes(type.getElementType());
  if (result.getNumElements() != 0)
    copyStrided(type.getShape(), elementBytes, from.getBytes().data() + offset * elementBytes, strides,
                result.write<char>().data(), getRowMajorStrides(type.getShape()));
  return result;
}

/// Reading in another order, nothing else: the strides of the operand, permuted.
static Tensor transpose(nn::TransposeOp op, Operands in) {
  SmallVector<int64_t> own = getRowMajorStrides(in[0].getShape()), strides;
  for (int64_t dim : op.getPermutation())
    strides.push_back(own[dim]);
  return gatherStrided(in[0], 0, strides, getResultType(op));
}

static Tensor slice(nn::SliceOp op, Operands in) {
  SmallVector<int64_t> strides = getRowMajorStrides(in[0].getShape());
  int64_t offset = 0;
  for (size_t dim = 0; dim < strides.size(); ++dim) {
    if (op.getSizes()[dim] == 0)
      return Tensor::zeros(getResultType(op));
    offset += op.getStarts()[dim] * strides[dim];
    if (op.getSizes()[dim] > 1) // else any step is allowed, however large
      strides[dim] *= op.getSteps()[dim];
  }
  return gatherStrided(in[0], offset, strides, getResultType(op));
}

/// Each operand is a box of the result, behind those before it.
static Tensor concat(nn::ConcatOp op, Operands in) {
  Tensor result = Tensor::zeros(getResultType(op));
  SmallVector<int64_t> zeros(getRank(result), 0), offset = zeros;
  for (const Tensor &piece : in) {
    copyBox(piece.getShape(), piece, zeros, result, offset);
    offset[op.getDim()] += piece.getShape()[op.getDim()];
  }
  return result;
}

/// Each result is a box of the operand, behind those before it.
static LogicalResult split(nn::SplitOp op, Operands in, SmallVectorImpl<Tensor> &results) {
  SmallVector<int64_t> zeros(getRank(in[0]), 0), offset = zeros;
  for (Type type : op.getResultTypes()) {
    Tensor &piece = results.emplace_back(Tensor::zeros(cast<RankedTensorType>(type)));
    copyBox(piece.getShape(), in[0], offset, piece, zeros);
    offset[op.getDim()] += piece.getShape()[op.getDim()];
  }
  return success();
}

/// Two boxes change places.
static Tensor rotate(nn::RotateOp op, Operands in) {
  Tensor result = Tensor::zeros(getResultType(op));
  SmallVector<int64_t> zeros(getRank(result), 0), at = zeros, head(in[0].getShape()), tail = head;
  int64_t dim = op.getDim(), amount = op.getAmount();
  head[dim] = amount;
  tail[dim] -= amount;
  at[dim] = amount;
  copyBox(tail, in[0], at, result, zeros);
  at[dim] = tail[dim];
  copyBox(head, in[0], zeros, result, at);
  return result;
}

//===----------------------------------------------------------------------===//
// Padding
//===----------------------------------------------------------------------===//

/// Where a padded dim's element `position` (counted from the operand's first) comes from; -1: the fill value.
static int64_t getPadSource(nn::PadMode mode, int64_t position, int64_t size) {
  if (position >= 0 && position < size)
    return position;
  switch (mode) {
  case nn::PadMode::Constant:
    return -1;
  case nn::PadMode::Edge:
    return position < 0 ? 0 : size - 1;
  case nn::PadMode::Reflect:
    return position < 0 ? -position : 2 * (size - 1) - position;
  case nn::PadMode::Wrap:
    return (position % size + size) % size;
  }
  return -1;
}

/// Source positions of every dim of the result.
static SmallVector<std::vector<int64_t>> getPadSources(nn::PadOp op, ArrayRef<int64_t> shape) {
  SmallVector<std::vector<int64_t>> sources(shape.size());
  for (size_t dim = 0; dim < shape.size(); ++dim)
    for (int64_t i = -op.getLow()[dim]; i < shape[dim] + op.getHigh()[dim]; ++i)
      sources[dim].push_back(getPadSource(op.getMode(), i, shape[dim]));
  return sources;
}

/// Writes one row of the result: elements of `row` by `sources`, or the fill value.
static void padRow(const char *row, ArrayRef<int64_t> sources, const char *fill, int64_t elementBytes, char *to) {
  for (int64_t source : sources) {
    std::memcpy(to, source < 0 || !row ? fill : row + source * elementBytes, elementBytes);
    to += elementBytes;
  }
}

/// Where a position comes from is found dim by dim, once; a row is inside if all its other positions are.
static Tensor pad(nn::PadOp op, Operands in) {
  ArrayRef<int64_t> shape = in[0].getShape();
  int64_t elementBytes = getElementBytes(in[0].getElementType());
  Tensor fill = in.size() > 1 ? in[1] : Tensor::zeros(RankedTensorType::get({}, in[0].getElementType()));
  if (shape.empty())
    return in[0];
  Tensor result = Tensor::zeros(getResultType(op));
  SmallVector<std::vector<int64_t>> sources = getPadSources(op, shape);
  SmallVector<int64_t> strides = getRowMajorStrides(shape);
  ArrayRef<int64_t> outer = result.getShape().drop_back();
  int64_t rowBytes = result.getShape().back() * elementBytes;
  Odometer odometer(outer, {});
  char *to = result.write<char>().data();
  for (int64_t count = rowBytes ? product(outer) : 0; count > 0; --count, odometer.next(), to += rowBytes) {
    int64_t start = 0;
    bool isInside = true;
    for (auto [dim, position] : llvm::enumerate(odometer.getPosition())) {
      int64_t source = sources[dim][position];
      isInside &= source >= 0;
      start += source * strides[dim];
    }
    const char *row = isInside ? in[0].getBytes().data() + start * elementBytes : nullptr;
    padRow(row, sources.back(), fill.getBytes().data(), elementBytes, to);
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Triangles
//===----------------------------------------------------------------------===//

/// Row by row: what is kept of one is an interval, up to or from the diagonal.
static Tensor trilu(nn::TriluOp op, Operands in) {
  Tensor result = Tensor::zeros(getResultType(op));
  ArrayRef<int64_t> shape = result.getShape();
  int64_t rows = shape[shape.size() - 2], columns = shape.back(), offset = op.getOffset();
  int64_t elementBytes = getElementBytes(result.getElementType());
  if (result.getNumElements() == 0)
    return result;
  // Saturated, so that no offset overflows.
  offset = std::min(std::max(offset, -rows), columns);
  for (int64_t row = 0, count = result.getNumElements() / columns; row < count; ++row) {
    int64_t border = row % rows + offset;
    int64_t begin = op.getUpper() ? std::min(std::max<int64_t>(border, 0), columns) : 0;
    int64_t end = op.getUpper() ? columns : std::min(std::max<int64_t>(border + 1, 0), columns);
    int64_t start = (row * columns + begin) * elementBytes;
    if (begin < end)
      std::memcpy(result.write<char>().data() + start, in[0].getBytes().data() + start, (end - begin) * elementBytes);
  }
  return result;
}

void cleave::reference::registerMovement(KernelTable &table) {
  table.add<nn::ReshapeOp>([](nn::ReshapeOp op, Operands in) { return in[0].reshaped(getResultType(op).getShape()); });
  table.add<nn::BroadcastOp>(
      [](nn::BroadcastOp op, Operands in) { return broadcastTo(in[0], getResultType(op).getShape()); });
  table.add<nn::TransposeOp>(transpose);
  table.add<nn::ConcatOp>(concat);
  table.add<nn::SliceOp>(slice);
  table.addMany<nn::SplitOp>(split);
  table.add<nn::PadOp>(pad);
  table.add<nn::RotateOp>(rotate);
  table.add<nn::TriluOp>(trilu);
}
