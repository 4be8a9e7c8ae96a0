//===- Convolution.cpp - windows over spatial dims ------------------------===//
//
// Strides, dilations, paddings and `auto_pad` mean the same for all ops that slide a window. A global pool is a
// reduction over the spatial dims.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Convolution.h"
#include "Families.h"
#include "NodeContext.h"
#include "Registry.h"
#include "cleave/Dialect/Nn/IR/Ops/Conversion.h"
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"
#include "cleave/Dialect/Nn/IR/Ops/Indexing.h"
#include "cleave/Dialect/Nn/IR/Ops/Reduction.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

namespace {
/// One entry per spatial dim each.
struct Window {
  Ints kernel, strides, dilations, padsLow, padsHigh;
  /// SAME_UPPER, SAME_LOWER, VALID or NOTSET.
  StringRef autoPad;

  int64_t getExtent(size_t i) const { return dilations[i] * (kernel[i] - 1) + 1; }
};
} // namespace

/// No sensible model has larger ones; with this bound sums and products of a few stay in range.
constexpr int64_t kMaxWindowNumber = int64_t(1) << 30;

static Ints readPerDim(NodeContext &node, StringRef name, size_t count, int64_t fallback, int64_t least) {
  Ints list = node.intsAttr(name).value_or(Ints(count, fallback));
  if (!node.check(list.size() == count,
                  "attribute '" + name + "' has " + Twine(list.size()) + " entries, expected " + Twine(count)))
    return {};
  for (int64_t number : list)
    if (!node.check(number >= least && number <= kMaxWindowNumber,
                    "attribute '" + name + "' has the entry " + Twine(number)))
      return {};
  return list;
}

/// Reads the attributes, except `kernel_shape`, that all these ops have. Nothing after an error.
static std::optional<Window> readWindow(NodeContext &node, Shape kernel) {
  size_t count = kernel.size();
  Window window;
  window.kernel = Ints(kernel);
  for (int64_t extent : kernel)
    if (!node.check(extent > 0 && extent <= kMaxWindowNumber, "the kernel has the extent " + Twine(extent)))
      return std::nullopt;
  window.strides = readPerDim(node, "strides", count, 1, 1);
  window.dilations = readPerDim(node, "dilations", count, 1, 1);
  window.autoPad = node.stringAttr("auto_pad", StringRef("NOTSET"));
  if (!node.check(llvm::is_contained({"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"}, window.autoPad),
                  "attribute 'auto_pad' is '" + window.autoPad + "', which is not known"))
    return std::nullopt;
  Ints pads = readPerDim(node, "pads", 2 * count, 0, 0);
  if (node.failed())
    return std::nullopt;
  bool isExplicit = window.autoPad == "NOTSET";
  window.padsLow = isExplicit ? Ints(Shape(pads).take_front(count)) : Ints(count, 0);
  window.padsHigh = isExplicit ? Ints(Shape(pads).drop_front(count)) : Ints(count, 0);
  return window;
}

/// Sets the paddings that `auto_pad` asks for, so that an input of these spatial extents gives ceil(n / stride)
/// results.
static void padAutomatically(Window &window, Shape spatial) {
  if (!window.autoPad.starts_with("SAME"))
    return;
  for (auto [i, extent] : llvm::enumerate(spatial)) {
    int64_t count = (extent + window.strides[i] - 1) / window.strides[i];
    int64_t total = std::max<int64_t>(0, (count - 1) * window.strides[i] + window.getExtent(i) - extent);
    int64_t smaller = total / 2, larger = total - smaller;
    window.padsLow[i] = window.autoPad == "SAME_UPPER" ? smaller : larger;
    window.padsHigh[i] = window.autoPad == "SAME_UPPER" ? larger : smaller;
  }
}

//===----------------------------------------------------------------------===//
// Convolution
//===----------------------------------------------------------------------===//

/// Checks ranks and `kernel_shape` against the weight; its spatial extents, nothing after an error.
static std::optional<Ints> readKernel(NodeContext &node, Value x, Value weight) {
  int64_t rank = NodeContext::rank(x);
  if (!node.check(rank >= 3, "the input has no spatial dims") ||
      !node.check(NodeContext::rank(weight) == rank, "input and weight differ in rank"))
    return std::nullopt;
  Ints kernel(NodeContext::shape(weight).drop_front(2));
  std::optional<Ints> given = node.intsAttr("kernel_shape");
  if (!node.check(!given || *given == kernel, "attribute 'kernel_shape' is not that of the weight"))
    return std::nullopt;
  return kernel;
}

