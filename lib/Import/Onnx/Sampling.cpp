//===- Sampling.cpp - pictures read at computed places --------------------===//
//
// GridSample, RoiAlign and DeformConv read between elements, at places that the program computes. Along each spatial dim
// a place is a few taps (1 nearest, 2 linear, 4 cubic), each an index and a weight; their product over the dims are the
// taps of a place. One gather reads all of them, channels last, and an einsum weighs and sums them:
//
//   image [n, S, c]   indices [n, taps * places, 1]   -> gather_nd (dim n paired) -> [n, taps, places, c]
//   einsum "ntpc,ntp->ncp"
//
// So samples and channels shard, and a rank that has a part of the places reads just those. What lies outside has weight
// 0; its index is moved inside, so that any number may come in.
//
//===----------------------------------------------------------------------===//
#include "Families.h"
#include "NodeContext.h"
#include "Registry.h"
#include "cleave/Dialect/Nn/IR/Ops/Indexing.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

namespace {
enum class Outside { Zero, Border, Reflection };
enum class Between { Nearest, Linear, Cubic };

/// The taps of places along one dim.
struct Taps {
  SmallVector<Value, 4> indices; ///< integers inside the dim, shaped as the places
  SmallVector<Value, 4> weights; ///< null: 1 each
};
} // namespace

/// An integer index that is mirrored at both ends, as often as it takes: at the centers of the outer elements, or at
/// their edges.
static Value reflect(nn::Composer &f, NodeContext &node, Value index, int64_t extent, bool alignsCorners) {
  // In halves, so that edges are whole.
  int64_t low = alignsCorners ? 0 : -1, range = alignsCorners ? 2 * (extent - 1) : 2 * extent;
  if (range == 0)
    return f.mul(index, 0);
  Value along = f.mod(f.sub(f.mul(index, 2), double(low)), double(2 * range));
  Value folded = f.min(along, f.sub(double(2 * range), along));
  return f.div(f.add(folded, double(low)), 2);
}

/// Weights of the four elements around a place that lies `t` behind the second (Keys 1981, a = -0.75).
static SmallVector<Value, 4> cubicWeights(nn::Composer &f, Value t) {
  constexpr double a = -0.75;
  auto near = [&](Value x) { // |x| <= 1: (a + 2) x^3 - (a + 3) x^2 + 1
    return f.add(f.mul(f.mul(f.sub(f.mul(x, a + 2), a + 3), x), x), 1);
  };
  auto far = [&](Value x) { // 1 < |x| < 2: a x^3 - 5a x^2 + 8a x - 4a
    return f.sub(f.mul(f.add(f.mul(f.sub(f.mul(x, a), 5 * a), x), 8 * a), x), 4 * a);
  };
  return {far(f.add(t, 1)), near(t), near(f.sub(1, t)), far(f.sub(2, t))};
}

/// Taps of `places`, in units of elements, along a dim of `extent`.
static Taps findTaps(NodeContext &node, Value places, int64_t extent, Between between, Outside outside,
                     bool alignsCorners) {
  nn::Composer &f = node;
  // Far away is as good as far, and fits into an integer.
  places = f.clamp(places, -double(int64_t(1) << 24), double(int64_t(1) << 24));
  Value first = between == Between::Nearest ? f.round(places) : f.floor(places);
  Taps taps;
  if (between == Between::Linear) {
    Value t = f.sub(places, first);
    taps.weights = {f.sub(1, t), t};
  } else if (between == Between::Cubic) {
    taps.weights = cubicWeights(f, f.sub(places, first));
  } else {
    taps.weights = {Value()};
  }
  Value base = node.cast(first, f.i64());
  int64_t start = between == Between::Cubic ? -1 : 0;
  for (auto [i, weight] : llvm::enumerate(taps.weights)) {
    Value index = start + int64_t(i) == 0 ? base : f.add(base, double(start + int64_t(i)));
    if (outside == Outside::Zero) {
      Value inside = node.cast(f.both(f.ge(index, 0), f.lt(index, double(extent))), NodeContext::elementType(places));
      weight = weight ? f.mul(weight, inside) : inside;
    } else if (outside == Outside::Reflection) {
      index = reflect(f, node, index, extent, alignsCorners);
    }
    taps.indices.push_back(f.clamp(index, 0, double(extent - 1)));
  }
  return taps;
}

