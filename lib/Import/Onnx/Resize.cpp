//===- Resize.cpp - Resize and Upsample -----------------------------------===//
//
//   Upsample 7 (attribute), 9 (operand)   scales; positions as asymmetric, rounded down
//   Resize 10                             scales; likewise, but rounded up where a dim shrinks
//   Resize 11 on                          scales or sizes, and how positions map; axes from 18 on
//
// All become nn.resize but tf_crop_and_resize, of which each position has a place of its own that nothing about its neighbors tells, and may
// have none. What it reads is known here, so that it is gathers of the elements that take part, each times its weight:
//
//   region 0.3 to 1.1 of 5 elements, 4 positions    at 1.2   2.27   3.33   4.4, which is outside
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Resize.h"
#include "NodeContext.h"
#include "Registry.h"
#include "cleave/Dialect/Nn/IR/Sampling.h"

#include <cmath>

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

namespace {
struct Sampling {
  nn::ResizeMode mode = nn::ResizeMode::Nearest;
  nn::ResizeCoordinates coordinates = nn::ResizeCoordinates::Asymmetric;
  nn::NearestMode rounding = nn::NearestMode::Floor;
  bool excludeOutside = false, antialias = false;
  /// tf_crop_and_resize, which the op has not.
  bool crops = false;
  double cubic = -0.75;
};
} // namespace

/// Positions along a dim of a crop, which tables are made of.
constexpr int64_t kMaxCrop = int64_t(1) << 24;
/// No dim of a result is as large.
constexpr double kMaxExtent = 1e12;

static std::optional<nn::ResizeMode> readMode(NodeContext &node) {
  StringRef name = node.stringAttr("mode", StringRef("nearest"));
  auto mode = nn::symbolizeResizeMode(name);
  node.check(mode.has_value(), "attribute 'mode' is '" + name + "', which is not known");
  return mode;
}

/// Scales and result extents of all dims.
static Value resize(NodeContext &node, Value x, const Sampling &sampling, ArrayRef<double> scales, Shape extents) {
  for (double scale : scales)
    if (!node.check(std::isfinite(scale) && scale > 0,
                    "the scale " + Twine(std::to_string(scale)) + " is not a positive number"))
      return {};
  // A scale may be other than 1 and give the same extent, and then samples elsewhere.
  if (extents == NodeContext::shape(x) && llvm::all_of(scales, [](double scale) { return scale == 1; }))
    return x;
  auto type = RankedTensorType::get(extents, NodeContext::elementType(x));
  return node.createTyped<nn::ResizeOp>(type, sampling.mode, x, sampling.coordinates, sampling.rounding, scales,
                                        sampling.excludeOutside, sampling.antialias, APFloat(sampling.cubic));
}

/// Rounded down. In f32, as ONNX's own shape inference has it: 10 times 0.7 is 7.
static int64_t scaleExtent(NodeContext &node, int64_t extent, double scale) {
  double scaled = std::floor(float(extent) * float(scale));
  bool isPossible = scaled >= 0 && scaled < kMaxExtent;
  node.check(isPossible, "the scale " + Twine(std::to_string(scale)) + " is out of range");
  return isPossible ? int64_t(scaled) : 0;
}

/// Result extents are scaled input extents.
static Value resizeByScales(NodeContext &node, Value x, const Sampling &sampling, ArrayRef<double> scales) {
  if (node.failed())
    return {};
  Shape shape = NodeContext::shape(x);
  if (!node.check(scales.size() == shape.size(), Twine(scales.size()) + " scales for " + Twine(shape.size()) + " dims"))
    return {};
  Ints extents;
  for (auto [extent, scale] : llvm::zip(shape, scales)) {
    extents.push_back(scaleExtent(node, extent, scale));
    if (node.failed())
      return {};
  }
  return resize(node, x, sampling, scales, extents);
}

namespace {
/// One dim of tf_crop_and_resize.
struct Crop {
  int64_t dim, extent, count;
  double start, end; ///< of the region, in extents
  double length;     ///< of the result before it is rounded down to `count`

  /// The place of the input that position `i` of the result is at. A quotient of what is exact, of numbers of f32 and sizes up to thousands:
  /// the region's end is at its end, and not a bit behind it, where all would be outside.
  double getPlace(int64_t i) const {
    double last = double(extent - 1);
    return length == 1 ? (start + end) * last / 2
                       : (start * last * (length - 1) + double(i) * (end - start) * last) / (length - 1);
  }
  bool isOutside(int64_t i) const { return getPlace(i) < 0 || getPlace(i) > double(extent - 1); }
  bool keepsAll() const { return start == 0 && end == 1 && length == double(extent); }
};
} // namespace