Value cleave::onnx::convolve(NodeContext &node, Value x, Value weight, Value bias) {
  std::optional<Ints> kernel = x && weight ? readKernel(node, x, weight) : std::nullopt;
  int64_t groups = node.intAttr("group", 1);
  std::optional<Window> window = kernel ? readWindow(node, *kernel) : std::nullopt;
  if (!window || node.failed() || !node.check(groups > 0, "attribute 'group' is " + Twine(groups)))
    return {};
  padAutomatically(*window, NodeContext::shape(x).drop_front(2));
  return node.create<nn::ConvOp>(x, weight, bias, window->strides, window->padsLow, window->padsHigh, window->dilations,
                                 groups);
}

static void importConv(NodeContext &node) {
  node.result(0, convolve(node, node.operand(0), node.operand(1), node.operand(2)));
}

/// Splits what padding takes away so that the result has the shape asked for.
///
///   stride * (n - 1) + output padding + extent of the kernel - padding = shape
/// A larger shape than no padding gives takes output padding instead.
static bool padForShape(NodeContext &node, Window &window, Shape spatial, Ints &outputPads, Shape wanted) {
  for (auto [i, extent] : llvm::enumerate(spatial)) {
    int64_t total = window.strides[i] * (extent - 1) + outputPads[i] + window.getExtent(i) - wanted[i];
    if (!node.check(wanted[i] > 0 && wanted[i] <= kMaxWindowNumber, "the result can't have extent " + Twine(wanted[i])))
      return false;
    outputPads[i] += std::max<int64_t>(0, -total);
    total = std::max<int64_t>(0, total);
    int64_t smaller = total / 2, larger = total - smaller;
    bool isUpper = window.autoPad == "SAME_UPPER";
    window.padsLow[i] = isUpper ? smaller : larger;
    window.padsHigh[i] = isUpper ? larger : smaller;
  }
  return true;
}

