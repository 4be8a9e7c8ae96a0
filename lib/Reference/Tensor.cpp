//===- Tensor.cpp - values of the reference evaluator ---------------------===//
//
// Bytes are zeroed lazily by the operating system where a tensor is large, so that a result costs nothing before its
// kernel writes it.
//
//===----------------------------------------------------------------------===//
#include "cleave/Reference/Tensor.h"

#include "Elements.h"
#include "cleave/Dialect/Nn/IR/ElementBytes.h"
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

/// Fills `result` with copies of `element`.
static void fillWith(Tensor &result, ArrayRef<char> element) {
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
  fillWith(result, element);
  return result;
}

FailureOr<Tensor> Tensor::fromAttr(ElementsAttr attr) {
  auto type = dyn_cast<RankedTensorType>(attr.getType());
  if (!type || !fits(type))
    return failure();
  std::optional<nn::ElementBytes> elements = nn::readElements(attr);
  if (!elements)
    return failure();
  if (elements->isSplat)
    return filled(type, elements->bytes);
  Tensor result = Tensor::zeros(type);
  llvm::copy(elements->bytes, result.write<char>().begin());
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

DenseElementsAttr Tensor::toAttr() const { return nn::makeElements(type, getBytes()); }