/// Of each position of the result an element, or, where it is `between`, the elements around it and their weights: all that read the
/// first, then the second ones.
static Value sampleCrop(NodeContext &node, Value x, const Crop &crop, const Sampling &sampling) {
  nn::Composer &f = node;
  bool isNearest = sampling.mode == nn::ResizeMode::Nearest;
  int64_t first = sampling.mode == nn::ResizeMode::Cubic ? -1 : 0, taps = isNearest ? 1 : 2 - 2 * first;
  std::vector<SmallVector<double>> places(taps, SmallVector<double>(crop.count)), weights = places;
  auto clamp = [&](double place) { return std::clamp(place, 0.0, double(crop.extent - 1)); };
  for (int64_t i = 0; i < crop.count; ++i) {
    double at = std::clamp(crop.getPlace(i), 0.0, double(crop.extent - 1)), sum = 0;
    if (isNearest) {
      places[0][i] = clamp(sampling.rounding == nn::NearestMode::Floor             ? std::floor(at)
                           : sampling.rounding == nn::NearestMode::Ceil            ? std::ceil(at)
                           : sampling.rounding == nn::NearestMode::RoundPreferCeil ? std::floor(at + 0.5)
                                                                                   : std::ceil(at - 0.5));
      continue;
    }
    // Whole places count as behind the element before, as those of nn.resize do (Sampling.h).
    double before = std::ceil(at) - 1;
    for (int64_t tap = 0; tap < taps; ++tap) {
      double place = before + double(first + tap);
      bool isExcluded = sampling.excludeOutside && (place < 0 || place > double(crop.extent - 1));
      places[tap][i] = clamp(place);
      weights[tap][i] = isExcluded ? 0 : nn::getSampleWeight(sampling.mode, sampling.cubic, place - at);
      sum += weights[tap][i];
    }
    for (int64_t tap = 0; tap < taps && sampling.excludeOutside; ++tap)
      weights[tap][i] /= sum;
  }
  Ints along(NodeContext::rank(x), 1);
  along[crop.dim] = crop.count;
  Value result;
  // One gather for each tap, as a table of all weights would multiply what is no number by zeros.
  for (int64_t tap = 0; tap < taps; ++tap) {
    Value read = f.gather(x, node.table(f.i64(), {crop.count}, places[tap]), crop.dim);
    if (isNearest)
      return read;
    read = f.mul(read, node.reshape(node.table(NodeContext::elementType(x), {crop.count}, weights[tap]), along));
    result = result ? f.add(result, read) : read;
  }
  return result;
}

/// The regions of `axes`, which must be known; nothing after an error. Extents by scales are those of the whole input, as ONNX's shape
/// inference, its reference and onnxruntime have it: its text would have them of the region alone.
static SmallVector<Crop> readCrops(NodeContext &node, Shape axes, ArrayRef<double> scales, Shape sizes) {
  SmallVector<double> region = node.hasOperand(1) ? node.constantFloats(1) : SmallVector<double>();
  Shape shape = NodeContext::shape(node.operand(0));
  if (node.failed() || !node.check(region.size() == 2 * axes.size(), "the region does not have two numbers per axis"))
    return {};
  SmallVector<Crop> crops;
  for (auto [i, axis] : llvm::enumerate(axes)) {
    int64_t dim = axis < 0 ? axis + int64_t(shape.size()) : axis;
    Crop crop{dim, shape[dim], sizes[dim], region[i], region[axes.size() + i], double(sizes[dim])};
    if (scales[dim] > 0) {
      crop.length = double(crop.extent) * scales[dim];
      crop.count = scaleExtent(node, crop.extent, scales[dim]);
    }
    if (node.failed() || !node.check(crop.count > 0 && crop.extent > 0, "axis " + Twine(dim) + " is empty") ||
        !node.check(crop.count <= kMaxCrop, Twine(crop.count) + " positions of a crop are not supported"))
      return {};
    if (!node.check(std::isfinite(crop.start) && std::isfinite(crop.end) && crop.length > 0,
                    "the region of axis " + Twine(dim) + " is not one of numbers"))
      return {};
    if (!crop.keepsAll())
      crops.push_back(crop);
  }
  return crops;
}

