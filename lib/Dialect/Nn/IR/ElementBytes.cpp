//===- ElementBytes.cpp - elements of attributes, as bytes ----------------===//
//
// Only bools are copied: all other attributes have bytes that may be shown as they are.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/ElementBytes.h"

#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include <cstring>

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;

/// A byte each, where MLIR packs eight of them into one.
static ElementBytes readBools(DenseElementsAttr bools) {
  auto bytes = std::make_shared<std::vector<char>>();
  if (bools.isSplat())
    bytes->push_back(bools.getSplatValue<bool>());
  else
    llvm::append_range(*bytes, bools.getValues<bool>());
  return {*bytes, bools.isSplat(), bytes};
}

std::optional<ElementBytes> cleave::nn::readElements(ElementsAttr elements) {
  Type element = elements.getElementType();
  if (!element.isIntOrFloat())
    return std::nullopt;
  ElementBytes found;
  if (auto dense = dyn_cast<DenseElementsAttr>(Attribute(elements))) {
    found = element.isInteger(1) ? readBools(dense) : ElementBytes{dense.getRawData(), dense.isSplat(), nullptr};
  } else if (auto resource = dyn_cast<DenseResourceElementsAttr>(Attribute(elements))) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    if (!blob)
      return std::nullopt;
    found.bytes = blob->getData();
  } else {
    return std::nullopt;
  }
  int64_t wanted = (found.isSplat ? 1 : elements.getNumElements()) * spmd::getElementBytes(element);
  return int64_t(found.bytes.size()) == wanted ? std::optional(found) : std::nullopt;
}

/// All elements are equal if every byte equals the one an element before.
DenseElementsAttr cleave::nn::makeElements(RankedTensorType type, ArrayRef<char> bytes) {
  if (bytes.empty())
    return DenseElementsAttr::get(type, ArrayRef<Attribute>());
  size_t one = spmd::getElementBytes(type.getElementType());
  if (std::memcmp(bytes.data(), bytes.data() + one, bytes.size() - one) == 0)
    bytes = bytes.take_front(one);
  if (type.getElementType().isInteger(1))
    return DenseElementsAttr::get(type, ArrayRef(reinterpret_cast<const bool *>(bytes.data()), bytes.size()));
  return DenseElementsAttr::getFromRawBuffer(type, bytes);
}