/// The image [n, c, S..] at places with taps per spatial dim, each [n, P]: [n, c, P] in `type`.
static Value readTaps(NodeContext &node, Value image, ArrayRef<Taps> dims, Type type) {
  if (node.failed())
    return {};
  nn::Composer &f = node;
  Ints shape(NodeContext::shape(image));
  int64_t batch = shape[0], channels = shape[1], size = ShapedType::getNumElements(Shape(shape).drop_front(2));
  SmallVector<Value> indices{Value()}, weights{Value()};
  for (auto [d, taps] : llvm::enumerate(dims)) {
    SmallVector<Value> nextIndices, nextWeights;
    for (auto [index, weight] : llvm::zip(indices, weights))
      for (auto [own, ownWeight] : llvm::zip(taps.indices, taps.weights)) {
        nextIndices.push_back(index ? f.add(f.mul(index, double(shape[d + 2])), own) : own);
        nextWeights.push_back(weight && ownWeight ? f.mul(weight, ownWeight) : weight ? weight : ownWeight);
      }
    indices = std::move(nextIndices), weights = std::move(nextWeights);
  }
  if (node.failed())
    return {};
  int64_t places = NodeContext::shape(indices[0])[1], count = indices.size();
  auto stack = [&](SmallVector<Value> parts) {
    for (Value &part : parts)
      part = node.unsqueeze(part, {1});
    return node.concat(parts, 1);
  };
  Value flat = node.transpose(node.reshape(image, {batch, channels, size}), {0, 2, 1});
  Value index = node.reshape(stack(indices), {batch, count * places, 1});
  Value read = node.create<nn::GatherNdOp>(flat, index, 1);
  if (!weights[0])
    return node.cast(node.transpose(read, {0, 2, 1}), type);
  Value apart = node.reshape(node.cast(read, type), {batch, count, places, channels});
  return f.einsum({apart, node.cast(stack(weights), type)}, "ntpc,ntp->ncp");
}

//===----------------------------------------------------------------------===//
// GridSample
//===----------------------------------------------------------------------===//

/// Words changed with opset 20, when more than two dims came.
static std::optional<Between> readBetween(NodeContext &node) {
  bool isOld = node.getOpset() < 20;
  StringRef mode = node.stringAttr("mode", isOld ? StringRef("bilinear") : StringRef("linear"));
  if (mode == "nearest")
    return Between::Nearest;
  if (mode == (isOld ? "bilinear" : "linear"))
    return Between::Linear;
  if (mode == (isOld ? "bicubic" : "cubic"))
    return Between::Cubic;
  node.check(false, "attribute 'mode' is '" + mode + "', which is not known");
  return std::nullopt;
}

/// What is read where a place lies outside.
static std::optional<Outside> readOutside(NodeContext &node) {
  StringRef mode = node.stringAttr("padding_mode", StringRef("zeros"));
  if (mode == "zeros")
    return Outside::Zero;
  if (mode == "border")
    return Outside::Border;
  if (mode == "reflection")
    return Outside::Reflection;
  node.check(false, "attribute 'padding_mode' is '" + mode + "', which is not known");
  return std::nullopt;
}