/// Of each axis, the part from `start` to `end` of the region, resized. What is outside along any axis has the extrapolation value, which
/// is put there when all axes are done: it may be infinite, or no number.
static Value cropAndResize(NodeContext &node, const Sampling &sampling, Shape axes, ArrayRef<double> scales,
                           Shape sizes) {
  double outside = node.floatAttr("extrapolation_value", 0);
  Value x = node.operand(0);
  Type type = NodeContext::elementType(x);
  if (node.failed() ||
      !node.check((isa<FloatType>(type) || sampling.mode == nn::ResizeMode::Nearest) && !sampling.antialias,
                  "'tf_crop_and_resize' is supported of floats or nearest, without antialias"))
    return {};
  SmallVector<Crop> crops = readCrops(node, axes, scales, sizes);
  if (node.failed())
    return {};
  nn::Composer &f = node;
  bool isNarrow = isa<FloatType>(type) && type.getIntOrFloatBitWidth() < 32;
  Value y = isNarrow ? node.cast(x, f.f32()) : x;
  for (const Crop &crop : crops)
    y = sampleCrop(node, y, crop, sampling);
  for (const Crop &crop : crops) {
    SmallVector<double> isOutside;
    for (int64_t i = 0; i < crop.count; ++i)
      isOutside.push_back(crop.isOutside(i));
    if (!llvm::is_contained(isOutside, 1.0))
      continue;
    Ints along(NodeContext::rank(y), 1);
    along[crop.dim] = crop.count;
    Value mask = f.gt(node.reshape(node.table(f.f32(), {crop.count}, isOutside), along), 0.5);
    y = f.select(mask, node.scalar(NodeContext::elementType(y), outside), y);
  }
  return isNarrow ? node.cast(y, type) : y;
}

static void importUpsample(NodeContext &node) {
  Sampling sampling;
  sampling.mode = readMode(node).value_or(sampling.mode);
  SmallVector<double> scales =
      node.getOpset() >= 9 ? node.constantFloats(1) : node.floatsAttr("scales").value_or(SmallVector<double>());
  node.result(0, resizeByScales(node, node.operand(0), sampling, scales));
}

/// The standard does not say which neighbor is nearest. onnxruntime takes the one before where a dim grows, and the
/// one behind where it shrinks: dims that shrink go first, by themselves.
static void importResizeV10(NodeContext &node) {
  Sampling sampling;
  sampling.mode = readMode(node).value_or(sampling.mode);
  SmallVector<double> scales = node.constantFloats(1);
  Value x = node.operand(0);
  if (sampling.mode == nn::ResizeMode::Nearest) {
    Sampling behind = sampling;
    behind.rounding = nn::NearestMode::Ceil;
    SmallVector<double> shrinking(scales);
    for (auto [less, scale] : llvm::zip(shrinking, scales)) {
      less = std::min(scale, 1.0);
      scale = std::max(scale, 1.0);
    }
    x = resizeByScales(node, x, behind, shrinking);
  }
  node.result(0, resizeByScales(node, x, sampling, scales));
}

/// Modes are asked for whether or not they are used: an unknown one is an error all the same.
static std::optional<Sampling> readSampling(NodeContext &node) {
  Sampling sampling;
  sampling.mode = readMode(node).value_or(sampling.mode);
  StringRef coordinates = node.stringAttr("coordinate_transformation_mode", StringRef("half_pixel"));
  // pytorch's name says which library it imitates; ours are the same words.
  auto knownCoordinates = nn::symbolizeResizeCoordinates(coordinates);
  StringRef rounding = node.stringAttr("nearest_mode", StringRef("round_prefer_floor"));
  auto knownRounding = nn::symbolizeNearestMode(rounding);
  sampling.excludeOutside = node.boolAttr("exclude_outside", false);
  sampling.cubic = node.floatAttr("cubic_coeff_a", -0.75);
  sampling.antialias = node.getOpset() >= 18 && node.boolAttr("antialias", false);
  sampling.crops = coordinates == "tf_crop_and_resize";
  if (sampling.crops)
    knownCoordinates = nn::ResizeCoordinates::Asymmetric;
  else
    node.ignoreAttr("extrapolation_value");
  if (!node.check(knownCoordinates.has_value(),
                  "attribute 'coordinate_transformation_mode' is '" + coordinates + "', which is not supported") ||
      !node.check(knownRounding.has_value(), "attribute 'nearest_mode' is '" + rounding + "', which is not known"))
    return std::nullopt;
  sampling.coordinates = *knownCoordinates;
  sampling.rounding = *knownRounding;
  return node.failed() ? std::nullopt : std::optional(sampling);
}

