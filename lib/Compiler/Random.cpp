//===- Random.cpp - arguments drawn at random -----------------------------===//
//
// An integer argument often is a table index: token ids, positions. What it may be is found by following its uses
// forward, through ops that keep a number's meaning (movement, casts, selects), to the first lookups; the smallest
// extent looked up bounds it. Elements are drawn argument by argument from one generator, so that equal seeds give
// equal tensors.
//
//===----------------------------------------------------------------------===//
#include "cleave/Compiler/Values.h"

#include "cleave/Dialect/Nn/IR/Nn.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/DenseSet.h"

#include <cmath>
#include <random>

using namespace mlir;
using namespace cleave;
using namespace cleave::driver;
using reference::Tensor;

//===----------------------------------------------------------------------===//
// Bounds of indices
//===----------------------------------------------------------------------===//

/// Exclusive upper bound of the elements of `argument`.
static int64_t getIndexBound(Value argument) {
  std::optional<int64_t> bound;
  SmallVector<Value> todo{argument};
  llvm::DenseSet<Value> seen{argument};
  while (!todo.empty())
    for (OpOperand &use : todo.pop_back_val().getUses()) {
      auto lookup = dyn_cast<nn::LookupOpInterface>(use.getOwner());
      if (lookup && lookup.getIndices() == use.get())
        bound = std::min(lookup.getNumPlaces(), bound.value_or(lookup.getNumPlaces()));
      else if (use.getOwner()->hasTrait<nn::KeepsNumbers>() && seen.insert(use.getOwner()->getResult(0)).second)
        todo.push_back(use.getOwner()->getResult(0));
    }
  return bound.value_or(2);
}

//===----------------------------------------------------------------------===//
// Drawing
//===----------------------------------------------------------------------===//

namespace {
/// std::mt19937_64 is fully specified, the distributions of the standard library are not: ours are the same everywhere.
class Generator {
public:
  explicit Generator(uint64_t seed) : engine(seed) {}
  /// Uniform in [0, bound).
  int64_t below(int64_t bound) { return bound > 0 ? static_cast<int64_t>(engine() % static_cast<uint64_t>(bound)) : 0; }
  /// Normal(0, 1), by the method of Box and Muller.
  double normal() {
    double u = (static_cast<double>(engine() >> 11) + 1.0) / 9007199254740993.0;
    double v = static_cast<double>(engine() >> 11) / 9007199254740992.0;
    return std::sqrt(-2.0 * std::log(u)) * std::cos(6.283185307179586 * v);
  }

private:
  std::mt19937_64 engine;
};
} // namespace

static uint16_t toHalfBits(double value, const llvm::fltSemantics &semantics) {
  llvm::APFloat number(value);
  bool losesInfo;
  number.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return static_cast<uint16_t>(number.bitcastToAPInt().getZExtValue());
}

template <typename T, typename Draw> static void fill(Tensor &tensor, Draw draw) {
  for (T &element : tensor.write<T>())
    element = static_cast<T>(draw());
}

static Tensor drawTensor(RankedTensorType type, int64_t bound, Generator &generator) {
  Tensor tensor = Tensor::zeros(type);
  Type element = type.getElementType();
  auto normal = [&] { return generator.normal(); };
  auto integer = [&] { return generator.below(bound); };
  if (element.isF32())
    fill<float>(tensor, normal);
  else if (element.isF64())
    fill<double>(tensor, normal);
  else if (isa<FloatType>(element))
    fill<uint16_t>(tensor, [&] { return toHalfBits(normal(), cast<FloatType>(element).getFloatSemantics()); });
  else if (reference::getElementBytes(element) == 1)
    fill<uint8_t>(tensor, integer);
  else if (reference::getElementBytes(element) == 2)
    fill<int16_t>(tensor, integer);
  else if (reference::getElementBytes(element) == 4)
    fill<int32_t>(tensor, integer);
  else
    fill<int64_t>(tensor, integer);
  return tensor;
}

SmallVector<Tensor> cleave::driver::drawInputs(func::FuncOp func, uint64_t seed) {
  Generator generator(seed);
  SmallVector<Tensor> inputs;
  for (auto [argument, type] : llvm::zip_equal(func.getArguments(), getInputTypes(func))) {
    inputs.push_back(drawTensor(type, getIndexBound(argument), generator));
    if (std::optional<Tensor> fixed = getFixedValue(func, argument.getArgNumber()))
      inputs.back() = *fixed;
  }
  return inputs;
}
