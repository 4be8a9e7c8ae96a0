//===- Attention.cpp - regions that are one attention ---------------------===//
//
// Attention is all that the region computes: operands were only moved, heads among them, and so is the result. Libraries know
// it on halves, with weights rounded to their type between the products, as our own kernel rounds them, and want the
// components of a head side by side; what the mask is made of, bits or numbers of another type, only a kernel can ask.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Attention.h"
#include "../Elements.h"
#include "../View.h"
#include "Epilogue.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;

/// What the heads of a library hold at most, and a multiple of what.
static constexpr int64_t kMostHeadSize = 256, kHeadSizeStep = 8;

/// With the dims of the op, whatever order the buffer has.
static LibraryTensor makeTensor(const Placed &placed, ArrayRef<int64_t> shape) {
  return {placed.buffer, llvm::to_vector(shape), placed.strides};
}

/// The mask as four dims; where it steps over nothing it has one element.
static std::optional<LibraryTensor> makeMask(Value mask, Type element, Block &region) {
  std::optional<Placed> placed = placeOperand(mask);
  if (!placed)
    return std::nullopt;
  Type own = getElementType(region.getArgument(placed->buffer));
  if (own != element && !own.isF32())
    return std::nullopt;
  LibraryTensor tensor{placed->buffer, SmallVector<int64_t>(4, 1), SmallVector<int64_t>(4, 1)};
  ArrayRef<int64_t> shape = getShape(mask);
  for (size_t dim = 0, lead = 4 - shape.size(); dim < shape.size(); ++dim)
    if (placed->strides[dim] != 0 && shape[dim] != 1) {
      tensor.shape[lead + dim] = shape[dim];
      tensor.strides[lead + dim] = placed->strides[dim];
    }
  return tensor.shape[3] == 1 || tensor.strides[3] == 1 ? std::optional(tensor) : std::nullopt;
}

/// Rows of a size that engines load as a whole.
static bool isHead(const LibraryTensor &tensor) {
  int64_t size = tensor.shape.back();
  return size <= kMostHeadSize && size % kHeadSizeStep == 0 && tensor.strides.back() == 1;
}

std::optional<LibraryAttention> cleave::codegen::findAttention(Block &region) {
  auto attention = findOnly<nn::AttentionOp>(region);
  if (!attention || !attention.getSoftcap().isZero())
    return std::nullopt;
  // Sliding windows are in no call that the runtime makes: our own kernel skips what they hide.
  if (attention.getLeft() || attention.getRight())
    return std::nullopt;
  std::optional<Placed> query = placeOperand(attention.getQuery()), key = placeOperand(attention.getKey()),
                        value = placeOperand(attention.getValue());
  if (!areFactors(query, key, region, attention.getResult()) ||
      !areFactors(query, value, region, attention.getResult()))
    return std::nullopt;
  std::optional<Epilogue> epilogue = Epilogue::find(region, attention);
  Type element = getElementType(region.getArgument(query->buffer));
  if (!ElementBuilder::isHalf(element) || !epilogue || !epilogue->added.empty() || epilogue->scale != 1 ||
      epilogue->activation != LibraryActivation::None ||
      getElementType(region.getTerminator()->getOperand(0)) != element)
    return std::nullopt;
  LibraryAttention made;
  made.query = makeTensor(*query, getShape(attention.getQuery()));
  made.key = makeTensor(*key, getShape(attention.getKey()));
  made.value = makeTensor(*value, getShape(attention.getValue()));
  made.result = makeTensor(epilogue->result, getShape(attention.getResult()));
  made.scale = attention.getScale().convertToDouble();
  made.isCausal = attention.getCausal();
  int64_t offset = made.key.shape[2] - made.query.shape[2];
  if (made.key.shape[2] == 0 || (made.isCausal && (offset < 0 || int64_t(attention.getCausalOffset()) != offset)))
    return std::nullopt;
  for (const LibraryTensor *tensor : {&made.query, &made.key, &made.value, &made.result})
    if (!isHead(*tensor))
      return std::nullopt;
  if (Value mask = attention.getMask()) {
    made.mask = makeMask(mask, element, region);
    if (!made.mask)
      return std::nullopt;
  }
  return made;
}

SmallVector<const LibraryTensor *> LibraryAttention::getTensors() const {
  SmallVector<const LibraryTensor *> tensors{&query, &key, &value};
  if (mask)
    tensors.push_back(&*mask);
  tensors.push_back(&result);
  return tensors;
}
