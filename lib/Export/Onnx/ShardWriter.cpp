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
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Nn/IR/Pieces.h"
#include "cleave/Reference/Tensor.h"
#include "cleave/Support/Status.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

namespace {
/// A piece of a parameter as it is written from: where all elements are equal, as many of them as one write takes.
struct Source {
  reference::WeightPiece piece;
  std::vector<char> repeated;

  explicit Source(const reference::WeightPiece &piece) : piece(piece) {
    constexpr int64_t most = 1 << 16;
    for (int64_t i = 0; piece.isSplat && i < std::min(piece.type.getNumElements(), most); ++i)
      repeated.insert(repeated.end(), piece.bytes.begin(), piece.bytes.end());
  }
};
} // namespace

ShardWriter::ShardWriter(ModuleOp module) {
  for (auto param : module.getOps<nn::ParamOp>())
    params[param.getSymName()] = param;
}

static int64_t product(ArrayRef<int64_t> extents) { return llvm::product_of(extents); }

/// `count` bytes at `offset` of a source, as ONNX has them.
static void copy(const Source &source, int64_t offset, int64_t count, llvm::raw_ostream &os) {
  const reference::WeightPiece &piece = source.piece;
  int64_t most = piece.isSplat ? source.repeated.size() : 1 << 20;
  std::vector<char> buffer;
  for (int64_t done = 0; done < count; done += buffer.size()) {
    buffer.resize(std::min<int64_t>(count - done, most));
    if (piece.file)
      piece.file->copy(piece.file->getOffset(piece.bytes) + offset + done, buffer);
    else if (piece.isSplat)
      std::copy_n(source.repeated.begin(), buffer.size(), buffer.begin());
    else
      llvm::copy(piece.bytes.slice(offset + done, buffer.size()), buffer.begin());
    encodeSigns(buffer, piece.type.getElementType());
    os.write(buffer.data(), buffer.size());
  }
}

/// Dim `dim` on of a box; `offset` is that of its row in the source, in elements.
static void writeBox(const Source &source, ArrayRef<int64_t> shape, const spmd::ShardBox &box, int64_t elementBytes,
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

llvm::Expected<reference::WeightPiece> ShardWriter::find(nn::ParamOp param, int64_t index, Attribute value) {
  if (auto found = known.find({param, index}); found != known.end())
    return found->second;
  FailureOr<reference::WeightPiece> piece = files.read(param, value, /*checksAll=*/true);
  // What is wrong has been emitted.
  if (failed(piece))
    return makeError("a weight cannot be read");
  if (piece->file)
    known[{param, index}] = *piece;
  return *piece;
}

llvm::Error ShardWriter::write(nn::LoadOp load, int64_t rank, llvm::raw_ostream &os) {
  nn::ParamOp param = params.lookup(load.getParam());
  FailureOr<nn::LoadedBox> loaded = nn::getLoadedBox(load, param, spmd::getMesh(load));
  if (failed(loaded))
    return makeError("a weight is loaded by no sharding of it");
  spmd::ShardBox box = loaded->getShard(rank);
  RankedTensorType type = nn::getPieceType(param);
  int64_t elementBytes = reference::getElementBytes(type.getElementType());
  SmallVector<Attribute> pieces = nn::getPieces(param);
  auto writePiece = [&](int64_t index, const spmd::ShardBox &inside) -> llvm::Error {
    llvm::Expected<reference::WeightPiece> piece = find(param, index, pieces[index]);
    if (!piece)
      return piece.takeError();
    writeBox(Source(*piece), type.getShape(), inside, elementBytes, 0, 0, os);
    return llvm::Error::success();
  };
  if (!nn::isStack(param))
    return writePiece(0, box);
  // A stack's first dim counts its parts.
  spmd::ShardBox inside{llvm::to_vector(ArrayRef(box.start).drop_front()),
                        llvm::to_vector(ArrayRef(box.present).drop_front()),
                        llvm::to_vector(ArrayRef(box.extents).drop_front())};
  for (int64_t part = 0; part < box.present.front(); ++part)
    if (llvm::Error error = writePiece(box.start.front() + part, inside))
      return error;
  os.write_zeros((box.extents.front() - box.present.front()) * product(inside.extents) * elementBytes);
  return llvm::Error::success();
}
