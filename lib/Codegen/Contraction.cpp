//===- Contraction.cpp - the lowering of einsum ---------------------------===//
//
// Products of two tensors of floats are a template of their own (Host/Product.h). The others: each element of the result walks the
// letters that are summed, with lanes along the result's last dim.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Contraction.h"
#include "Device/Templates.h"
#include "Host/Product.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;

namespace {
/// Where each letter of an equation stands.
struct Letters {
  llvm::DenseMap<char, Index> at;
  llvm::DenseMap<char, int64_t> extents;
};
} // namespace

/// The point of an operand; its dims of size 1 repeat.
static Point locate(Emitter &e, StringRef letters, ArrayRef<int64_t> shape, const Letters &known) {
  Point point;
  for (auto [letter, extent] : llvm::zip_equal(letters, shape))
    point.push_back(extent == 1 ? Index{e.places.number(0)} : known.at.lookup(letter));
  return point;
}

static Value pullEinsum(Emitter &e, nn::EinsumOp op, const Point &point) {
  nn::EinsumTerms terms = *nn::parseEinsum(op.getEquation());
  Letters letters;
  std::string summed;
  for (auto [letter, index] : llvm::zip_equal(terms.result, point))
    letters.at[letter] = index;
  for (auto [term, operand] : llvm::zip_equal(terms.inputs, op.getInputs()))
    for (auto [letter, extent] : llvm::zip_equal(term, getShape(operand))) {
      int64_t &known = letters.extents.try_emplace(letter, 1).first->second;
      known = extent == 1 ? known : extent;
      if (!letters.at.contains(letter) && !StringRef(summed).contains(letter))
        summed += letter;
    }
  SmallVector<int64_t> extents;
  for (char letter : summed)
    extents.push_back(letters.extents[letter]);
  Type element = getElementType(op.getResult());
  Type compute = e.withLanes(ElementBuilder::getComputeType(element));
  Values sum = e.walk(extents, {e.elements.number(compute, 0)}, [&](ArrayRef<Value> places, Values carried) {
    for (auto [letter, place] : llvm::zip_equal(summed, places))
      letters.at[letter] = {place};
    SmallVector<Value> factors;
    for (auto [term, operand] : llvm::zip_equal(terms.inputs, op.getInputs()))
      factors.push_back(e.elements.widen(e.eval(operand, locate(e, term, getShape(operand), letters))));
    Value product = factors.front();
    for (size_t i = 1; i + 1 < factors.size(); ++i)
      product = e.elements.mul(product, factors[i]);
    if (factors.size() == 1)
      return Values{e.elements.add(carried[0], product)};
    return Values{e.elements.fma(product, factors.back(), carried[0])};
  });
  return e.elements.narrow(sum[0], ElementBuilder::getHeldType(element));
}

void cleave::codegen::registerContraction(LoweringTable &table) {
  table.addPull<nn::EinsumOp>(pullEinsum);
  table.addTile<nn::EinsumOp>({[](Operation *op) { return Product::get(op, 1).has_value(); },
                               [](Emitter &e, Operation *op, TileSink sink) {
                                 Type compute = ElementBuilder::getComputeType(getElementType(op->getResult(0)));
                                 runProduct(e, *Product::get(op, e.getVectorLanes(compute)), sink);
                               }});
  table.addDeviceTile<nn::EinsumOp>(
      {[](Operation *op) { return canRunProduct(cast<nn::EinsumOp>(op)); },
       [](Emitter &e, Operation *op, TileSink sink) { runDeviceProduct(e, cast<nn::EinsumOp>(op), sink); }});
}
