//===- Nn.cpp - the nn dialect --------------------------------------------===//
//
// Attributes with lists of strings copy these into the context: what a parser or an importer hands in may be gone by
// the time the attribute is read.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"

#include "GeneratedOps.h"
#include "cleave/Dialect/Nn/IR/Control.h"
#include "cleave/Dialect/Nn/IR/Fit.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace cleave::nn;

#include "cleave/Dialect/Nn/IR/NnDialect.cpp.inc"
#include "cleave/Dialect/Nn/IR/NnEnums.cpp.inc"
#include "cleave/Dialect/Nn/IR/NnInterfaces.cpp.inc"

//===----------------------------------------------------------------------===//
// Strings of attributes live in the context
//===----------------------------------------------------------------------===//

/// The strings and the list of them, both in the context.
static ArrayRef<StringRef> copyNames(AttributeStorageAllocator &allocator, ArrayRef<StringRef> names) {
  auto copies = llvm::map_to_vector(names, [&](StringRef name) { return allocator.copyInto(name); });
  return allocator.copyInto(ArrayRef<StringRef>(copies));
}

static ArrayRef<ArrayRef<StringRef>> copyNames(AttributeStorageAllocator &allocator,
                                               ArrayRef<ArrayRef<StringRef>> lists) {
  auto copies = llvm::map_to_vector(lists, [&](ArrayRef<StringRef> names) { return copyNames(allocator, names); });
  return allocator.copyInto(ArrayRef<ArrayRef<StringRef>>(copies));
}

#define GET_ATTRDEF_CLASSES
#include "cleave/Dialect/Nn/IR/NnAttrs.cpp.inc"

void NnDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "cleave/Dialect/Nn/IR/NnAttrs.cpp.inc"
      >();
#define CLEAVE_NN_FAMILY(family) addOpsOf##family(*this);
#include "cleave/Dialect/Nn/IR/NnFamilies.inc"
  addOperations<LoopOp, YieldOp>();
  addProgram();
}

Operation *NnDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location loc) {
  auto elements = dyn_cast<ElementsAttr>(value);
  return elements ? ConstantOp::create(builder, loc, type, elements) : nullptr;
}

Slope cleave::nn::getDefaultSlope(Operation *op) {
  return op->hasTrait<KeepsNumbers>() ? Slope::Constant : Slope::OfOperands;
}

bool cleave::nn::isReadBySlope(Operation *op, Slope slope, unsigned operand) {
  return slope == Slope::OfOperands ||
         (slope == Slope::Constant && !isa<FloatType>(getElementTypeOrSelf(op->getOperand(operand))));
}

bool cleave::nn::isData(Operation *op) {
  auto formed = dyn_cast_if_present<FormOpInterface>(op);
  return formed && formed.getForm() == Form::Data;
}

unsigned cleave::nn::countFactors(Operation *op) {
  auto formed = dyn_cast<FormOpInterface>(op);
  if (!formed || (formed.getForm() != Form::Contraction && formed.getForm() != Form::Convolution))
    return 0;
  return formed.getForm() == Form::Contraction ? op->getNumOperands() : 2;
}

int64_t cleave::nn::countRows(Operation *op, ArrayRef<int64_t> dims) {
  int64_t rows = 1;
  for (auto [dim, extent] : llvm::enumerate(cast<RankedTensorType>(op->getOperand(0).getType()).getShape()))
    rows *= llvm::is_contained(dims, int64_t(dim)) ? 1 : extent;
  return rows;
}

SmallVector<int64_t> cleave::nn::getDimsFrom(Value value, int64_t dim) {
  return llvm::to_vector(llvm::seq(dim, cast<RankedTensorType>(value.getType()).getRank()));
}

bool cleave::nn::haveSameShapes(TypeRange lhs, TypeRange rhs) {
  return llvm::all_of_zip(lhs, rhs,
                          [](Type a, Type b) {
                            auto x = dyn_cast<RankedTensorType>(a), y = dyn_cast<RankedTensorType>(b);
                            return x && y && x.getShape() == y.getShape() && x.getElementType() == y.getElementType();
                          }) &&
         lhs.size() == rhs.size();
}

std::optional<SmallVector<int64_t>> cleave::nn::getBroadcastShape(ArrayRef<ArrayRef<int64_t>> shapes) {
  SmallVector<int64_t> result;
  for (ArrayRef<int64_t> shape : shapes) {
    if (shape.size() > result.size())
      result.insert(result.begin(), shape.size() - result.size(), 1);
    for (auto [extent, merged] : llvm::zip(llvm::reverse(shape), llvm::reverse(result))) {
      if (merged == 1)
        merged = extent;
      else if (extent != 1 && extent != merged)
        return std::nullopt;
    }
  }
  return result;
}

std::optional<EinsumTerms> cleave::nn::parseEinsum(StringRef equation) {
  auto [left, right] = equation.split("->");
  if (!equation.contains("->"))
    return std::nullopt;
  EinsumTerms terms;
  left.split(terms.inputs, ',');
  terms.result = right;
  auto isWord = [](StringRef term) { return llvm::all_of(term, [](char c) { return llvm::isAlpha(c); }); };
  if (!llvm::all_of(terms.inputs, isWord) || !isWord(right))
    return std::nullopt;
  return terms;
}

/// What is filled up with is 0; nobody may count on that.
Value cleave::nn::fit(OpBuilder &builder, Location loc, Value value, ArrayRef<int64_t> shape) {
  SmallVector<int64_t> kept(cast<RankedTensorType>(value.getType()).getShape()), zeros(shape.size(), 0),
      ones(shape.size(), 1), missing;
  for (auto [extent, wanted] : llvm::zip_equal(kept, shape)) {
    missing.push_back(std::max<int64_t>(wanted - extent, 0));
    extent = std::min(extent, wanted);
  }
  value = builder.createOrFold<SliceOp>(loc, value, zeros, kept, ones);
  if (kept == shape)
    return value;
  return PadOp::create(builder, loc, PadMode::Constant, value, /*value=*/Value(), zeros, missing);
}