/// The grid holds, per place, numbers from -1 to 1 along the dims of the image, the last dim first.
static void importGridSample(NodeContext &node) {
  nn::Composer &f = node;
  Value image = node.operand(0), grid = node.operand(1);
  std::optional<Between> between = readBetween(node);
  std::optional<Outside> outside = readOutside(node);
  bool aligns = node.boolAttr("align_corners", false);
  Shape shape = NodeContext::shape(image), gridShape = NodeContext::shape(grid);
  int64_t spatial = int64_t(shape.size()) - 2;
  if (!between || !outside || node.failed() ||
      !node.check(spatial >= 1 && gridShape.size() == shape.size() && gridShape.back() == spatial &&
                      gridShape[0] == shape[0],
                  "the grid must be [batch, places.., " + Twine(spatial) + "]") ||
      !node.check(ShapedType::getNumElements(shape.drop_front(2)) > 0, "the image is empty"))
    return;
  int64_t places = ShapedType::getNumElements(gridShape.drop_front().drop_back());
  Value flat = node.reshape(grid, {shape[0], places, spatial});
  SmallVector<Taps> taps;
  for (int64_t d = 0; d < spatial; ++d) {
    int64_t extent = shape[d + 2];
    Value at = node.reshape(node.sliceDim(flat, 2, spatial - 1 - d, 1), {shape[0], places});
    // From the centers of the outer elements, or from their edges.
    Value scaled =
        aligns ? f.mul(f.add(at, 1), double(extent - 1) / 2) : f.div(f.sub(f.mul(f.add(at, 1), double(extent)), 1), 2);
    taps.push_back(findTaps(node, scaled, extent, *between, *outside, aligns));
  }
  Type type = NodeContext::elementType(image);
  Value y = readTaps(node, image, taps, isa<FloatType>(type) ? type : f.f32());
  Ints result{shape[0], shape[1]};
  llvm::append_range(result, gridShape.drop_front().drop_back());
  node.result(0, node.cast(y ? node.reshape(y, result) : y, type));
}

//===----------------------------------------------------------------------===//
// RoiAlign
//===----------------------------------------------------------------------===//

namespace {
/// One dim of all regions: [regions, bins, samples, 2] of indices and weights.
struct RegionTaps {
  Value indices, weights;
  /// Which samples a region has, [regions, 1, samples]; null: all.
  Value exist;
};

/// Regions of interest: operands image [n, c, h, w], regions [r, 4] as x1, y1, x2, y2, and the sample of each.
class RegionImporter {
public:
  explicit RegionImporter(NodeContext &node) : node(node), f(node) {}
  void import();

private:
  bool countSamples();
  RegionTaps findTaps(unsigned dim);

  NodeContext &node;
  nn::Composer &f;
  Type type;
  /// Height, width.
  int64_t bins[2] = {1, 1}, samples[2] = {1, 1}, extents[2] = {1, 1}, ratio = 0;
  /// Per region, where they differ: [regions].
  Value counts[2];
  Value lows[2], sizes[2];
  bool isHalf = true;
  double scale = 1;
};
} // namespace

/// Starts and sizes of all regions. Without a ratio each region has as many samples as it has elements, which must be
/// known: all are given the most, and those too many the weight 0.
bool RegionImporter::countSamples() {
  Value regions = node.cast(node.operand(1), type);
  int64_t count = NodeContext::shape(regions)[0];
  auto column = [&](int64_t i) { return node.reshape(node.sliceDim(regions, 1, i, 1), {count}); };
  for (unsigned dim : {0u, 1u}) {
    auto edge = [&](int64_t i) {
      Value scaled = f.mul(column(i), scale);
      return isHalf ? f.sub(scaled, 0.5) : scaled;
    };
    lows[dim] = edge(1 - dim);
    sizes[dim] = f.sub(edge(3 - dim), lows[dim]);
    if (!isHalf)
      sizes[dim] = f.max(sizes[dim], 1);
    samples[dim] = ratio;
    if (ratio > 0 || node.failed())
      continue;
    counts[dim] = f.max(f.ceil(f.div(sizes[dim], double(bins[dim]))), 0);
    auto known = node.tryConstantOf(node.cast(counts[dim], f.i64()));
    if (!node.check(known.has_value(),
                    "with 'sampling_ratio' 0 the regions must be known at import" + node.explainUnknown()))
      return false;
    for (int64_t n : known->as<int64_t>())
      samples[dim] = std::max(samples[dim], n);
    if (!node.check(samples[dim] <= 4096, "a region has " + Twine(samples[dim]) + " samples a bin"))
      return false;
    samples[dim] = std::max<int64_t>(samples[dim], 1);
  }
  return !node.failed();
}

