//===- MatmulDims.cpp - contractions that are matrix products -------------===//
//
// A letter of an einsum is of one of four kinds, by which of the three terms it stands in; in one term only, it is of none,
// and the contraction no product of two matrices. Nor is one of operands without elements: there is nothing to multiply.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Exec/IR/Exec.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

static ArrayRef<int64_t> getShape(Type type) { return cast<RankedTensorType>(type).getShape(); }

std::optional<MatmulDims> MatmulDims::get(StringRef equation, TypeRange operands) {
  std::optional<nn::EinsumTerms> terms = nn::parseEinsum(equation);
  if (!terms || terms->inputs.size() != 2 || operands.size() != 2 ||
      !llvm::all_of(operands,
                    [](Type type) { return isa<FloatType>(cast<RankedTensorType>(type).getElementType()); }) ||
      llvm::any_of(operands, [](Type type) { return llvm::is_contained(getShape(type), 0); }))
    return std::nullopt;
  StringRef lhs = terms->inputs[0], rhs = terms->inputs[1], result = terms->result;
  MatmulDims dims;
  for (char letter : lhs) {
    size_t inLhs = lhs.find(letter), inRhs = rhs.find(letter), inResult = result.find(letter);
    if (inRhs == StringRef::npos && inResult == StringRef::npos)
      return std::nullopt;
    if (inRhs != StringRef::npos && getShape(operands[0])[inLhs] != getShape(operands[1])[inRhs])
      return std::nullopt;
    OperandDims &kind = inRhs == StringRef::npos ? dims.rows : inResult == StringRef::npos ? dims.depth : dims.batch;
    kind.lhs.push_back(inLhs);
    if (inRhs != StringRef::npos)
      kind.rhs.push_back(inRhs);
    if (inResult != StringRef::npos)
      kind.result.push_back(inResult);
  }
  for (auto [place, letter] : llvm::enumerate(rhs)) {
    if (lhs.contains(letter))
      continue;
    if (!result.contains(letter))
      return std::nullopt;
    dims.columns.rhs.push_back(place);
    dims.columns.result.push_back(result.find(letter));
  }
  return dims;
}
