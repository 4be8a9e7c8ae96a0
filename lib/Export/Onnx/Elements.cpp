//===- Elements.cpp - tensors' elements as ONNX has them ------------------===//
//
// The evaluator's tensors have elements just so. Integers of 4 and 2 bits are bytes in exported graphs, with the same values: runtimes
// have few ops for them, and none of these computes anything but what they stand for.
//
//===----------------------------------------------------------------------===//
#include "Elements.h"

#include "GraphBuilder.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace cleave;

bool cleave::onnx::isSmallInteger(Type elementType) {
  return isa<IntegerType>(elementType) &&
         (elementType.getIntOrFloatBitWidth() == 4 || elementType.getIntOrFloatBitWidth() == 2);
}

RankedTensorType cleave::onnx::getStoredType(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  Type element = tensor.getElementType();
  if (isSmallInteger(element))
    element = IntegerType::get(type.getContext(), 8, cast<IntegerType>(element).getSignedness());
  return RankedTensorType::get(tensor.getShape(), element);
}

void cleave::onnx::encodeSigns(MutableArrayRef<char> bytes, Type elementType) {
  if (!isSmallInteger(elementType) || elementType.isUnsignedInteger())
    return;
  unsigned unused = 8 - elementType.getIntOrFloatBitWidth();
  for (char &byte : bytes)
    byte = static_cast<char>(static_cast<int8_t>(byte << unused) >> unused);
}

std::string cleave::onnx::encodeElements(const reference::Tensor &tensor) {
  std::string bytes(tensor.getBytes().data(), tensor.getBytes().size());
  encodeSigns({bytes.data(), bytes.size()}, tensor.getElementType());
  return bytes;
}

// TensorProto.DataType of onnx.proto.
std::optional<int64_t> cleave::onnx::getDataType(Type elementType) {
  if (auto integer = dyn_cast<IntegerType>(elementType)) {
    bool isUnsigned = integer.isUnsigned();
    switch (integer.getWidth()) {
    case 1:
      return 9;
    case 4:
      return isUnsigned ? 21 : 22;
    case 8:
      return isUnsigned ? 2 : 3;
    case 16:
      return isUnsigned ? 4 : 5;
    case 32:
      return isUnsigned ? 12 : 6;
    case 64:
      return isUnsigned ? 13 : 7;
    default:
      return std::nullopt;
    }
  }
  return llvm::TypeSwitch<Type, std::optional<int64_t>>(elementType)
      .Case([](Float32Type) { return 1; })
      .Case([](Float16Type) { return 10; })
      .Case([](Float64Type) { return 11; })
      .Case([](BFloat16Type) { return 16; })
      .Case([](Float8E4M3FNType) { return 17; })
      .Case([](Float8E4M3FNUZType) { return 18; })
      .Case([](Float8E5M2Type) { return 19; })
      .Case([](Float8E5M2FNUZType) { return 20; })
      .Default(std::nullopt);
}