/// Samples lie evenly in their bin. More than one element outside they count nothing, else they are moved inside.
RegionTaps RegionImporter::findTaps(unsigned dim) {
  int64_t regions = NodeContext::shape(node.operand(1))[0], extent = extents[dim];
  auto perRegion = [&](Value value) { return node.reshape(value, {regions, 1, 1}); };
  Value bin = f.div(perRegion(sizes[dim]), double(bins[dim]));
  Value number = counts[dim] ? f.max(perRegion(counts[dim]), 1) : node.scalar(type, double(samples[dim]));
  Value sample = node.cast(f.iota({1, 1, samples[dim]}, 2, f.i64()), type);
  Value start = f.add(perRegion(lows[dim]), f.mul(node.cast(f.iota({1, bins[dim], 1}, 1, f.i64()), type), bin));
  Value place = f.add(start, f.mul(f.add(sample, 0.5), f.div(bin, number)));
  Value counted = f.both(f.ge(place, -1), f.le(place, double(extent)));
  Value exist = counts[dim] ? f.lt(sample, perRegion(counts[dim])) : Value();
  if (exist)
    counted = f.both(counted, exist);
  Value inside = f.clamp(place, 0, double(extent - 1)), low = f.floor(inside), t = f.sub(inside, low);
  Value keep = node.cast(counted, type);
  Value base = node.cast(low, f.i64());
  auto pair = [&](Value first, Value second) {
    return node.concat({node.unsqueeze(first, {3}), node.unsqueeze(second, {3})}, 3);
  };
  if (node.failed())
    return {};
  return {pair(base, f.min(f.add(base, 1), double(extent - 1))), pair(f.mul(f.sub(1, t), keep), f.mul(t, keep)), exist};
}

/// Rows and columns of a region are sampled apart, so its taps are an outer product of both.
void RegionImporter::import() {
  Value image = node.operand(0), owner = node.operand(2);
  bins[0] = node.intAttr("output_height", 1), bins[1] = node.intAttr("output_width", 1);
  ratio = node.intAttr("sampling_ratio", 0), scale = node.floatAttr("spatial_scale", 1.0);
  StringRef mode = node.stringAttr("mode", StringRef("avg")), edge = "output_half_pixel";
  if (node.getOpset() >= 16)
    edge = node.stringAttr("coordinate_transformation_mode", StringRef("half_pixel"));
  isHalf = edge == "half_pixel";
  Shape shape = NodeContext::shape(image), regions = NodeContext::shape(node.operand(1));
  type = NodeContext::elementType(image);
  if (node.failed() ||
      !node.check(mode == "avg" || mode == "max", "attribute 'mode' is '" + mode + "', which is not known") ||
      !node.check(isHalf || edge == "output_half_pixel",
                  "attribute 'coordinate_transformation_mode' is '" + edge + "', which is not known") ||
      !node.check(shape.size() == 4 && shape[2] > 0 && shape[3] > 0 && regions.size() == 2 && regions[1] == 4 &&
                      NodeContext::shape(owner) == Shape({regions[0]}),
                  "the image must have 4 dims, and the regions be [count, 4] with one sample each") ||
      !node.check(bins[0] > 0 && bins[1] > 0 && ratio >= 0 && ratio <= 4096, "the size of the result is out of range"))
    return;
  extents[0] = shape[2], extents[1] = shape[3];
  if (!countSamples())
    return;
  RegionTaps rows = findTaps(0), columns = findTaps(1);
  if (node.failed())
    return;
  // [regions, bins, samples, 2] as the first or second three dims behind the regions.
  auto spread = [&](Value value, bool isFirst) {
    Ints own(NodeContext::shape(value)), target{own[0]};
    if (!isFirst)
      target.append(3, 1);
    target.append(own.begin() + 1, own.end());
    if (isFirst)
      target.append(3, 1);
    return node.reshape(value, target);
  };
  Value first = f.mul(node.cast(owner, f.i64()), double(shape[2] * shape[3]));
  Value index = f.add(f.mul(spread(rows.indices, true), double(shape[3])), spread(columns.indices, false));
  index = f.add(index, node.reshape(first, {regions[0], 1, 1, 1, 1, 1, 1}));
  Value weight = f.mul(spread(rows.weights, true), spread(columns.weights, false));
  Value table = node.reshape(node.transpose(image, {0, 2, 3, 1}), {shape[0] * shape[2] * shape[3], shape[1]});
  Value read = f.gather(table, index, 0);
  if (mode == "max") {
    // Of weighted elements, as the standard's own code has it.
    Value weighed = f.mul(read, node.unsqueeze(weight, {7}));
    if (counts[0]) {
      Value exist = f.both(node.reshape(rows.exist, {regions[0], 1, samples[0], 1, 1, 1, 1, 1}),
                           node.reshape(columns.exist, {regions[0], 1, 1, 1, 1, samples[1], 1, 1}));
      weighed = f.select(exist, weighed, -std::numeric_limits<double>::infinity());
    }
    Value most = f.reduce(nn::ReduceKind::Max, weighed, {2, 3, 5, 6});
    if (counts[0])
      most = f.select(f.eq(node.reshape(f.mul(counts[0], counts[1]), {regions[0], 1, 1, 1}), 0), node.scalar(type, 0),
                      most);
    return node.result(0, node.transpose(most, {0, 3, 1, 2}));
  }
  Value y = f.einsum({read, weight}, "rpgkqhlc,rpgkqhl->rcpq");
  if (counts[0])
    y = f.div(y, node.reshape(f.max(f.mul(counts[0], counts[1]), 1), {regions[0], 1, 1, 1}));
  else
    y = f.div(y, double(samples[0] * samples[1]));
  node.result(0, y);
}

