//===- Contraction.cpp - the einsum ---------------------------------------===//
//
// A letter stands for one extent, in whatever terms it occurs; an extent of 1 broadcasts to it. So sizes are collected
// letter by letter over all operands, and the result's shape is read off its term. What has a letter twice in one term
// (a diagonal) is taken apart by the importer and refused here.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Contraction.h"
#include "TypeInference.h"
#include "cleave/Dialect/Nn/IR/Composer.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;

/// C4 and C5: no letter occurs twice in `term`. Returns the first that does.
static std::optional<char> findRepeated(StringRef term) {
  for (auto [index, letter] : llvm::enumerate(term))
    if (term.drop_front(index + 1).contains(letter))
      return letter;
  return std::nullopt;
}

static LogicalResult checkSyntax(const std::optional<EinsumTerms> &terms, StringRef equation, ValueRange inputs,
                                 TypeInference &infer) {
  if (!terms)
    return infer.reject("equation \"", equation, "\" is not a list of letter terms, '->' and a result term (C1)");
  if (terms->inputs.size() != inputs.size())
    return infer.reject("equation \"", equation, "\" has ", terms->inputs.size(), " operand terms but there are ",
                        inputs.size(), " operands (C1)");
  for (auto [index, term, input] : llvm::enumerate(terms->inputs, inputs)) {
    if (term.size() != getShape(input).size())
      return infer.reject("term \"", term, "\" of operand ", index, " has ", term.size(),
                          " letters but the operand is ", input.getType(), " (C2)");
    if (auto letter = findRepeated(term))
      return infer.reject("letter '", Twine(*letter), "' occurs twice in term \"", term, "\" (C5)");
  }
  if (auto letter = findRepeated(terms->result))
    return infer.reject("letter '", Twine(*letter), "' occurs twice in result term \"", terms->result, "\" (C4)");
  return infer.checkElementTypes(inputs, "C6");
}

LogicalResult EinsumOp::inferTypes(Adaptor op, TypeInference &infer) {
  std::optional<EinsumTerms> terms = parseEinsum(op.getEquation());
  if (failed(checkSyntax(terms, op.getEquation(), op.getInputs(), infer)))
    return failure();
  llvm::SmallDenseMap<char, int64_t> sizes;
  for (auto [term, input] : llvm::zip_equal(terms->inputs, op.getInputs()))
    for (auto [letter, extent] : llvm::zip_equal(term, getShape(input))) {
      int64_t &size = sizes.try_emplace(letter, extent).first->second;
      if (size == 1)
        size = extent;
      else if (extent != 1 && extent != size)
        return infer.reject("letter '", Twine(letter), "' has sizes ", size, " and ", extent, " (C3)");
    }
  SmallVector<int64_t> shape;
  for (char letter : terms->result) {
    auto it = sizes.find(letter);
    if (it == sizes.end())
      return infer.reject("result letter '", Twine(letter), "' occurs in no operand (C4)");
    shape.push_back(it->second);
  }
  return infer.give(shape, getElementType(op.getInputs().front()));
}

int64_t EinsumOp::countSummed(unsigned operand) {
  EinsumTerms terms = *parseEinsum(getEquation());
  int64_t count = 1;
  for (auto [letter, extent] : llvm::zip_equal(terms.inputs[operand], getShape(getInputs()[operand])))
    count *= terms.result.contains(letter) ? 1 : extent;
  return count;
}

/// A letter more. What all share does not have it, so it is read once for all of them.
Value EinsumOp::stack(Composer &compose, ArrayRef<Value> operands, ArrayRef<bool> isStacked, int64_t) {
  StringRef letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  size_t free = letters.find_if([&](char letter) { return !getEquation().contains(letter); });
  if (free == StringRef::npos)
    return {};
  EinsumTerms terms = *parseEinsum(getEquation());
  SmallVector<std::string> read;
  for (auto [term, hasDim] : llvm::zip_equal(terms.inputs, isStacked))
    read.push_back((hasDim ? std::string(1, letters[free]) : "") + term.str());
  return compose.einsum(operands, llvm::join(read, ",") + "->" + letters[free] + terms.result.str());
}
