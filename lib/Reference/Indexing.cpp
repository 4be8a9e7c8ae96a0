//===- Indexing.cpp - reads and writes at computed places -----------------===//
//
// Indices are read as 64-bit integers and checked one by one. Gathers copy bytes; scatters with a reduction compute in
// the compute type and round once, after all updates.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Indexing.h"
#include "Arithmetic.h"
#include "Kernels.h"
#include "Loops.h"

#include <cstring>

using namespace mlir;
using namespace cleave;
using namespace cleave::reference;

namespace {
/// The elements of an index operand.
class Indices {
public:
  Indices(Operation *op, const Tensor &tensor) : op(op), values(tensor) {}
  int64_t size() const { return values.size(); }
  /// Element `position` as an index of operand dim `dim` of `extent`: negative ones count from the end. An error on the
  /// op if it is out of range.
  FailureOr<int64_t> get(int64_t position, int64_t dim, int64_t extent) const {
    int64_t value = values[position];
    if (value >= -extent && value < extent)
      return value < 0 ? value + extent : value;
    InFlightDiagnostic error = op->emitOpError()
                               << "index " << value << " is out of range for dim " << dim << " of size " << extent
                               << ": element " << position << " of the indices";
    error.attachNote(cast<nn::LookupOpInterface>(op).getIndices().getLoc()) << "the indices come from here";
    return error;
  }

private:
  Operation *op;
  Elements<int64_t> values;
};
} // namespace

//===----------------------------------------------------------------------===//
// Gathers
//===----------------------------------------------------------------------===//

static FailureOr<Tensor> gather(nn::GatherOp op, Operands in) {
  ArrayRef<int64_t> shape = in[0].getShape();
  int64_t dim = op.getDim(), extent = shape[dim];
  int64_t bytes = product(shape.drop_front(dim + 1)) * getElementBytes(in[0].getElementType());
  Tensor result = Tensor::zeros(getResultType(op));
  Indices indices(op, in[1]);
  char *to = result.write<char>().data();
  for (int64_t outer = 0, count = product(shape.take_front(dim)); outer < count; ++outer)
    for (int64_t i = 0; i < indices.size(); ++i, to += bytes) {
      FailureOr<int64_t> index = indices.get(i, dim, extent);
      if (failed(index))
        return failure();
      std::memcpy(to, in[0].getBytes().data() + (outer * extent + *index) * bytes, bytes);
    }
  return result;
}

/// Where, in a tensor of `shape`, the elements are that `indexTensor` addresses along `dim`, as offsets.
static FailureOr<std::vector<int64_t>> getElementPlaces(Operation *op, ArrayRef<int64_t> shape,
                                                        const Tensor &indexTensor, int64_t dim) {
  Indices indices(op, indexTensor);
  SmallVector<int64_t> strides = getRowMajorStrides(shape);
  int64_t stride = strides[dim];
  strides[dim] = 0;
  Odometer odometer(indexTensor.getShape(), {strides});
  std::vector<int64_t> places(indices.size());
  for (int64_t i = 0; i < indices.size(); ++i, odometer.next()) {
    FailureOr<int64_t> index = indices.get(i, dim, shape[dim]);
    if (failed(index))
      return failure();
    places[i] = odometer.getOffsets()[0] + *index * stride;
  }
  return places;
}

/// Where the slices are that the tuples of `indexTensor` address in dims `batchDims` and on, as offsets.
static FailureOr<std::vector<int64_t>> getTuplePlaces(Operation *op, ArrayRef<int64_t> shape, const Tensor &indexTensor,
                                                      int64_t batchDims) {
  Indices indices(op, indexTensor);
  ArrayRef<int64_t> indexShape = indexTensor.getShape();
  SmallVector<int64_t> strides = getRowMajorStrides(shape);
  int64_t length = indexShape.back(), perBatch = product(indexShape.drop_front(batchDims).drop_back());
  int64_t batchStride = product(shape.drop_front(batchDims));
  std::vector<int64_t> places(product(indexShape.drop_back()));
  for (size_t tuple = 0; tuple < places.size(); ++tuple) {
    places[tuple] = tuple / perBatch * batchStride;
    for (int64_t i = 0; i < length; ++i) {
      int64_t dim = batchDims + i;
      FailureOr<int64_t> index = indices.get(tuple * length + i, dim, shape[dim]);
      if (failed(index))
        return failure();
      places[tuple] += *index * strides[dim];
    }
  }
  return places;
}

/// Slices of `count` elements at `places`, one after the other.
static Tensor takePlaces(const Tensor &from, ArrayRef<int64_t> places, int64_t count, RankedTensorType type) {
  Tensor result = Tensor::zeros(type);
  int64_t elementBytes = getElementBytes(from.getElementType()), bytes = count * elementBytes;
  char *to = result.write<char>().data();
  for (int64_t place : places) {
    std::memcpy(to, from.getBytes().data() + place * elementBytes, bytes);
    to += bytes;
  }
  return result;
}

