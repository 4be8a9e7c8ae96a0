//===- Packed.cpp - bytes that hold smaller elements ----------------------===//
//
// Elements of 4 and 2 bits are stored in bytes, and what plans name are tensors of these: [k, n / 2]. What they hold is found where
// they are taken apart, behind pins of a plan and lookups of rows:
//
//   bytes ui8 [k, n / 2] ─▶ reshape ─▶ shift ─▶ cast bits, i4 [k, n / 2, 2] ─▶ reshape (─▶ slice ─▶ reshape) i4 [k, n]
//
// and which of them share a scale, where that is applied: in nn.dequantize, or behind a reshape of a dim to [blocks, size].
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Packed.h"

#include "cleave/Dialect/Nn/IR/Ops/Conversion.h"
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"
#include "cleave/Dialect/Nn/IR/Ops/Indexing.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "cleave/Dialect/Spmd/IR/TensorTypes.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;

/// True where several elements share a byte; a bool has one of its own.
static bool isSmall(Value value) {
  Type type = getElementTypeOrSelf(value);
  return type.isIntOrFloat() && type.getIntOrFloatBitWidth() < 8 && !type.isInteger(1);
}

/// Elements behind `value`, as they come out of bytes; fails where a user does something else with the bytes, or two take them apart
/// into different types.
static LogicalResult findElements(Value value, SmallVectorImpl<Value> &found) {
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    bool isCast = isa<CastOp>(user) && cast<CastOp>(user).getBits();
    bool isFirst = use.getOperandNumber() == 0 && isa<ShiftOp, GatherOp>(user);
    // Pins, reshards and collectives pass bytes on.
    bool isMoved = isa<spmd::SpmdDialect>(user->getDialect()) && user->getNumResults() == 1;
    if (!isCast && !isFirst && !isMoved && !isa<ReshapeOp, SliceOp>(user))
      return failure();
    Value result = user->getResult(0);
    if (!isSmall(result)) {
      if (failed(findElements(result, found)))
        return failure();
      continue;
    }
    if (!found.empty() && getElementTypeOrSelf(result) != getElementTypeOrSelf(found.front()))
      return failure();
    found.push_back(result);
  }
  return success();
}

/// Elements of one byte may be left over at the end of a row of bytes.
static bool mayHold(ArrayRef<int64_t> bytes, ArrayRef<int64_t> elements, int64_t perByte) {
  return bytes.size() == elements.size() && bytes.drop_back() == elements.drop_back() &&
         llvm::divideCeil(elements.back(), perByte) == uint64_t(bytes.back());
}

/// The size of blocks that the last dim of `elements` is taken apart into to be scaled; 1 where it is not.
static int64_t findBlock(Value elements) {
  for (Operation *user : elements.getUsers()) {
    auto reshape = dyn_cast<ReshapeOp>(user);
    if (!reshape || getShape(reshape.getResult()).size() != getShape(elements).size() + 1)
      continue;
    ArrayRef<int64_t> apart = getShape(reshape.getResult()), whole = getShape(elements);
    bool isScaled = llvm::all_of(reshape->getUsers(), llvm::IsaPred<CastOp>);
    if (isScaled && apart.drop_back(2) == whole.drop_back() && apart[whole.size() - 1] * apart.back() == whole.back())
      return apart.back();
  }
  return 1;
}

/// Follows elements to where they have their scales; what they look like before, in the dims of the bytes, is the held type.
static void follow(Value elements, ArrayRef<int64_t> bytes, PackedTensor &packed) {
  for (Value value = elements; value;) {
    ArrayRef<int64_t> shape = getShape(value);
    if (mayHold(bytes, shape, packed.perByte))
      packed.type = packed.type.clone(shape);
    bool hasLastDim = !shape.empty() && shape.back() >= packed.type.getShape().back();
    if (int64_t block = hasLastDim ? findBlock(value) : 1; block > 1)
      packed.blocks.back() = block;
    Value next;
    for (Operation *user : value.getUsers()) {
      auto scaled = dyn_cast<DequantizeOp>(user);
      if (scaled && scaled.getBlock() && scaled.getInput() == value && shape.size() == bytes.size())
        packed.blocks[scaled.getDim()] = scaled.getBlock();
      // A row that is not filled is padded to whole blocks.
      if (value.hasOneUse() && isa<ReshapeOp, SliceOp, PadOp, spmd::PinOp>(user))
        next = user->getResult(0);
    }
    value = next;
  }
}

std::optional<PackedTensor> cleave::nn::getPacked(Value bytes) {
  auto type = dyn_cast<RankedTensorType>(bytes.getType());
  SmallVector<Value> found;
  if (!type || type.getRank() == 0 || !type.getElementType().isUnsignedInteger(8) ||
      failed(findElements(bytes, found)) || found.empty())
    return std::nullopt;
  PackedTensor packed;
  Type element = getElementTypeOrSelf(found.front());
  packed.perByte = 8 / element.getIntOrFloatBitWidth();
  SmallVector<int64_t> shape(type.getShape());
  shape.back() *= packed.perByte;
  packed.type = RankedTensorType::get(shape, element);
  packed.blocks.assign(type.getRank(), 1);
  for (Value elements : found)
    follow(elements, type.getShape(), packed);
  return packed;
}

RankedTensorType cleave::nn::getHeldType(Value bytes) {
  std::optional<PackedTensor> packed = getPacked(bytes);
  return packed ? packed->type : RankedTensorType();
}
