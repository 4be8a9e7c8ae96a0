//===- Operand.cpp - what the sides of a tile are made of -----------------===//
//
// A view (View.h) says where an element lies in memory. What lies there as f16 or bf16 is multiplied so, if the other side is, too:
// a product of two such numbers is exact in f32.
//
//===----------------------------------------------------------------------===//
#include "Operand.h"

#include <numeric>

using namespace mlir;
using namespace cleave::codegen;

DeviceOperands::DeviceOperands(DeviceEmitter &e, Value first, Value second, Type result) : e(e) {
  for (auto [operand, value] : llvm::zip_equal(operands, std::array{first, second})) {
    operand = {value, {}, View::get(value), getElementType(value)};
    bool hasPanels = llvm::any_of(operand.view.dims, [](const ViewDim &dim) { return dim.width != 0; });
    operand.buffer = hasPanels ? Value() : e.getBuffer(operand.view.base);
    if (operand.buffer)
      operand.stored = getElementType(operand.view.base);
  }
  bool areHalves = ElementBuilder::isHalf(operands[0].stored) && operands[0].stored == operands[1].stored;
  element = areHalves ? operands[0].stored : ElementBuilder::getComputeType(result);
}

int64_t DeviceOperands::getStride(unsigned side, size_t dim) const {
  const Operand &operand = operands[side];
  return operand.buffer ? operand.view.dims[dim].stride : 0;
}

bool DeviceOperands::isRowMajor(unsigned side) const {
  const Operand &operand = operands[side];
  ArrayRef<int64_t> shape = getShape(operand.value);
  int64_t stride = 1;
  bool isInOrder = operand.buffer && operand.view.offset == 0;
  for (size_t dim = shape.size(); isInOrder && dim-- > 0; stride *= shape[dim])
    isInOrder = shape[dim] == 1 || operand.view.dims[dim].stride == stride;
  return isInOrder;
}

std::optional<Index> DeviceOperands::find(const Operand &operand, const Point &point) const {
  if (!operand.buffer)
    return std::nullopt;
  Index at{e.places.number(operand.view.offset), 0};
  for (auto [index, dim] : llvm::zip_equal(point, operand.view.dims)) {
    at.base = e.places.add(at.base, e.places.mul(index.base, dim.stride));
    at.lane += index.lane * dim.stride;
  }
  return at;
}

/// What is pulled and not half of a product of halves is widened.
Value DeviceOperands::load(unsigned side, const Point &point) {
  const Operand &operand = operands[side];
  bool isNarrower = operand.stored == element && getElementType(operand.value) != element;
  std::optional<Index> at = isNarrower ? find(operand, point) : std::nullopt;
  if (!at) {
    Value value = e.eval(operand.value, point);
    return getElementType(operand.value) == element ? value : e.elements.widen(value);
  }
  if (at->lane == 0 && e.getLanes() > 1)
    return e.splat(e.asScalar([&] { return e.load(operand.buffer, element, *at); }));
  return e.load(operand.buffer, element, *at);
}

std::optional<TileSource::Location> DeviceOperands::locate(unsigned side, const Point &point) {
  const Operand &operand = operands[side];
  std::optional<Index> at = operand.stored == element ? find(operand, point) : std::nullopt;
  return at && at->lane == 1 ? std::optional(TileSource::Location{operand.buffer, at->base, {}}) : std::nullopt;
}

Value DeviceOperands::loadRowMajor(unsigned side, Value place) {
  assert(isRowMajor(side) && "an operand in another order");
  const Operand &operand = operands[side];
  Value value = e.load(operand.buffer, operand.stored, {place, 1});
  return operand.stored == element ? value : e.elements.widen(value);
}

std::optional<TileSource::Location> DeviceOperands::locateRowMajor(unsigned side, Value place) {
  assert(isRowMajor(side) && "an operand in another order");
  const Operand &operand = operands[side];
  return operand.stored == element ? std::optional(TileSource::Location{operand.buffer, place, {}}) : std::nullopt;
}

int64_t cleave::codegen::getStoreLanes(Operation *op, int64_t together) {
  int64_t bits = 32;
  for (Value result : op->getBlock()->getTerminator()->getOperands())
    bits = std::min<int64_t>(bits, ElementBuilder::getStoredType(getElementType(result)).getIntOrFloatBitWidth());
  return std::gcd(together, bits == 32 ? 4 : 8);
}
