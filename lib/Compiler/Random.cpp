//===- Random.cpp - arguments drawn at random -----------------------------===//
//
// What a number may be is found by following the uses of an argument forward, through ops that keep a number's meaning
// (movement, casts, selects):
//
//   it indexes a table                        token ids, positions     below the smallest extent looked up
//   it is only cast, and is no mask           pixels, bytes            0 to 255
//   an einsum or convolution sums over it     weights as operand 1     normal(0, 1 / fan-in), so that sums stay near 1
//
// All other integers are 0 or 1, which suits masks, all other floats normal(0, 1). That is found of the whole model, for a
// shard's fan-in is another one, and comes along. Elements are drawn argument by argument from one generator, so that equal seeds
// give equal tensors.
//
//===----------------------------------------------------------------------===//
#include "cleave/Compiler/Values.h"

#include "cleave/Dialect/Nn/IR/Control.h"
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"
#include "cleave/Reference/Begins.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/DenseSet.h"

#include <cmath>
#include <random>

using namespace mlir;
using namespace cleave;
using reference::Tensor;

//===----------------------------------------------------------------------===//
// What numbers are for
//===----------------------------------------------------------------------===//

/// True if `op` turns the numbers of `type` into floats, or bytes into wider integers.
static bool isConversion(Operation *op, Type type) {
  if (!op->hasTrait<nn::ConvertsNumbers>() || type.isInteger(1))
    return false;
  Type to = getElementTypeOrSelf(op->getResult(0));
  return isa<FloatType>(to) || (type.isInteger(8) && to.getIntOrFloatBitWidth() > 8);
}

/// True if the op adds up products of its operands, of which the second is the weight.
static bool addsProducts(Operation *op) {
  auto formed = dyn_cast<nn::FormOpInterface>(op);
  return formed && (formed.getForm() == nn::Form::Contraction || formed.getForm() == nn::Form::Convolution);
}

namespace {
/// What becomes of an argument's numbers.
struct Uses {
  std::optional<int64_t> places; ///< of the smallest table that they index
  bool areConverted = false;     ///< to a type for arithmetic
  bool areMask = false;          ///< then subtracted (`1 - mask`), compared, or the condition of a select
  bool areElse = false;          ///< used as the integers that they are
  bool areActivation = false;    ///< operand 0 of an einsum or convolution
  int64_t fanIn = 1;             ///< where they are its operand 1, the weight
};
} // namespace

/// Where a loop hands the numbers of `use` on: to its body, to the next iteration, and behind it.
static SmallVector<Value> getHandedOn(OpOperand &use) {
  unsigned index = use.getOperandNumber();
  auto yield = dyn_cast<nn::YieldOp>(use.getOwner());
  auto loop = yield ? yield->getParentOfType<nn::LoopOp>() : dyn_cast<nn::LoopOp>(use.getOwner());
  if (!loop || (loop.getCondition() && index-- == 0))
    return {};
  SmallVector<Value> values = {loop.getBody().getArgument(index)};
  if (index < loop.getNumResults())
    values.push_back(loop.getResult(index));
  return values;
}

/// Follows an argument forward, through conversions and loops. Unlike `nn.index_range`, which a program holds its inputs to,
/// this is a guess of what may be drawn: it also goes through conversions to floats, and takes the smallest table for all.
static Uses findUses(Value argument) {
  Type type = getElementTypeOrSelf(argument);
  Uses uses;
  SmallVector<std::pair<Value, bool>> todo{{argument, false}}; // and whether it is converted
  llvm::DenseSet<Value> seen{argument};
  while (!todo.empty()) {
    auto [value, isConverted] = todo.pop_back_val();
    for (OpOperand &use : value.getUses()) {
      Operation *op = use.getOwner();
      if (isa<nn::LoopOp, nn::YieldOp>(op)) {
        for (Value same : getHandedOn(use))
          if (seen.insert(same).second)
            todo.emplace_back(same, isConverted);
        continue;
      }
      bool converts = !isConverted && isConversion(op, type);
      uses.areConverted |= converts;
      if (auto lookup = dyn_cast<nn::LookupOpInterface>(op); lookup && lookup.getIndices() == use.get()) {
        uses.places = std::min(lookup.getNumPlaces(), uses.places.value_or(lookup.getNumPlaces()));
      } else if (isa<nn::SubOp, nn::EqOp, nn::SelectOp>(op) && use.getOperandNumber() == (isa<nn::SubOp>(op) ? 1 : 0)) {
        uses.areMask = true;
      } else if (converts || op->hasTrait<nn::KeepsNumbers>()) {
        if (seen.insert(op->getResult(0)).second)
          todo.emplace_back(op->getResult(0), isConverted || converts);
      } else if (addsProducts(op)) {
        uses.areActivation |= use.getOperandNumber() == 0;
        if (use.getOperandNumber() == 1)
          uses.fanIn = std::max(uses.fanIn, cast<nn::FormOpInterface>(op).countSummed(1));
        uses.areElse |= !isConverted;
      } else {
        uses.areElse |= !isConverted;
      }
    }
  }
  return uses;
}

