//===- Data.cpp - lowerings of constants and iota -------------------------===//
//
// A constant of one value is an immediate; others are tables in the object.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "Emitter.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;

/// An element of an attribute in its held type: small ones are bytes.
static TypedAttr hold(Attribute element, Type type) {
  if (auto integer = dyn_cast<IntegerAttr>(element))
    return IntegerAttr::get(type, integer.getValue().zext(type.getIntOrFloatBitWidth()));
  if (type.isInteger(8))
    return IntegerAttr::get(type, cast<FloatAttr>(element).getValue().bitcastToAPInt().zext(8));
  return FloatAttr::get(type, cast<FloatAttr>(element).getValue());
}

/// Bools are widened to bytes in tables, as they are in buffers.
static Value pullConstant(Emitter &e, nn::ConstantOp op, const Point &point) {
  Type element = getElementType(op.getResult()), held = ElementBuilder::getHeldType(element);
  auto numbers = dyn_cast<DenseElementsAttr>(op.getValue());
  if (!numbers) { // a resource
    SmallVector<Attribute> copied(op.getValue().getValues<Attribute>());
    numbers = DenseElementsAttr::get(cast<ShapedType>(op.getValue().getType()), copied);
  }
  if (numbers.isSplat())
    return e.splat(e.elements.constant(hold(numbers.getSplatValue<Attribute>(), held)));
  Type stored = ElementBuilder::getStoredType(element);
  SmallVector<Attribute> elements;
  for (Attribute number : numbers.getValues<Attribute>())
    if (element.isBF16())
      elements.push_back(IntegerAttr::get(stored, cast<FloatAttr>(number).getValue().bitcastToAPInt()));
    else
      elements.push_back(hold(number, stored));
  auto type = RankedTensorType::get({numbers.getNumElements()}, stored);
  Value table = e.makeTable(DenseElementsAttr::get(type, elements));
  return e.load(table, element, e.places.linearize(point, getShape(op.getResult())));
}

/// The number is made as an i64, and converted.
static Value pullIota(Emitter &e, nn::IotaOp op, const Point &point) {
  Index at = point.empty() ? Index{e.places.number(0)} : point[op.getDim()];
  Type i64 = e.b.getI64Type();
  Value place = e.splat(arith::IndexCastOp::create(e.b, e.loc, i64, at.base));
  if (e.getLanes() > 1)
    place = e.elements.add(place, e.getLaneNumbers(at.lane));
  Value number = e.elements.fma(place, e.elements.integer(place.getType(), op.getStep()),
                                e.elements.integer(place.getType(), op.getStart()));
  return e.elements.convert(number, i64, getElementType(op.getResult()));
}

void cleave::codegen::registerData(LoweringTable &table) {
  table.addPull<nn::ConstantOp>(pullConstant);
  table.addPull<nn::IotaOp>(pullIota);
}
