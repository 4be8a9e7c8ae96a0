//===- Convolution.cpp - result types of windows over spatial dims --------===//
//
//   extent = floor((n + low + high - (dilation * (kernel - 1) + 1)) / stride) + 1
//
// where `low` and `high` are what is padded before and behind. A transposed convolution gives the extent n that such a
// convolution would make its operand from. All numbers come from a file: every product is checked for overflow before
// an extent is made of it.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Convolution.h"
#include "TypeInference.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;

namespace {
/// A window over the spatial dims; one entry per dim in each list once checked.
struct Window {
  ArrayRef<int64_t> kernel, strides, low, high, dilations;

  /// Elements that the window spans along `dim`; nothing on overflow.
  std::optional<int64_t> getSpan(unsigned dim) const {
    auto reach = mulChecked(dilations[dim], kernel[dim] - 1);
    return reach ? addChecked(*reach, 1) : std::nullopt;
  }
  /// Padding before and after; nothing on overflow.
  std::optional<int64_t> getPads(unsigned dim) const { return addChecked(low[dim], high[dim]); }
};
} // namespace

static LogicalResult checkEntries(StringRef name, ArrayRef<int64_t> entries, size_t spatial, int64_t least,
                                  StringRef tag, TypeInference &infer) {
  if (entries.size() != spatial)
    return infer.reject("has ", entries.size(), " ", name, " for ", spatial, " spatial dims (", tag, ")");
  for (int64_t entry : entries)
    if (entry < least)
      return infer.reject(name, " contain ", entry, ", expected at least ", least, " (", tag, ")");
  return success();
}

/// One entry per spatial dim in every list: extents, strides and dilations are at least 1, paddings not negative.
static LogicalResult checkWindow(const Window &window, size_t spatial, StringRef tag, TypeInference &infer) {
  return success(succeeded(checkEntries("kernel extents", window.kernel, spatial, 1, tag, infer)) &&
                 succeeded(checkEntries("strides", window.strides, spatial, 1, tag, infer)) &&
                 succeeded(checkEntries("low paddings", window.low, spatial, 0, tag, infer)) &&
                 succeeded(checkEntries("high paddings", window.high, spatial, 0, tag, infer)) &&
                 succeeded(checkEntries("dilations", window.dilations, spatial, 1, tag, infer)));
}

/// Appends the result extents of `window` sliding over `input`; with `ceil` the last window may hang over.
static LogicalResult slide(const Window &window, ArrayRef<int64_t> input, bool ceil, StringRef tag,
                           SmallVectorImpl<int64_t> &shape, TypeInference &infer) {
  for (auto [dim, extent] : llvm::enumerate(input)) {
    std::optional<int64_t> span = window.getSpan(dim), pads = window.getPads(dim);
    std::optional<int64_t> padded = pads ? addChecked(extent, *pads) : std::nullopt;
    if (!span || !padded || *span > *padded)
      return infer.reject("window does not fit into the padded input along spatial dim ", dim, " (", tag, ")");
    int64_t stride = window.strides[dim], room = *padded - *span;
    int64_t steps = room / stride;
    // The overhanging window counts only where it starts on the input or its low padding.
    if (ceil && room % stride != 0 && (steps + 1) <= (extent + window.low[dim] - 1) / stride)
      ++steps;
    shape.push_back(steps + 1);
  }
  return success();
}

/// C1 of convolutions.
static LogicalResult checkRanks(Value input, Value weight, TypeInference &infer) {
  size_t rank = getShape(input).size();
  if (rank < 3 || getShape(weight).size() != rank)
    return infer.reject("input ", input.getType(), " and weight ", weight.getType(),
                        " do not have one rank of at least 3 (C1)");
  return success();
}

/// C6 of convolutions; the bias may be absent.
static LogicalResult checkTypes(Value input, Value weight, Value bias, TypeInference &infer) {
  return infer.checkElementTypes({input, weight, bias ? bias : input}, "C6");
}