static FailureOr<Tensor> gatherElements(nn::GatherElementsOp op, Operands in) {
  FailureOr<std::vector<int64_t>> places = getElementPlaces(op, in[0].getShape(), in[1], op.getDim());
  if (failed(places))
    return failure();
  return takePlaces(in[0], *places, 1, getResultType(op));
}

static FailureOr<Tensor> gatherNd(nn::GatherNdOp op, Operands in) {
  FailureOr<std::vector<int64_t>> places = getTuplePlaces(op, in[0].getShape(), in[1], op.getBatchDims());
  if (failed(places))
    return failure();
  int64_t indexed = op.getBatchDims() + in[1].getShape().back();
  return takePlaces(in[0], *places, product(in[0].getShape().drop_front(indexed)), getResultType(op));
}

//===----------------------------------------------------------------------===//
// Scatters
//===----------------------------------------------------------------------===//

/// What several updates of one element come to depends on their order for `set`, which ONNX leaves open: ours is that
/// of the updates.
template <typename C> static C update(C old, C with, nn::ScatterKind kind) {
  switch (kind) {
  case nn::ScatterKind::Set:
    return with;
  case nn::ScatterKind::Add:
    return addWrapping(old, with);
  case nn::ScatterKind::Mul:
    return multiplyWrapping(old, with);
  case nn::ScatterKind::Max:
    return larger(old, with);
  case nn::ScatterKind::Min:
    break;
  }
  return smaller(old, with);
}

/// A copy of `input` whose slices of `count` elements at `places` meet those of `updates`, in order.
static Tensor scatterAt(nn::ScatterKind kind, const Tensor &input, ArrayRef<int64_t> places, int64_t count,
                        const Tensor &updates) {
  if (kind == nn::ScatterKind::Set) {
    Tensor result = Tensor::zeros(input.getType());
    llvm::copy(input.getBytes(), result.write<char>().begin());
    int64_t elementBytes = getElementBytes(input.getElementType()), bytes = count * elementBytes;
    for (auto [i, place] : llvm::enumerate(places))
      std::memcpy(result.write<char>().data() + place * elementBytes, updates.getBytes().data() + i * bytes, bytes);
    return result;
  }
  return dispatchCompute(input.getElementType(), [&](auto tag) {
    using C = typename decltype(tag)::type;
    ResultBuffer<C> result(input.getType());
    loadElements<C>(input, 0, input.getNumElements(), result.data());
    Elements<C> with(updates);
    for (auto [i, place] : llvm::enumerate(places))
      for (int64_t j = 0; j < count; ++j)
        result[place + j] = update(result[place + j], with[i * count + j], kind);
    return result.finish();
  });
}

static FailureOr<Tensor> scatterElements(nn::ScatterElementsOp op, Operands in) {
  FailureOr<std::vector<int64_t>> places = getElementPlaces(op, in[0].getShape(), in[1], op.getDim());
  if (failed(places))
    return failure();
  return scatterAt(op.getKind(), in[0], *places, 1, in[2]);
}

static FailureOr<Tensor> scatterNd(nn::ScatterNdOp op, Operands in) {
  FailureOr<std::vector<int64_t>> places = getTuplePlaces(op, in[0].getShape(), in[1], 0);
  if (failed(places))
    return failure();
  return scatterAt(op.getKind(), in[0], *places, product(in[0].getShape().drop_front(in[1].getShape().back())), in[2]);
}

/// An index out of range has no hot element, and that is no error.
static Tensor oneHot(nn::OneHotOp op, Operands in) {
  int64_t depth = op.getDepth(), inner = product(in[0].getShape().drop_front(op.getDim()));
  int64_t elementBytes = getElementBytes(in[1].getElementType());
  const char *off = in[1].getBytes().data(), *on = off + elementBytes;
  Tensor result = Tensor::zeros(getResultType(op));
  char *to = result.write<char>().data();
  for (int64_t i = 0, count = result.getNumElements(); i < count; ++i)
    std::memcpy(to + i * elementBytes, off, elementBytes);
  Elements<int64_t> indices(in[0]);
  for (int64_t i = 0; i < indices.size(); ++i) {
    int64_t index = indices[i];
    if (index < -depth || index >= depth)
      continue;
    int64_t hot = index < 0 ? index + depth : index;
    std::memcpy(to + ((i / inner * depth + hot) * inner + i % inner) * elementBytes, on, elementBytes);
  }
  return result;
}

void cleave::reference::registerIndexing(KernelTable &table) {
  table.add<nn::GatherOp>(gather);
  table.add<nn::GatherElementsOp>(gatherElements);
  table.add<nn::GatherNdOp>(gatherNd);
  table.add<nn::ScatterElementsOp>(scatterElements);
  table.add<nn::ScatterNdOp>(scatterNd);
  table.add<nn::OneHotOp>(oneHot);
}
