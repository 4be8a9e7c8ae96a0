//===- TypeInference.cpp - checks that the op families share --------------===//
//
// Shapes come from files, so sums and products of extents are checked for overflow before they are stored. An op's own
// result type may carry a sharding and the inferred one never does: they are compared by shape and element type.
//
//===----------------------------------------------------------------------===//
#include "TypeInference.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;

std::optional<int64_t> cleave::nn::addChecked(int64_t a, int64_t b) {
  int64_t sum;
  if (llvm::AddOverflow(a, b, sum))
    return std::nullopt;
  return sum;
}

std::optional<int64_t> cleave::nn::mulChecked(int64_t a, int64_t b) {
  int64_t product;
  if (llvm::MulOverflow(a, b, product))
    return std::nullopt;
  return product;
}

std::optional<int64_t> cleave::nn::countElements(ArrayRef<int64_t> shape) {
  // Nothing is there, however large the other extents are.
  if (llvm::is_contained(shape, 0))
    return 0;
  std::optional<int64_t> count = 1;
  for (int64_t extent : shape)
    if (count)
      count = mulChecked(*count, extent);
  return count;
}

/// Aligned at the last dim, as in numpy.
bool cleave::nn::broadcastsTo(ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  if (from.size() > to.size())
    return false;
  return llvm::all_of(llvm::zip(llvm::reverse(from), llvm::reverse(to)), [](auto extents) {
    auto [have, want] = extents;
    return have == want || have == 1;
  });
}

/// Shapes and element types only: a sharding in the result's type is no part of what follows from operands.
LogicalResult cleave::nn::verifyInferredTypes(Operation *op) {
  SmallVector<Type> inferred;
  auto infer = cast<InferTypeOpInterface>(op);
  if (failed(infer.inferReturnTypes(op->getContext(), op->getLoc(), op->getOperands(), op->getRawDictionaryAttrs(),
                                    op->getPropertiesStorage(), op->getRegions(), inferred)))
    return failure();
  for (auto [have, want] : llvm::zip_equal(op->getResultTypes(), inferred))
    if (!haveSameShapes(have, want))
      return op->emitOpError() << "result is " << have << " but operands and attributes give " << want;
  return success();
}

LogicalResult TypeInference::give(ArrayRef<int64_t> shape, Type elementType) {
  assert(llvm::all_of(shape, [](int64_t extent) { return extent >= 0; }) && "a negative extent");
  results.push_back(RankedTensorType::get(shape, elementType));
  return success();
}

LogicalResult TypeInference::giveLike(Value value) { return give(getShape(value), getElementType(value)); }

/// The types of `values`, for error messages.
static std::string describeTypes(ValueRange values) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::interleaveComma(values.getTypes(), os);
  return text;
}

/// C1 shapes broadcast, C2 element types agree: the numbers are those of all elementwise ops.
LogicalResult TypeInference::giveElementwise(ValueRange operands, ValueRange typed) {
  if (failed(checkElementTypes(typed, "C2")))
    return failure();
  auto shape = getBroadcastShape(llvm::map_to_vector(operands, [](Value v) { return getShape(v); }));
  if (!shape)
    return reject("operands ", describeTypes(operands), " do not broadcast together (C1)");
  return give(*shape, getElementType(typed.front()));
}

/// As if it computed numbers, which are then bools.
LogicalResult TypeInference::giveElementwiseTest(ValueRange operands) {
  if (failed(giveElementwise(operands, operands)))
    return failure();
  Type numbers = results.pop_back_val();
  return give(cast<RankedTensorType>(numbers).getShape(), IntegerType::get(numbers.getContext(), 1));
}

LogicalResult TypeInference::checkDim(int64_t dim, Value value, StringRef tag) const {
  int64_t rank = getShape(value).size();
  if (dim >= 0 && dim < rank)
    return success();
  return reject("dim ", dim, " is not in [0, ", rank, ") (", tag, ")");
}

LogicalResult TypeInference::checkElementTypes(ValueRange values, StringRef tag) const {
  for (Value value : values)
    if (getElementType(value) != getElementType(values.front()))
      return reject("operands have different element types ", getElementType(values.front()), " and ",
                    getElementType(value), " (", tag, ")");
  return success();
}

LogicalResult TypeInference::checkVector(StringRef name, Value value, int64_t size, StringRef tag) const {
  if (!value || getShape(value) == ArrayRef<int64_t>(size))
    return success();
  return reject(name, " is ", value.getType(), ", expected a vector of ", size, " elements (", tag, ")");
}