LogicalResult ConvOp::inferTypes(Adaptor op, TypeInference &infer) {
  if (failed(checkRanks(op.getInput(), op.getWeight(), infer)) ||
      failed(checkTypes(op.getInput(), op.getWeight(), op.getBias(), infer)))
    return failure();
  auto input = getShape(op.getInput()), weight = getShape(op.getWeight());
  int64_t groups = op.getGroups();
  if (groups < 1 || input[1] % groups != 0 || weight[0] % groups != 0)
    return infer.reject(groups, " groups do not divide ", input[1], " channels in and ", weight[0], " out (C2)");
  if (weight[1] != input[1] / groups)
    return infer.reject("weight takes ", weight[1], " channels a group but the input has ", input[1] / groups, " (C2)");
  Window window{weight.drop_front(2), op.getStrides(), op.getPadsLow(), op.getPadsHigh(), op.getDilations()};
  SmallVector<int64_t> shape = {input[0], weight[0]};
  if (failed(checkWindow(window, input.size() - 2, "C3", infer)) ||
      failed(slide(window, input.drop_front(2), false, "C4", shape, infer)) ||
      failed(infer.checkVector("bias", op.getBias(), weight[0], "C5")))
    return failure();
  return infer.give(shape, getElementType(op.getInput()));
}

/// stride * (n - 1) + output padding + span - pads; nothing on overflow.
static std::optional<int64_t> unslide(const Window &window, unsigned dim, int64_t extent, int64_t outputPad) {
  std::optional<int64_t> span = window.getSpan(dim), pads = window.getPads(dim);
  std::optional<int64_t> starts = mulChecked(window.strides[dim], extent - 1);
  if (!span || !pads || !starts)
    return std::nullopt;
  std::optional<int64_t> end = addChecked(*starts, *span);
  end = end ? addChecked(*end, outputPad) : std::nullopt;
  return end ? addChecked(*end, -*pads) : std::nullopt;
}

LogicalResult ConvTransposeOp::inferTypes(Adaptor op, TypeInference &infer) {
  if (failed(checkRanks(op.getInput(), op.getWeight(), infer)) ||
      failed(checkTypes(op.getInput(), op.getWeight(), op.getBias(), infer)))
    return failure();
  auto input = getShape(op.getInput()), weight = getShape(op.getWeight());
  int64_t groups = op.getGroups();
  if (groups < 1 || input[1] % groups != 0)
    return infer.reject(groups, " groups do not divide ", input[1], " channels in (C2)");
  if (weight[0] != input[1])
    return infer.reject("weight takes ", weight[0], " channels but the input has ", input[1], " (C2)");
  std::optional<int64_t> channels = mulChecked(weight[1], groups);
  if (!channels)
    return infer.reject(groups, " groups of ", weight[1], " channels are too many (C2)");
  Window window{weight.drop_front(2), op.getStrides(), op.getPadsLow(), op.getPadsHigh(), op.getDilations()};
  size_t spatial = input.size() - 2;
  if (failed(checkWindow(window, spatial, "C3", infer)) ||
      failed(checkEntries("output paddings", op.getOutputPads(), spatial, 0, "C3", infer)) ||
      failed(infer.checkVector("bias", op.getBias(), *channels, "C5")))
    return failure();
  // Extents of the input that is convolved back: paddings crop, output paddings add at the end.
  SmallVector<int64_t> shape = {input[0], *channels};
  for (auto [dim, extent] : llvm::enumerate(input.drop_front(2))) {
    std::optional<int64_t> result = unslide(window, dim, extent, op.getOutputPads()[dim]);
    if (!result || *result < 1)
      return infer.reject("result has no positive extent along spatial dim ", dim, " (C4)");
    shape.push_back(*result);
  }
  return infer.give(shape, getElementType(op.getInput()));
}

LogicalResult PoolOp::inferTypes(Adaptor op, TypeInference &infer) {
  auto input = getShape(op.getInput());
  if (input.size() < 3)
    return infer.reject("input is ", op.getInput().getType(), ", expected at least 3 dims (C1)");
  Window window{op.getKernel(), op.getStrides(), op.getPadsLow(), op.getPadsHigh(), op.getDilations()};
  SmallVector<int64_t> shape(input.take_front(2));
  if (failed(checkWindow(window, input.size() - 2, "C2", infer)) ||
      failed(slide(window, input.drop_front(2), op.getCeil(), "C3", shape, infer)))
    return failure();
  if (int64_t p = op.getP(); p < 1)
    return infer.reject("p is ", p, ", expected at least 1 (C4)");
  return infer.give(shape, getElementType(op.getInput()));
}

//===----------------------------------------------------------------------===//
// What is summed
//===----------------------------------------------------------------------===//

/// As many of the input as of the weight, [out, in / groups, kernel..].
int64_t ConvOp::countSummed(unsigned) { return ShapedType::getNumElements(getShape(getWeight()).drop_front()); }

/// Of a weight [in, out / groups, kernel..].
int64_t ConvTransposeOp::countSummed(unsigned) {
  ArrayRef<int64_t> weight = getShape(getWeight());
  return ShapedType::getNumElements(weight.drop_front(2)) * weight[0] / int64_t(getGroups());
}