/// Makes the sizes of `axes` agree on one scale, the smallest or the largest of theirs. Scales are quotients of sizes, and compared and
/// multiplied as such: what is halfway between two sizes becomes the larger one.
static bool keepAspectRatio(NodeContext &node, StringRef policy, Shape axes, Ints &sizes,
                            SmallVectorImpl<double> &scales) {
  if (policy == "stretch")
    return true;
  if (!node.check(policy == "not_larger" || policy == "not_smaller",
                  "attribute 'keep_aspect_ratio_policy' is '" + policy + "', which is not known"))
    return false;
  Shape shape = NodeContext::shape(node.operand(0));
  using Wide = __int128;
  auto isSmaller = [&](int64_t a, int64_t b) { return Wide(sizes[a]) * shape[b] < Wide(sizes[b]) * shape[a]; };
  int64_t chosen = policy == "not_larger" ? *llvm::min_element(axes, isSmaller) : *llvm::max_element(axes, isSmaller);
  double common = scales[chosen];
  Wide above = sizes[chosen], below = shape[chosen];
  for (int64_t axis : axes) {
    Wide size = (2 * above * shape[axis] + below) / (2 * below);
    if (!node.check(size < Wide(kMaxExtent), "the scale " + Twine(std::to_string(common)) + " is out of range"))
      return false;
    scales[axis] = common;
    sizes[axis] = int64_t(size);
  }
  return true;
}

/// From opset 11 on. What is given, scales or sizes, becomes both, one scale and one size for each axis of the
/// input; an axis that is not listed keeps its extent.
static void importResize(NodeContext &node) {
  std::optional<Sampling> sampling = readSampling(node);
  Shape shape = NodeContext::shape(node.operand(0));
  int64_t rank = shape.size();
  Ints axes = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  StringRef policy = "stretch";
  if (node.getOpset() >= 18) {
    if (std::optional<Ints> given = node.intsAttr("axes")) {
      node.axes(*given, rank);
      axes = *given;
    }
    policy = node.stringAttr("keep_aspect_ratio_policy", policy);
  }
  // An absent operand may also be spelled as one without elements.
  auto isGiven = [&](unsigned index) {
    return node.hasOperand(index) && ShapedType::getNumElements(NodeContext::shape(node.operand(index))) > 0;
  };
  if (!sampling || node.failed() ||
      !node.check(isGiven(2) != isGiven(3), "one of 'scales' and 'sizes' must be given, and not both"))
    return;
  SmallVector<double> given = isGiven(2) ? node.constantFloats(2) : SmallVector<double>();
  Ints givenSizes = isGiven(3) ? node.constantInts(3) : Ints();
  size_t count = isGiven(2) ? given.size() : givenSizes.size();
  if (node.failed() ||
      !node.check(count == axes.size(), Twine(count) + " scales or sizes for " + Twine(axes.size()) + " axes") ||
      !node.check(count > 0, "no axis is resized"))
    return;
  SmallVector<double> scales(rank, 1.0);
  Ints sizes(shape);
  for (auto [i, axis] : llvm::enumerate(axes)) {
    axis += axis < 0 ? rank : 0;
    if (isGiven(2)) {
      scales[axis] = given[i];
      continue;
    }
    if (!node.check(givenSizes[i] > 0 && shape[axis] > 0, "the size " + Twine(givenSizes[i]) + " is not possible"))
      return;
    sizes[axis] = givenSizes[i];
    scales[axis] = double(givenSizes[i]) / double(shape[axis]);
  }
  if (sampling->crops) {
    if (isGiven(3))
      llvm::fill(scales, 0); // Sizes are what they are.
    return node.result(0, cropAndResize(node, *sampling, axes, scales, sizes));
  }
  if (isGiven(2))
    return node.result(0, resizeByScales(node, node.operand(0), *sampling, scales));
  if (keepAspectRatio(node, policy, axes, sizes, scales))
    node.result(0, resize(node, node.operand(0), *sampling, scales, sizes));
}

void cleave::onnx::registerResize(Registry &registry) {
  registry.add("Resize", 10, {2, 2}, importResizeV10);
  registry.add("Resize", 11, {1, 4}, importResize);
  registry.add("Upsample", 7, {1, 1}, importUpsample);
  registry.add("Upsample", 9, {2, 2}, importUpsample);
  registry.end("Upsample", 10);
}
