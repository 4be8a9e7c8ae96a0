//===- PackedTensor.cpp - elements that share bytes -----------------------===//
//
//   bytes ui8 [k, n / 2] ─▶ reshape [k, n / 2, 1] ─▶ shift right by [0, 4] ─▶ cast bits, i4 [k, n / 2, 2] ─▶ reshape i4 [k, n]
//
// All of these have rules: splitting n splits bytes, and where it would split one of them the bytes stay replicated.
//
//===----------------------------------------------------------------------===//
#include "PackedTensor.h"

#include "Graph/GraphImporter.h"
#include "NodeContext.h"
#include "cleave/Dialect/Nn/IR/NodeLoc.h"
#include "cleave/Dialect/Nn/IR/Ops/Conversion.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;
using reference::Tensor;

int64_t cleave::onnx::countPerByte(const TensorData &data) {
  assert(getElementBits(data.dataType) && "a type without bits");
  return std::max<int64_t>(8 / *getElementBits(data.dataType), 1);
}

Tensor cleave::onnx::toTensor(MLIRContext *context, const TensorData &data) {
  Type elementType = convertElementType(context, data.dataType);
  // A copy: elements in a file need not be aligned.
  Tensor tensor = Tensor::zeros(RankedTensorType::get(data.shape, elementType));
  int64_t perByte = countPerByte(data);
  if (perByte == 1) {
    llvm::copy(data.bytes, tensor.write<char>().begin());
    return tensor;
  }
  int64_t bits = 8 / perByte;
  for (auto [index, element] : llvm::enumerate(tensor.write<uint8_t>()))
    element = uint8_t(data.bytes[index / perByte]) >> (index % perByte * bits) & ((1 << bits) - 1);
  return tensor;
}

TensorData cleave::onnx::toBytes(TensorData data) {
  int64_t perByte = countPerByte(data);
  if (!data.shape.empty() && data.shape.back() % perByte == 0)
    data.shape.back() /= perByte;
  else
    data.shape = {int64_t(data.bytes.size())};
  data.dataType = UINT8;
  return data;
}

/// By how much a byte is shifted for each element in it: 0, 4.
static Tensor makeShifts(Type byte, int64_t perByte) {
  Tensor shifts = Tensor::zeros(RankedTensorType::get(perByte, byte));
  for (auto [index, by] : llvm::enumerate(shifts.write<uint8_t>()))
    by = index * (8 / perByte);
  return shifts;
}

Value cleave::onnx::unpack(OpBuilder &builder, Location last, Value bytes, RankedTensorType type, int64_t perByte) {
  Location loc = nn::getInnerLoc(last);
  Type byte = builder.getIntegerType(8, /*isSigned=*/false);
  SmallVector<int64_t> apart(cast<RankedTensorType>(bytes.getType()).getShape());
  apart.push_back(1);
  Value shifted = nn::ReshapeOp::create(builder, loc, RankedTensorType::get(apart, byte), bytes);
  Tensor shifts = makeShifts(byte, perByte);
  Value by = nn::ConstantOp::create(builder, loc, shifts.getType(), shifts.toAttr());
  apart.back() = perByte;
  shifted = nn::ShiftOp::create(builder, loc, RankedTensorType::get(apart, byte), shifted, by, /*right=*/true);
  Value elements = nn::CastOp::create(builder, loc, RankedTensorType::get(apart, type.getElementType()), shifted,
                                      /*saturate=*/false, nn::Rounding::Nearest, /*bits=*/true);
  int64_t count = type.getNumElements(), padded = cast<RankedTensorType>(bytes.getType()).getNumElements() * perByte;
  if (count != padded) {
    elements = nn::ReshapeOp::create(builder, loc, RankedTensorType::get(padded, type.getElementType()), elements);
    elements = nn::SliceOp::create(builder, loc, RankedTensorType::get(count, type.getElementType()), elements,
                                   SmallVector<int64_t>{0}, SmallVector<int64_t>{count}, SmallVector<int64_t>{1});
  }
  return nn::ReshapeOp::create(builder, last, type, elements);
}

Value cleave::onnx::unpackBits(NodeContext &node, Value bytes, int64_t bits) {
  if (!bytes || node.failed() || bits == 8)
    return bytes;
  Ints shape(NodeContext::shape(bytes)), apart(shape);
  apart.push_back(8 / bits), shape.back() *= 8 / bits;
  Value shifts = node.constant(makeShifts(NodeContext::elementType(bytes), 8 / bits));
  Value shifted = node.shiftRight(node.unsqueeze(bytes, {NodeContext::rank(bytes)}), shifts);
  Type small = node.getBuilder().getIntegerType(bits, /*isSigned=*/false);
  Value elements = node.createTyped<nn::CastOp>(RankedTensorType::get(apart, small), shifted, /*saturate=*/false,
                                                nn::Rounding::Nearest, /*bits=*/true);
  return node.reshape(elements, shape);
}
