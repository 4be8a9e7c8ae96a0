//===- Ranges.cpp - which bytes a view is ---------------------------------===//
//
// Of a column only its least and greatest entries matter, and what divides all of them: found once, however many views
// have it.
//
//===----------------------------------------------------------------------===//
#include "Ranges.h"

#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"

#include <numeric>

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

Ranges::Ranges(ModuleOp module) {
  for (auto buffer : module.getOps<BufferOp>()) {
    numbers[buffer.getSymNameAttr()] = buffers.size();
    buffers.push_back(buffer);
  }
  for (auto kernel : module.getOps<KernelOp>())
    kernels[kernel.getSymNameAttr()] = kernel;
  for (auto list : module.getOps<PiecesOp>())
    pieces[list.getSymNameAttr()] = list;
}

Range Ranges::get(Value value, int64_t rank) const {
  auto view = value.getDefiningOp<ViewOp>();
  NumberAttr offset = view.getOffset();
  int64_t begin = offset.getBase() + (offset.hasColumn() ? offset.getPerRank(view)[rank] : 0);
  return {getNumber(view), begin, begin + getSpanBytes(view.getType())};
}

const Ranges::Column &Ranges::getColumn(ViewOp view) {
  auto [column, isNew] = columns.try_emplace(view.getOffset().getColumn());
  if (isNew) {
    ArrayRef<int64_t> perRank = view.getOffset().getPerRank(view);
    column->second = {*llvm::min_element(perRank), *llvm::max_element(perRank), 0};
    for (int64_t number : perRank)
      column->second.divisor = std::gcd(column->second.divisor, number);
  }
  return column->second;
}

Range Ranges::getOnAll(Value value) {
  auto view = value.getDefiningOp<ViewOp>();
  int64_t base = view.getOffset().getBase(), bytes = getSpanBytes(view.getType());
  if (!view.getOffset().hasColumn())
    return {getNumber(view), base, base + bytes};
  const Column &column = getColumn(view);
  return {getNumber(view), base + column.least, base + column.most + bytes};
}

bool Ranges::fits(ViewOp view) {
  Range range = getOnAll(view);
  int64_t element = spmd::getElementBytes(view.getType().getElementType());
  bool isAligned = view.getOffset().getBase() % element == 0 &&
                   (!view.getOffset().hasColumn() || getColumn(view).divisor % element == 0);
  return range.begin >= 0 && range.end <= int64_t(buffers[range.buffer].getBytes()) && isAligned;
}

bool cleave::exec::isOwnRow(CollectiveOp op, const Range &source, const Range &target, int64_t index, int64_t size) {
  if (!hasOwnPiece(op.getKind()))
    return false;
  bool isGathered = gathers(op.getKind());
  ArrayRef<int64_t> pieces = isGathered ? *op.getGather() : *op.getSlice();
  const Range &row = isGathered ? source : target, &whole = isGathered ? target : source;
  return !pieces.empty() && pieces.front() == size && row.begin == whole.begin + index * (row.end - row.begin);
}

bool cleave::exec::getsBeside(ExchangeOp op, PiecesOp pieces, const Range &source, const Range &target) {
  auto type = cast<MemRefType>(op.getTarget().getType());
  SmallVector<int64_t> strides = *getStrides(type);
  int64_t bytes = spmd::getElementBytes(type.getElementType());
  for (int64_t index = 0; index < pieces.size(); ++index) {
    PiecesOp::Piece piece = pieces.getPiece(index);
    int64_t first = 0, last = 0;
    for (auto [to, extent, stride] : llvm::zip_equal(piece.to, piece.extents, strides)) {
      first += to * stride;
      last += (to + extent - 1) * stride;
    }
    Range box{target.buffer, target.begin + first * bytes, target.begin + (last + 1) * bytes};
    if (box.overlaps(source))
      return false;
  }
  return true;
}
