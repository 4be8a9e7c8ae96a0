//===- ShardWriter.cpp - a rank's shards of weights -----------------------===//
//
// A shard is a box of the parameter, perhaps with padding behind it in some dims. It is written as a walk over its rows; the dims
// at the end that are taken whole make one run:
//
//   box [1:3, 0:4] of [4, 4]      one run of 8 elements
//   box [0:4, 1:3]                four runs of 2
//
//===----------------------------------------------------------------------===//
#include "ShardWriter.h"

#include "Elements.h"
#include "cleave/Dialect/Nn/IR/Pieces.h"
#include "cleave/Reference/Tensor.h"
#include "cleave/Support/Status.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

namespace {
/// Where the elements of a piece of a parameter are: in a file, or in memory.
struct Source {
  reference::WeightFiles::Range range;
  reference::Tensor elements;
  bool isSplat = false;
  Type elementType;
};

/// A rank's box of a parameter: in each dim where it begins, how much of it is there, and how much it takes with padding.
struct ShardBox {
  SmallVector<int64_t> start, present, extents;
};
} // namespace

ShardWriter::ShardWriter(ModuleOp module) {
  for (auto param : module.getOps<nn::ParamOp>())
    params[param.getSymName()] = param;
}

/// The box of the parameter or of its part, cut by the load's sharding.
static ShardBox getBox(nn::LoadOp load, nn::ParamOp param, int64_t rank) {
  ArrayRef<int64_t> whole = cast<RankedTensorType>(param.getType()).getShape();
  ShardBox box;
  box.start.assign(whole.size(), 0);
  SmallVector<int64_t> shape(whole);
  if (auto starts = load.getStarts()) {
    box.start.assign(starts->begin(), starts->end());
    shape.assign(load.getSizes()->begin(), load.getSizes()->end());
  }
  auto sharding = dyn_cast_if_present<spmd::ShardingAttr>(load.getShardingAttr());
  box.extents = sharding ? sharding.getLocalShape(shape) : shape;
  SmallVector<int64_t> offset = sharding ? sharding.getOffset(shape, rank) : SmallVector<int64_t>(shape.size(), 0);
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    box.start[dim] += offset[dim];
    box.present.push_back(std::clamp<int64_t>(shape[dim] - offset[dim], 0, box.extents[dim]));
  }
  return box;
}

static int64_t product(ArrayRef<int64_t> extents) { return llvm::product_of(extents); }

/// `count` bytes at `offset` of a source, as ONNX has them.
static void copy(const Source &source, int64_t offset, int64_t count, llvm::raw_ostream &os) {
  ArrayRef<char> held;
  int64_t base = 0, most = 1 << 20;
  if (source.range.file)
    base = source.range.file->getOffset(ArrayRef<char>(source.range.bytes.data(), source.range.bytes.size()));
  else
    held = source.elements.getBytes();
  if (source.isSplat)
    most = held.size();
  std::vector<char> buffer;
  for (int64_t done = 0; done < count; done += buffer.size()) {
    buffer.resize(std::min<int64_t>(count - done, most));
    if (source.range.file)
      source.range.file->copy(base + offset + done, buffer);
    else
      llvm::copy(held.slice(source.isSplat ? 0 : offset + done, buffer.size()), buffer.begin());
    encodeSigns(buffer, source.elementType);
    os.write(buffer.data(), buffer.size());
  }
}

/// Dim `dim` on of a box; `offset` is that of its row in the source, in elements.
static void writeBox(const Source &source, ArrayRef<int64_t> shape, const ShardBox &box, int64_t elementBytes,
                     size_t dim, int64_t offset, llvm::raw_ostream &os) {
  ArrayRef<int64_t> behind = shape.drop_front(dim), present = ArrayRef(box.present).drop_front(dim);
  ArrayRef<int64_t> extents = ArrayRef(box.extents).drop_front(dim);
  int64_t bytes = product(extents) * elementBytes;
  if (behind.empty() || (present.drop_front() == behind.drop_front() && present.drop_front() == extents.drop_front())) {
    int64_t row = behind.empty() ? 1 : product(behind.drop_front());
    int64_t there = behind.empty() ? 1 : present.front() * row, from = behind.empty() ? 0 : box.start[dim] * row;
    copy(source, (offset + from) * elementBytes, there * elementBytes, os);
    os.write_zeros(bytes - there * elementBytes);
    return;
  }
  int64_t row = product(behind.drop_front());
  for (int64_t place = 0; place < present.front(); ++place)
    writeBox(source, shape, box, elementBytes, dim + 1, offset + (box.start[dim] + place) * row, os);
  os.write_zeros((extents.front() - present.front()) * product(extents.drop_front()) * elementBytes);
}

/// That a weight's file is wrong has been emitted.
static llvm::Error makeToldError() { return makeError("a weight cannot be read"); }

llvm::Error ShardWriter::write(nn::LoadOp load, int64_t rank, llvm::raw_ostream &os) {
  nn::ParamOp param = params.lookup(load.getParam());
  ShardBox box = getBox(load, param, rank);
  RankedTensorType type = nn::getPieceType(param);
  int64_t elementBytes = reference::getElementBytes(type.getElementType());
  SmallVector<Attribute> pieces = nn::getPieces(param);
  auto writePiece = [&](int64_t index, const ShardBox &inside) -> llvm::Error {
    Source source;
    source.elementType = type.getElementType();
    if (auto weight = dyn_cast<nn::WeightAttr>(pieces[index])) {
      auto [known, isNew] = ranges.try_emplace({param, index});
      if (isNew) {
        FailureOr<reference::WeightFiles::Range> found = files.find(param, weight);
        if (failed(found))
          return makeToldError();
        known->second = *found;
      }
      source.range = known->second;
    } else {
      auto elements = cast<ElementsAttr>(pieces[index]);
      auto dense = dyn_cast<DenseElementsAttr>(Attribute(elements));
      source.isSplat = dense && dense.isSplat();
      // One row of equal elements is written again and again.
      constexpr int64_t most = 1 << 16;
      int64_t count = std::min(type.getNumElements(), most);
      FailureOr<reference::Tensor> tensor = reference::Tensor::fromAttr(
          source.isSplat ? ElementsAttr(dense.resizeSplat(RankedTensorType::get({count}, type.getElementType())))
                         : elements);
      if (failed(tensor)) {
        param.emitOpError("has a value that is not a dense attribute of its type's size");
        return makeToldError();
      }
      source.elements = *tensor;
    }
    writeBox(source, type.getShape(), inside, elementBytes, 0, 0, os);
    return llvm::Error::success();
  };
  if (!nn::isStack(param))
    return writePiece(0, box);
  // A stack's first dim counts its parts.
  ShardBox inside{llvm::to_vector(ArrayRef(box.start).drop_front()),
                  llvm::to_vector(ArrayRef(box.present).drop_front()),
                  llvm::to_vector(ArrayRef(box.extents).drop_front())};
  for (int64_t part = 0; part < box.present.front(); ++part)
    if (llvm::Error error = writePiece(box.start.front() + part, inside))
      return error;
  os.write_zeros((box.extents.front() - box.present.front()) * product(inside.extents) * elementBytes);
  return llvm::Error::success();
}
