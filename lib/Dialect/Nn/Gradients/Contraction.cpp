//===- Contraction.cpp - gradients of products ----------------------------===//
//
// A product is linear in each factor, so a factor's gradient is a product of the result's with the other factors: of
// `bik,bkj->bij` that of the first is `bij,bkj->bik`.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Contraction.h"
#include "cleave/Dialect/Nn/Gradients/GradientBuilder.h"

using namespace mlir;
using namespace cleave::nn;

/// The gradient of factor `index`. A dim of size 1 that repeats is summed over, one that nothing else has repeats the sum.
static Value differentiateFactor(GradientBuilder &g, EinsumOp einsum, unsigned index) {
  EinsumTerms terms = *parseEinsum(einsum.getEquation());
  std::string equation = terms.result.str(), kept;
  SmallVector<Value> factors = {g.of()};
  llvm::SmallDenseMap<char, int64_t> sizes; // of letters in the other factors
  auto note = [&](StringRef term, Shape shape) {
    for (auto [letter, size] : llvm::zip_equal(term, shape))
      sizes[letter] = std::max(sizes.lookup(letter), size);
  };
  note(terms.result, Composer::shape(g.of()));
  for (auto [i, term] : llvm::enumerate(terms.inputs))
    if (i != index) {
      equation += ("," + term).str();
      note(term, Composer::shape(g.operand(i)));
      factors.push_back(g.operand(i));
    }
  Shape shape = Composer::shape(g.operand(index));
  for (auto [letter, size] : llvm::zip_equal(terms.inputs[index], shape))
    if (auto found = sizes.find(letter); found != sizes.end() && found->second == size)
      kept += letter;
  Value product = g.f.einsum(factors, equation + "->" + kept);
  if (!product)
    return {};
  SmallVector<int64_t> apart;
  const int64_t *size = Composer::shape(product).begin();
  for (char letter : terms.inputs[index])
    apart.push_back(StringRef(kept).contains(letter) ? *size++ : 1);
  return g.f.broadcast(g.f.reshape(product, apart), shape);
}

/// A value may be several factors, each of which has its share.
LogicalResult EinsumOp::differentiate(GradientBuilder &g) {
  for (unsigned i = 0; i < getInputs().size(); ++i)
    if (failed(g.addBy(i, [&] { return differentiateFactor(g, *this, i); })))
      return failure();
  return success();
}