/// Of what nothing is said.
static int64_t getDefaultRange(Type element) { return isa<FloatType>(element) ? 1 : 2; }

/// Exclusive upper bound of the integers of an argument.
static int64_t getBound(const Uses &uses, Type type) {
  if (uses.places || !uses.areConverted || uses.areMask || uses.areElse)
    return uses.places.value_or(getDefaultRange(type));
  unsigned bits = std::min(type.getIntOrFloatBitWidth(), 8U);
  return bits == 8 && type.isUnsignedInteger() ? 256 : bits < 8 ? 1 << bits : type.isInteger(8) ? 128 : 256;
}

InputRanges cleave::findRanges(func::FuncOp func) {
  InputRanges ranges;
  SmallVector<std::string> names = getInputNames(func);
  for (BlockArgument argument : func.getArguments()) {
    Type element = getElementTypeOrSelf(argument);
    bool isFloat = isa<FloatType>(element);
    Uses uses = findUses(argument);
    int64_t range = isFloat ? (uses.areActivation ? 1 : std::max<int64_t>(uses.fanIn, 1)) : getBound(uses, element);
    if (range != getDefaultRange(element))
      ranges[names[argument.getArgNumber()]] = range;
  }
  return ranges;
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

static uint16_t toBits(double value, const llvm::fltSemantics &semantics) {
  bool isPower = &semantics == &llvm::APFloat::Float8E8M0FNU(); // without sign and 0
  llvm::APFloat number(isPower ? std::max(std::fabs(value), 0x1p-127) : value);
  bool losesInfo;
  number.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return static_cast<uint16_t>(number.bitcastToAPInt().getZExtValue());
}

template <typename T, typename Draw> static void fill(Tensor &tensor, Draw draw) {
  for (T &element : tensor.write<T>())
    element = static_cast<T>(draw());
}

/// Floats of 16 and 8 bits.
template <typename Draw> static void fillFloats(Tensor &tensor, Draw draw) {
  if (reference::getElementBytes(tensor.getElementType()) == 1)
    fill<uint8_t>(tensor, draw);
  else
    fill<uint16_t>(tensor, draw);
}

static Tensor drawTensor(RankedTensorType type, int64_t range, bool isPositive, Generator &generator) {
  Tensor tensor = Tensor::zeros(type);
  Type element = type.getElementType();
  double deviation = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(range, 1)));
  auto normal = [&] { return deviation * (isPositive ? std::fabs(generator.normal()) : generator.normal()); };
  auto integer = [&] { return generator.below(range); };
  if (element.isF32())
    fill<float>(tensor, normal);
  else if (element.isF64())
    fill<double>(tensor, normal);
  else if (isa<FloatType>(element))
    fillFloats(tensor, [&] { return toBits(normal(), cast<FloatType>(element).getFloatSemantics()); });
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

SmallVector<Tensor> cleave::drawInputs(func::FuncOp func, uint64_t seed, const InputRanges &ranges) {
  Generator generator(seed);
  SmallVector<Tensor> inputs;
  FailureOr<SmallVector<std::optional<reference::Beginning>>> beginnings = reference::getBeginnings(func);
  for (auto [name, type] : llvm::zip_equal(getInputNames(func), getInputTypes(func))) {
    auto range = ranges.find(name);
    int64_t known = range == ranges.end() ? getDefaultRange(type.getElementType()) : range->second;
    std::optional<Tensor> fixed = getFixedValue(func, inputs.size());
    std::optional<reference::Beginning> begins;
    if (succeeded(beginnings))
      begins = (*beginnings)[inputs.size()];
    inputs.push_back(drawTensor(type, known, /*isPositive=*/begins.has_value(), generator));
    if (fixed || (begins && begins->isParameter))
      inputs.back() = fixed ? *fixed : begins->value;
  }
  return inputs;
}

SmallVector<Tensor> cleave::drawInputs(func::FuncOp func, uint64_t seed) {
  return drawInputs(func, seed, findRanges(func));
}
