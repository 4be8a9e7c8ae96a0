//===- Library.cpp - commands with a library behind them ------------------===//
//
// A library command keeps no meaning of its own: it is what one op of nn is. That op is made for a moment, in no block,
// where somebody asks whether the command is legal or what it computes.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Exec/IR/Exec.h"

#include "mlir/IR/Verifier.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

OwningOpRef<Operation *> cleave::exec::createMeaning(Operation *op) {
  OperationState state(op->getLoc(), cast<LibraryOpInterface>(op).getMeaning(), op->getOperands(), op->getResultTypes(),
                       op->getAttrs());
  return Operation::create(state);
}

LogicalResult cleave::exec::verifyMeaning(Operation *op) {
  OwningOpRef<Operation *> meaning = createMeaning(op);
  return verify(*meaning);
}

//===----------------------------------------------------------------------===//
// Dims of a matrix product
//===----------------------------------------------------------------------===//

static ArrayRef<int64_t> getShape(Type type) { return cast<RankedTensorType>(type).getShape(); }

std::optional<MatmulDims> MatmulDims::get(StringRef equation, TypeRange operands) {
  std::optional<nn::EinsumTerms> terms = nn::parseEinsum(equation);
  if (!terms || terms->inputs.size() != 2 || operands.size() != 2 ||
      !llvm::all_of(operands, [](Type type) { return isa<FloatType>(cast<RankedTensorType>(type).getElementType()); }))
    return std::nullopt;
  StringRef lhs = terms->inputs[0], rhs = terms->inputs[1], result = terms->result;
  MatmulDims dims;
  for (char letter : lhs) {
    size_t inLhs = lhs.find(letter), inRhs = rhs.find(letter), inResult = result.find(letter);
    if (inRhs == StringRef::npos && inResult == StringRef::npos)
      return std::nullopt;
    if (inRhs != StringRef::npos && getShape(operands[0])[inLhs] != getShape(operands[1])[inRhs])
      return std::nullopt;
    Places &kind = inRhs == StringRef::npos ? dims.rows : inResult == StringRef::npos ? dims.depth : dims.batch;
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

LogicalResult MatmulOp::verify() {
  if (getInputs().size() != 2)
    return emitOpError() << "has " << getInputs().size() << " operands, expected 2 (C2)";
  if (!isa<FloatType>(cast<RankedTensorType>(getInputs()[0].getType()).getElementType()))
    return emitOpError() << "multiplies " << getInputs()[0].getType() << ", which is not of floats (C2)";
  if (!nn::parseEinsum(getEquation()) || MatmulDims::get(getEquation(), getInputs().getTypes()))
    return success(); // a broken equation is told by nn.einsum
  return emitOpError() << "equation '" << getEquation() << "' is no matrix product: a letter is in one term only (C3), "
                       << "or has two sizes (C4)";
}
