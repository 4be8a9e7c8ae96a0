//===- Buffers.cpp - the memory of all ranks ------------------------------===//
//
// Tensors are copied out and in, so that a command that is wrong about who lies where gives wrong numbers, as it would on
// a device.
//
//===----------------------------------------------------------------------===//
#include "Buffers.h"

#include "Loops.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::reference;

Buffers::Buffers(ModuleOp module, int64_t numRanks) : ranks(numRanks) {
  for (auto buffer : module.getOps<exec::BufferOp>()) {
    numbers[buffer.getSymNameAttr()] = numbers.size();
    for (std::vector<Bytes> &ofRank : ranks)
      ofRank.emplace_back(buffer.getBytes(), '\xff');
  }
}

std::pair<unsigned, int64_t> Buffers::find(exec::ViewOp view, int64_t rank) const {
  exec::NumberAttr offset = view.getOffset();
  return {numbers.lookup(view.getBufferAttr().getAttr()),
          offset.getBase() + (offset.hasColumn() ? offset.getPerRank(view)[rank] : 0)};
}

Tensor Buffers::read(Value value, int64_t rank) const {
  auto view = value.getDefiningOp<exec::ViewOp>();
  MemRefType type = view.getType();
  auto [buffer, offset] = find(view, rank);
  Tensor result = Tensor::zeros(RankedTensorType::get(type.getShape(), type.getElementType()));
  copyStrided(type.getShape(), getElementBytes(type.getElementType()), ranks[rank][buffer].data() + offset,
              *exec::getStrides(type), result.write<char>().data(), getRowMajorStrides(type.getShape()));
  return result;
}

PerRank Buffers::read(Value view) const {
  PerRank tensors;
  for (int64_t rank = 0; rank < getNumRanks(); ++rank)
    tensors.push_back(read(view, rank));
  return tensors;
}

void Buffers::write(Value value, int64_t rank, const Tensor &tensor) {
  auto view = value.getDefiningOp<exec::ViewOp>();
  MemRefType type = view.getType();
  auto [buffer, offset] = find(view, rank);
  copyStrided(type.getShape(), getElementBytes(type.getElementType()), tensor.getBytes().data(),
              getRowMajorStrides(type.getShape()), ranks[rank][buffer].data() + offset, *exec::getStrides(type));
}
