//===- Tensor.cpp - values of the reference evaluator ---------------------===//
//
// Bytes are zeroed lazily by the operating system where a tensor is large, so that a result costs nothing before its
// kernel writes it.
//
//===----------------------------------------------------------------------===//
#include "cleave/Reference/Tensor.h"

#include "Elements.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/Support/ErrorHandling.h"
#include <cstdlib>
#include <cstring>
#include <sys/resource.h>
#include <unistd.h>

using namespace mlir;
using namespace cleave::reference;

int64_t cleave::reference::getElementBytes(Type elementType) {
  std::optional<ElementKind> kind = getElementKind(elementType);
  return kind ? dispatchStorage(*kind, [](auto tag) { return int64_t(sizeof(typename decltype(tag)::type)); }) : 0;
}

/// What the machine has, or the process may take where that is less; not what is free now, which changes.
double cleave::reference::getMemory() {
  double bytes = double(sysconf(_SC_PHYS_PAGES)) * double(sysconf(_SC_PAGESIZE));
  for (auto resource : {RLIMIT_DATA, RLIMIT_AS}) {
    rlimit limit{};
    if (getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
      bytes = std::min(bytes, double(limit.rlim_cur));
  }
  return bytes;
}

bool Tensor::fits(RankedTensorType type) {
  static const double memory = getMemory();
  // As a double: a product of extents may overflow any integer.
  double bytes = getElementBytes(type.getElementType());
  if (bytes == 0 || !type.hasStaticShape())
    return false;
  for (int64_t extent : type.getShape())
    bytes *= double(extent);
  return bytes <= memory;
}

Tensor Tensor::zeros(RankedTensorType type) {
  assert(fits(type) && "a tensor that does not fit into memory");
  Tensor result;
  result.isOwn = true;
  result.type = RankedTensorType::get(type.getShape(), type.getElementType());
  result.size = type.getNumElements() * getElementBytes(type.getElementType());
  void *bytes = std::calloc(std::max<size_t>(result.size, 1), 1);
  if (!bytes)
    llvm::report_bad_alloc_error("no memory for a tensor of the evaluator");
  result.data = static_cast<char *>(bytes);
  result.owner = std::shared_ptr<const void>(bytes, std::free);
  return result;
}

/// The elements of a packed or splat attribute of bool.
static Tensor fromBoolAttr(RankedTensorType type, DenseElementsAttr attr) {
  Tensor result = Tensor::zeros(type);
  if (attr.isSplat())
    std::fill_n(result.write<bool>().data(), result.getNumElements(), attr.getSplatValue<bool>());
  else
    llvm::copy(attr.getValues<bool>(), result.write<bool>().begin());
  return result;
}

/// Fills `result` with copies of `element`.
static void fill(Tensor &result, ArrayRef<char> element) {
  MutableArrayRef<char> bytes = result.write<char>();
  if (bytes.empty())
    return;
  std::memcpy(bytes.data(), element.data(), element.size());
  // What is there is doubled, so that most of the work is done by few large copies.
  for (size_t done = element.size(); done < bytes.size(); done *= 2)
    std::memcpy(bytes.data() + done, bytes.data(), std::min(done, bytes.size() - done));
}

Tensor Tensor::filled(RankedTensorType type, ArrayRef<char> element) {
  assert(int64_t(element.size()) == reference::getElementBytes(type.getElementType()) && "not one element");
  Tensor result = zeros(type);
  fill(result, element);
  return result;
}

/// Attributes hold elements in three ways: bool as bits, equal elements as one, all others as they are in memory.
FailureOr<Tensor> Tensor::fromAttr(ElementsAttr attr) {
  auto type = dyn_cast<RankedTensorType>(attr.getType());
  if (!type || !fits(type))
    return failure();
  size_t elementBytes = getElementBytes(type.getElementType());
  ArrayRef<char> bytes;
  bool isSplat = false;
  if (auto dense = dyn_cast<DenseElementsAttr>(Attribute(attr))) {
    if (type.getElementType().isInteger(1))
      return fromBoolAttr(type, dense);
    bytes = dense.getRawData();
    isSplat = dense.isSplat();
  } else if (auto resource = dyn_cast<DenseResourceElementsAttr>(Attribute(attr))) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    if (!blob)
      return failure();
    bytes = blob->getData();
  } else {
    return failure();
  }
  Tensor result = Tensor::zeros(type);
  if (isSplat && bytes.size() == elementBytes)
    fill(result, bytes);
  else if (bytes.size() == result.size)
    llvm::copy(bytes, result.write<char>().begin());
  else
    return failure();
  return result;
}

/// Shares the bytes with whoever owns them, unless they lie where no element may.
Tensor Tensor::fromBytes(RankedTensorType type, ArrayRef<char> bytes, std::shared_ptr<const void> owner) {
  int64_t elementBytes = std::max<int64_t>(getElementBytes(type.getElementType()), 1);
  assert(int64_t(bytes.size()) == type.getNumElements() * elementBytes && "bytes of another type");
  if (reinterpret_cast<uintptr_t>(bytes.data()) % elementBytes != 0) { // weights inside a model are not aligned
    Tensor copy = Tensor::zeros(type);
    llvm::copy(bytes, copy.write<char>().begin());
    return copy;
  }
  Tensor result;
  result.type = RankedTensorType::get(type.getShape(), type.getElementType());
  result.data = bytes.data();
  result.size = bytes.size();
  result.owner = std::move(owner);
  return result;
}

Tensor Tensor::reshaped(ArrayRef<int64_t> shape) const {
  Tensor result = *this;
  result.type = RankedTensorType::get(shape, getElementType());
  return result;
}

DenseElementsAttr Tensor::toAttr() const {
  if (getNumElements() == 0)
    return DenseElementsAttr::get(type, ArrayRef<Attribute>());
  size_t elementBytes = getElementBytes(getElementType());
  // All elements are equal if every byte equals the one an element before.
  bool isSplat = std::memcmp(data, data + elementBytes, size - elementBytes) == 0;
  if (getElementType().isInteger(1))
    return DenseElementsAttr::get(type, isSplat ? as<bool>().take_front() : as<bool>());
  return DenseElementsAttr::getFromRawBuffer(type, getBytes().take_front(isSplat ? elementBytes : size));
}