static void importConvTranspose(NodeContext &node) {
  Value x = node.operand(0), weight = node.operand(1);
  std::optional<Ints> kernel = readKernel(node, x, weight);
  int64_t groups = node.intAttr("group", 1);
  std::optional<Window> window = kernel ? readWindow(node, *kernel) : std::nullopt;
  if (!window)
    return;
  Ints outputPads = readPerDim(node, "output_padding", kernel->size(), 0, 0);
  Shape spatial = NodeContext::shape(x).drop_front(2);
  for (int64_t extent : spatial)
    if (!node.check(extent <= kMaxWindowNumber, "the input has the extent " + Twine(extent)))
      return;
  std::optional<Ints> wanted = node.intsAttr("output_shape");
  if (node.failed() || !node.check(groups > 0, "attribute 'group' is " + Twine(groups)) ||
      !node.check(!wanted || wanted->size() == spatial.size(),
                  "attribute 'output_shape' does not have one entry per spatial dim"))
    return;
  if (!wanted && window->autoPad.starts_with("SAME")) {
    wanted.emplace();
    for (auto [extent, stride] : llvm::zip(spatial, window->strides))
      wanted->push_back(extent * stride);
  }
  if (wanted && !padForShape(node, *window, spatial, outputPads, *wanted))
    return;
  node.result(0, node.create<nn::ConvTransposeOp>(x, weight, node.operand(2), window->strides, window->padsLow,
                                                  window->padsHigh, window->dilations, outputPads, groups));
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

/// `operand - zero point` in i32; a zero point per output channel goes along dim 0 of the weight.
static Value widen(NodeContext &node, unsigned index, unsigned zeroIndex) {
  Type i32 = node.getBuilder().getI32Type();
  Value value = node.cast(node.operand(index), i32), zero = node.cast(node.operand(zeroIndex), i32);
  if (!zero || !value)
    return value;
  if (NodeContext::rank(zero) == 1) {
    Ints shape(NodeContext::rank(value), 1);
    if (!node.check(!shape.empty(), "the input is a scalar"))
      return {};
    shape[0] = NodeContext::shape(zero)[0];
    zero = node.reshape(zero, shape);
  }
  return node.create<nn::SubOp>(value, zero);
}

static void importConvInteger(NodeContext &node) {
  node.result(0, convolve(node, widen(node, 0, 2), widen(node, 1, 3), {}));
}

/// Operands: x, scale, zero point, w, scale, zero point, scale and zero point of the result, bias.
static void importQLinearConv(NodeContext &node) {
  Value sums = convolve(node, widen(node, 0, 2), widen(node, 3, 5), node.operand(8));
  Value xScale = node.operand(1), weightScale = node.operand(4), scale = node.operand(6), zero = node.operand(7);
  if (!sums)
    return;
  if (NodeContext::rank(weightScale) == 1) {
    Ints shape(NodeContext::rank(sums) - 1, 1);
    shape[0] = NodeContext::shape(weightScale)[0];
    weightScale = node.reshape(weightScale, shape);
  }
  Value factor = node.create<nn::MulOp>(node.reshape(xScale, {}), weightScale);
  Value real = node.create<nn::MulOp>(node.cast(sums, NodeContext::elementType(xScale)), factor);
  if (!real)
    return;
  auto type = RankedTensorType::get(NodeContext::shape(real), NodeContext::elementType(zero));
  node.result(0, node.createTyped<nn::QuantizeOp>(type, real, node.reshape(scale, {}), node.reshape(zero, {}), 0));
}

//===----------------------------------------------------------------------===//
// Pooling
//===----------------------------------------------------------------------===//

namespace {
struct PoolOptions {
  bool countPads = false, ceil = false;
  int64_t p = 2;
};
} // namespace

static void importPool(NodeContext &node, nn::PoolKind kind, const PoolOptions &options) {
  Value x = node.operand(0);
  Ints kernel = node.intsAttr("kernel_shape").value_or(Ints());
  int64_t spatial = NodeContext::rank(x) - 2;
  if (!node.check(spatial > 0, "the input has no spatial dims") ||
      !node.check(int64_t(kernel.size()) == spatial,
                  "attribute 'kernel_shape' has " + Twine(kernel.size()) + " entries, expected " + Twine(spatial)))
    return;
  std::optional<Window> window = readWindow(node, kernel);
  if (!window || node.failed())
    return;
  padAutomatically(*window, NodeContext::shape(x).drop_front(2));
  node.result(0, node.create<nn::PoolOp>(kind, x, window->kernel, window->strides, window->padsLow, window->padsHigh,
                                         window->dilations, options.countPads, options.ceil, options.p));
}

/// Where the maxima of windows lie. Each window is copied out by a gather per spatial dim, with what is outside as the
/// least number, and the place of its maximum is computed back to that in the input:
///
///   x [n, c, h, w] -> [n, c, oh, kh, ow, kw] -> [n, c, oh, ow, kh * kw] -> arg_reduce
static Value findMaxima(NodeContext &node, const Window &window, Shape result, bool isColumnMajor) {
  nn::Composer &f = node;
  Value x = node.operand(0);
  Shape shape = NodeContext::shape(x);
  Type type = NodeContext::elementType(x);
  int64_t spatial = window.kernel.size(), rank = shape.size();
  double least = -std::numeric_limits<double>::infinity();
  if (auto integer = dyn_cast<IntegerType>(type))
    least = integer.isUnsigned() ? 0 : -std::ldexp(1.0, int(integer.getWidth()) - 1);
  Ints low(rank, 0), high(rank, 0), apart(shape.take_front(2)), order{0, 1}, joined(shape.take_front(2));
  for (int64_t d = 0; d < spatial; ++d) {
    low[d + 2] = window.padsLow[d];
    int64_t reach = (result[d + 2] - 1) * window.strides[d] + window.getExtent(d);
    high[d + 2] = std::max<int64_t>(0, reach - shape[d + 2] - window.padsLow[d]);
  }
  Value read = f.pad(x, low, high, least);
  for (int64_t d = 0; d < spatial; ++d) {
    Ints places;
    for (int64_t i = 0; i < result[d + 2]; ++i)
      for (int64_t k = 0; k < window.kernel[d]; ++k)
        places.push_back(i * window.strides[d] + k * window.dilations[d]);
    read = f.gather(read, node.vector(places), d + 2);
    apart.append({result[d + 2], window.kernel[d]});
    order.push_back(2 + 2 * d);
    joined.push_back(result[d + 2]);
  }
  for (int64_t d = 0; d < spatial; ++d)
    order.push_back(3 + 2 * d);
  int64_t inner = ShapedType::getNumElements(window.kernel), size = ShapedType::getNumElements(shape.drop_front(2));
  joined.push_back(inner);
  Value tap = node.create<nn::ArgReduceOp>(
      nn::ReduceKind::Max, node.reshape(node.transpose(node.reshape(read, apart), order), joined), rank, false, false);
  // Along each dim: which window, which place in it; then all dims as one number, of all samples and channels.
  Ints sample(rank, 1), channel(rank, 1);
  sample[0] = shape[0], channel[1] = shape[1];
  Value index = f.add(f.iota(sample, 0, f.i64(), 0, shape[1] * size), f.iota(channel, 1, f.i64(), 0, size));
  for (int64_t d = 0, stride = size, before = 1; d < spatial; ++d) {
    inner /= window.kernel[d], stride /= shape[d + 2];
    Ints own(rank, 1);
    own[d + 2] = result[d + 2];
    Value within = f.mod(f.div(tap, double(inner)), double(window.kernel[d]));
    Value place = f.add(f.mul(within, double(window.dilations[d])),
                        f.iota(own, d + 2, f.i64(), -window.padsLow[d], window.strides[d]));
    index = f.add(index, f.mul(place, double(isColumnMajor ? before : stride)));
    before *= shape[d + 2];
  }
  return index;
}

static void importMaxPool(NodeContext &node) {
  PoolOptions options;
  options.ceil = node.getOpset() >= 10 && node.boolAttr("ceil_mode", false);
  bool isColumnMajor = node.getOpset() >= 8 && node.boolAttr("storage_order", false);
  importPool(node, nn::PoolKind::Max, options);
  if (!node.wantsResult(1) || node.failed())
    return;
  Value pooled = node.getResults()[0];
  std::optional<Window> window = readWindow(node, node.intsAttr("kernel_shape").value_or(Ints()));
  if (!window || !pooled)
    return;
  padAutomatically(*window, NodeContext::shape(node.operand(0)).drop_front(2));
  node.result(1, findMaxima(node, *window, NodeContext::shape(pooled), isColumnMajor));
}

/// Puts each element where its index says, into zeros. Indices count in the shape that the window's numbers give; a
/// larger one that is asked for has more zeros behind.
static void importMaxUnpool(NodeContext &node) {
  nn::Composer &f = node;
  Value x = node.operand(0), index = node.operand(1);
  Ints kernel = node.intsAttr("kernel_shape").value_or(Ints());
  Shape shape = NodeContext::shape(x);
  int64_t spatial = int64_t(shape.size()) - 2, count = ShapedType::getNumElements(shape);
  if (!node.check(spatial > 0 && int64_t(kernel.size()) == spatial,
                  "attribute 'kernel_shape' does not have one entry per spatial dim") ||
      !node.check(NodeContext::shape(index) == shape, "the indices do not have the shape of the input"))
    return;
  Ints strides = readPerDim(node, "strides", spatial, 1, 1), pads = readPerDim(node, "pads", 2 * spatial, 0, 0);
  Ints full(shape.take_front(2)), low(shape.size(), 0), high(shape.size(), 0);
  if (node.failed())
    return;
  for (int64_t d = 0; d < spatial; ++d)
    full.push_back((shape[d + 2] - 1) * strides[d] - pads[d] - pads[spatial + d] + kernel[d]);
  if (!node.checkSize(full, NodeContext::elementType(x)))
    return;
  Value zeros = node.broadcast(node.scalarLike(x, 0), {ShapedType::getNumElements(full)});
  Value y = node.create<nn::ScatterElementsOp>(nn::ScatterKind::Set, zeros, node.reshape(index, {count}),
                                               node.reshape(x, {count}), 0);
  if (node.hasOperand(2)) {
    Ints wanted = node.constantInts(2);
    if (node.failed() || !node.check(wanted.size() == full.size(), "the output shape does not have one entry per dim"))
      return;
    for (auto [d, extent] : llvm::enumerate(wanted)) {
      high[d] = extent - full[d];
      if (!node.check(high[d] >= 0, "the output shape is smaller than what the window gives"))
        return;
    }
  }
  node.result(0, f.pad(node.reshape(y, full), low, high));
}

/// Blocks add up where they overlap: a transposed convolution whose weight has a one for each place in the block.
static void importCol2Im(NodeContext &node) {
  Value x = node.operand(0);
  Ints image = node.constantInts(1), block = node.constantInts(2);
  size_t spatial = block.size();
  std::optional<Window> window = node.failed() ? std::nullopt : readWindow(node, block);
  Shape shape = NodeContext::shape(x);
  if (!window || !node.check(image.size() == spatial && spatial > 0, "image and block differ in rank"))
    return;
  if (!node.checkSize(block, NodeContext::elementType(x)) || !node.checkSize(image, NodeContext::elementType(x)))
    return;
  int64_t inner = ShapedType::getNumElements(block);
  if (!node.check(shape.size() == 3 && shape[1] % inner == 0, "the input must be [batch, channels * block, blocks]") ||
      !node.check(inner <= 4096, "blocks of " + Twine(inner) + " elements are not supported, only of up to 4096"))
    return;
  int64_t channels = shape[1] / inner, blocks = 1;
  Ints apart{shape[0] * channels, inner}, extra, weightShape{inner, 1}, result{shape[0], channels};
  for (size_t d = 0; d < spatial; ++d) {
    int64_t room = image[d] + window->padsLow[d] + window->padsHigh[d] - window->getExtent(d);
    if (!node.check(image[d] > 0 && room >= 0, "a block does not fit into the image"))
      return;
    apart.push_back(room / window->strides[d] + 1);
    blocks *= apart.back();
    extra.push_back(room % window->strides[d]);
    weightShape.push_back(block[d]);
    result.push_back(image[d]);
  }
  if (!node.check(blocks == shape[2], "the input has " + Twine(shape[2]) + " blocks, expected " + Twine(blocks)))
    return;
  SmallVector<double> ones(inner * inner, 0);
  for (int64_t i = 0; i < inner; ++i)
    ones[i * inner + i] = 1;
  Value weight = node.table(NodeContext::elementType(x), weightShape, ones);
  Value y = node.create<nn::ConvTransposeOp>(node.reshape(x, apart), weight, Value(), window->strides, window->padsLow,
                                             window->padsHigh, window->dilations, extra, 1);
  node.result(0, node.reshape(y, result));
}

static void importAveragePool(NodeContext &node) {
  PoolOptions options;
  options.ceil = node.getOpset() >= 10 && node.boolAttr("ceil_mode", false);
  options.countPads = node.getOpset() >= 7 && node.boolAttr("count_include_pad", false);
  importPool(node, nn::PoolKind::Average, options);
}

static void importLpPool(NodeContext &node) {
  PoolOptions options;
  options.ceil = node.getOpset() >= 18 && node.boolAttr("ceil_mode", false);
  options.p = node.intAttr("p", 2);
  importPool(node, nn::PoolKind::Lp, options);
}

/// Over all spatial dims, which stay with size 1.
static Value reduceSpatial(NodeContext &node, nn::ReduceKind kind, Value value) {
  int64_t rank = NodeContext::rank(value);
  if (!value || !node.check(rank >= 2, "the input has no channels"))
    return {};
  Ints dims = llvm::to_vector(llvm::seq<int64_t>(2, rank));
  return dims.empty() ? value : node.create<nn::ReduceOp>(kind, value, dims, true);
}

template <nn::ReduceKind kind> static void importGlobalPool(NodeContext &node) {
  node.result(0, reduceSpatial(node, kind, node.operand(0)));
}

/// `(sum |x|^p)^(1/p)`
static void importGlobalLpPool(NodeContext &node) {
  Value x = node.operand(0);
  int64_t p = node.intAttr("p", 2);
  if (node.failed() || !node.check(p > 0, "attribute 'p' is " + Twine(p)))
    return;
  Value power = node.create<nn::PowOp>(node.create<nn::AbsOp>(x), node.scalarLike(x, p));
  Value sum = reduceSpatial(node, nn::ReduceKind::Sum, power);
  node.result(0, node.create<nn::PowOp>(sum, node.scalarLike(x, 1.0 / p)));
}

void cleave::onnx::registerConvolution(Registry &registry) {
  registry.add("AveragePool", {1, 1}, importAveragePool).follow(findSamples);
  registry.add("Col2Im", 18, {3, 3}, importCol2Im);
  registry.add("Conv", 1, {2, 3}, importConv).follow(findSamples);
  registry.add("ConvInteger", 10, {2, 4}, importConvInteger);
  registry.add("ConvTranspose", 1, {2, 3}, importConvTranspose).follow(findSamples);
  registry.add("GlobalAveragePool", {1, 1}, importGlobalPool<nn::ReduceKind::Mean>).follow(findSamples);
  registry.add("GlobalLpPool", 2, {1, 1}, importGlobalLpPool);
  registry.add("GlobalMaxPool", {1, 1}, importGlobalPool<nn::ReduceKind::Max>).follow(findSamples);
  registry.add("LpPool", 2, {1, 1}, importLpPool);
  registry.add("MaxPool", 1, {1, 1, 2}, importMaxPool).follow(findSamples);
  registry.add("MaxUnpool", 9, {2, 3}, importMaxUnpool);
  registry.add("QLinearConv", 10, {8, 9}, importQLinearConv);
}
