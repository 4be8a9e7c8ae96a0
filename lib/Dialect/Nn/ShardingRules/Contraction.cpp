//===- Contraction.cpp - an einsum is its own rule ------------------------===//
//
// One factor per letter. A letter of the result is parallel; a letter that is summed over leaves partial sums. The op
// is linear in each operand.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Contraction.h"
#include "Rules.h"
#include "cleave/Dialect/Nn/IR/GradientOf.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;
using namespace cleave::spmd;

namespace {
/// Letters in the order in which operands mention them, with their extents (dims of size 1 repeat).
using Letters = llvm::MapVector<char, int64_t>;
} // namespace

static Letters collectLetters(const EinsumTerms &terms, OperandRange inputs) {
  Letters letters;
  for (auto [term, input] : llvm::zip_equal(terms.inputs, inputs))
    for (auto [letter, extent] : llvm::zip_equal(term, getShape(input))) {
      int64_t &size = letters.try_emplace(letter, extent).first->second;
      size = size == 1 ? extent : size;
    }
  return letters;
}

ShardingRule EinsumOp::getShardingRule() {
  OpRule rule(*this);
  std::optional<EinsumTerms> terms = parseEinsum(getEquation());
  if (!terms) // The verifier has rejected the op (C1).
    return rule.finish();
  Letters letters = collectLetters(*terms, getInputs());
  llvm::SmallDenseMap<char, MaybeFactor> factors;
  double products = 1;
  for (auto [letter, size] : letters) {
    factors[letter] =
        terms->result.contains(letter) ? rule.addParallel(size) : rule.addReduction(size, ReductionKind::Sum);
    products *= static_cast<double>(size);
  }
  for (auto [index, term, input] : llvm::enumerate(terms->inputs, getInputs()))
    for (auto [letter, extent] : llvm::zip_equal(term, getShape(input)))
      rule.operandDim(index, extent > 1 ? factors[letter] : std::nullopt);
  for (char letter : terms->result)
    rule.resultDim(0, factors[letter]);
  for (int32_t index = 0; index < static_cast<int32_t>(getInputs().size()); ++index)
    rule.addLinear(index);
  rule.rule.reducedDim = "contracting dim";
  if (auto queries = (*this)->getAttrOfType<StringAttr>(kQueriesAttr); queries && queries.size() == 1)
    rule.rule.held = factors.lookup(queries.getValue().front()).value_or(-1);
  // One multiplication and one addition per element of the iteration space.
  rule.rule.flops = getInputs().size() >= 2 ? 2 * products : 0;
  return rule.finish();
}