static void importRoiAlign(NodeContext &node) { RegionImporter(node).import(); }

//===----------------------------------------------------------------------===//
// DeformConv
//===----------------------------------------------------------------------===//

namespace {
/// One entry per spatial dim each.
struct DeformWindow {
  Ints kernel, strides, dilations, pads, result;
};
} // namespace

/// Checks that the offsets have one entry per place of the result, whose extents thus need not be computed twice.
static std::optional<DeformWindow> readDeformWindow(NodeContext &node) {
  Shape weight = NodeContext::shape(node.operand(1)), shape = NodeContext::shape(node.operand(0)),
        offset = NodeContext::shape(node.operand(2));
  if (!node.check(shape.size() >= 3 && weight.size() == shape.size() && offset.size() == shape.size(),
                  "input, weight and offset differ in rank"))
    return std::nullopt;
  size_t spatial = shape.size() - 2;
  DeformWindow window;
  window.kernel = Ints(weight.drop_front(2));
  std::optional<Ints> given = node.intsAttr("kernel_shape");
  window.strides = node.intsAttr("strides").value_or(Ints(spatial, 1));
  window.dilations = node.intsAttr("dilations").value_or(Ints(spatial, 1));
  window.pads = node.intsAttr("pads").value_or(Ints(2 * spatial, 0));
  if (!node.check((!given || *given == window.kernel) && window.strides.size() == spatial &&
                      window.dilations.size() == spatial && window.pads.size() == 2 * spatial,
                  "kernel_shape, strides, dilations or pads do not have one entry per spatial dim"))
    return std::nullopt;
  for (size_t d = 0; d < spatial; ++d) {
    int64_t reach = window.dilations[d] * (window.kernel[d] - 1) + 1;
    bool isPossible = window.strides[d] > 0 && window.dilations[d] > 0 && window.kernel[d] > 0 && shape[d + 2] > 0;
    int64_t room = shape[d + 2] + window.pads[d] + window.pads[spatial + d] - reach;
    if (!node.check(isPossible && room >= 0 && offset[d + 2] == room / window.strides[d] + 1,
                    "the offset does not have the spatial extents of the result"))
      return std::nullopt;
    window.result.push_back(offset[d + 2]);
  }
  return window;
}

/// Each group of channels is read at its own places, as many as the kernel has elements; then it is a product.
static void importDeformConv(NodeContext &node) {
  nn::Composer &f = node;
  Value x = node.operand(0), weight = node.operand(1), offset = node.operand(2), bias = node.operand(3),
        mask = node.operand(4);
  int64_t groups = node.intAttr("group", 1), offsetGroups = node.intAttr("offset_group", 1);
  std::optional<DeformWindow> window = readDeformWindow(node);
  if (!window || node.failed())
    return;
  Shape shape = NodeContext::shape(x), weightShape = NodeContext::shape(weight);
  int64_t spatial = window->kernel.size(), kernel = ShapedType::getNumElements(window->kernel),
          places = ShapedType::getNumElements(window->result), batch = shape[0], channels = shape[1];
  if (!node.check(groups > 0 && offsetGroups > 0 && channels % groups == 0 && channels % offsetGroups == 0 &&
                      weightShape[0] % groups == 0 && weightShape[1] == channels / groups &&
                      NodeContext::shape(offset)[1] == offsetGroups * kernel * spatial,
                  "channels, groups and offsets do not agree"))
    return;
  Type type = NodeContext::elementType(x);
  int64_t samples = batch * offsetGroups;
  // [samples, kernel, dims, places..]
  Ints apart{samples, kernel, spatial};
  llvm::append_range(apart, window->result);
  Value offsets = node.reshape(offset, apart);
  SmallVector<Taps> taps;
  for (int64_t d = 0, inner = kernel; d < spatial; ++d) {
    inner /= window->kernel[d];
    Ints own(2 + spatial, 1), each(2 + spatial, 1), all{samples, kernel};
    llvm::append_range(all, window->result);
    own[2 + d] = window->result[d], each[1] = kernel;
    // The place without offset: of the window, and in the window.
    Value start = f.iota(own, 2 + d, f.i64(), -window->pads[d], window->strides[d]);
    Value within = f.mod(f.iota(each, 1, f.i64()), double(inner * window->kernel[d]));
    within = f.mul(f.div(within, double(inner)), double(window->dilations[d]));
    Value own_ = node.reshape(node.sliceDim(offsets, 2, d, 1), all);
    Value at = f.add(own_, node.cast(f.add(start, within), type));
    taps.push_back(findTaps(node, node.reshape(at, {samples, kernel * places}), shape[d + 2], Between::Linear,
                            Outside::Zero, true));
  }
  Ints perGroup{samples, channels / offsetGroups};
  llvm::append_range(perGroup, shape.drop_front(2));
  Value read = readTaps(node, node.reshape(x, perGroup), taps, type);
  if (node.failed())
    return;
  read = node.reshape(read, {batch, offsetGroups, channels / offsetGroups, kernel * places});
  if (mask)
    read = f.mul(read, node.reshape(mask, {batch, offsetGroups, 1, kernel * places}));
  read = node.reshape(read, {batch, groups, channels / groups, kernel, places});
  Value rows = node.reshape(weight, {groups, weightShape[0] / groups, channels / groups, kernel});
  Value y = f.einsum({read, rows}, "ngckp,gock->ngop");
  Ints result{batch, weightShape[0]}, perChannel(1 + spatial, 1);
  llvm::append_range(result, window->result);
  perChannel[0] = weightShape[0];
  y = node.reshape(y, result);
  node.result(0, bias ? f.add(y, node.reshape(bias, perChannel)) : y);
}

//===----------------------------------------------------------------------===//
// Where rows go
//===----------------------------------------------------------------------===//

/// A region is one of its result.
static std::optional<int64_t> findRegions(NodeContext &, unsigned operand, int64_t dim) {
  return operand > 0 && dim == 0 ? std::optional(dim) : std::nullopt;
}

void cleave::onnx::registerSampling(Registry &registry) {
  registry.add("DeformConv", 19, {3, 5}, importDeformConv);
  registry.add("GridSample", 16, {2, 2}, importGridSample);
  registry.add("RoiAlign", 10, {3, 3}, importRoiAlign).follow(findRegions);
}
