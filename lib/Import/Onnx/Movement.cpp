//===- Movement.cpp - elements change place -------------------------------===//
//
// Shapes, axes, splits and pads are attributes in older opsets and operands in newer ones; operands must be known at
// import. Each op has one function that takes them as numbers, whichever way they came.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "Families.h"
#include "NodeContext.h"
#include "Registry.h"
#include "cleave/Dialect/Nn/IR/SameDim.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/CheckedArithmetic.h"
#include "llvm/Support/InterleavedRange.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

static std::string print(Shape shape) { return llvm::interleaved_array(shape).str(); }

/// The ints of operand `index`, or of an attribute; nothing if neither is there.
static std::optional<Ints> operandOrAttr(NodeContext &node, unsigned index, StringRef attr, unsigned operandSince) {
  if (node.getOpset() < operandSince)
    return node.intsAttr(attr);
  return node.hasOperand(index) ? std::optional(node.constantInts(index)) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Reshape and its relatives
//===----------------------------------------------------------------------===//

/// Replaces 0 (keep the input's) and -1 (whatever is left) in the shape that the model asks for.
static Ints resolveShape(NodeContext &node, Shape input, Ints target, bool allowZero) {
  std::string asked = print(target);
  int64_t open = -1, known = 1, total = ShapedType::getNumElements(input);
  for (auto [i, extent] : llvm::enumerate(target)) {
    if (extent == 0 && !allowZero) {
      if (!node.check(i < input.size(),
                      "shape " + asked + " copies dim " + Twine(i) + ", which " + print(input) + " lacks"))
        return {};
      extent = input[i];
    }
    if (!node.check(extent >= -1, "shape " + asked + " has a negative dim"))
      return {};
    if (extent == -1) {
      if (!node.check(open < 0, "shape " + asked + " has more than one -1"))
        return {};
      open = i;
      continue;
    }
    std::optional<int64_t> product = llvm::checkedMul(known, extent);
    if (!node.check(product.has_value(), "shape " + asked + " overflows"))
      return {};
    known = *product;
  }
  if (open >= 0) {
    // Where another dim is 0 any size fits; ONNX leaves it open, numpy refuses.
    if (!node.check(known != 0 && total % known == 0, print(input) + " does not fit into shape " + asked))
      return {};
    target[open] = total / known;
    known = total;
  }
  node.check(known == total, print(input) + " does not fit into shape " + asked);
  return target;
}

static void importReshape(NodeContext &node) {
  bool allowZero = node.getOpset() >= 14 && node.boolAttr("allowzero", false);
  Ints target = node.constantInts(1);
  if (node.failed())
    return;
  target = resolveShape(node, NodeContext::shape(node.operand(0)), target, allowZero);
  node.result(0, node.reshape(node.operand(0), target));
}

/// The axis may be the rank: then the second dim is an empty product.
static void importFlatten(NodeContext &node) {
  Shape shape = NodeContext::shape(node.operand(0));
  int64_t rank = shape.size(), axis = node.intAttr("axis", 1);
  if (!node.check(axis >= -rank && axis <= rank,
                  "axis " + Twine(axis) + " is outside [" + Twine(-rank) + ", " + Twine(rank) + "]"))
    return;
  axis += axis < 0 ? rank : 0;
  node.result(0, node.reshape(node.operand(0), {ShapedType::getNumElements(shape.take_front(axis)),
                                                ShapedType::getNumElements(shape.drop_front(axis))}));
}

/// Without axes every dim of size 1 goes.
static void importSqueeze(NodeContext &node) {
  Shape shape = NodeContext::shape(node.operand(0));
  std::optional<Ints> given = operandOrAttr(node, 1, "axes", 13);
  llvm::SmallBitVector dropped(shape.size());
  if (given)
    for (int64_t axis : node.axes(*given, shape.size())) {
      node.check(shape[axis] == 1, "dim " + Twine(axis) + " of " + print(shape) + " is not 1");
      dropped.set(axis);
    }
  Ints kept;
  for (auto [i, extent] : llvm::enumerate(shape))
    if (given ? !dropped[i] : extent != 1)
      kept.push_back(extent);
  node.result(0, node.reshape(node.operand(0), kept));
}

static void importUnsqueeze(NodeContext &node) {
  std::optional<Ints> given = operandOrAttr(node, 1, "axes", 13);
  if (!node.check(given.has_value(), "'axes' is missing"))
    return;
  node.result(0,
              node.unsqueeze(node.operand(0), node.axes(*given, NodeContext::rank(node.operand(0)) + given->size())));
}

static void importTranspose(NodeContext &node) {
  int64_t rank = NodeContext::rank(node.operand(0));
  std::optional<Ints> permutation = node.intsAttr("perm");
  if (!permutation)
    permutation = llvm::to_vector(llvm::reverse(llvm::seq<int64_t>(0, rank)));
  // Sorted only to see that each dim is there once; the order that counts is the given one.
  Ints sorted = node.axes(*permutation, rank, "perm");
  if (!node.check(int64_t(sorted.size()) == rank, "perm " + print(*permutation) +
                                                      " does not have one entry per dim of " +
                                                      print(NodeContext::shape(node.operand(0)))))
    return;
  for (int64_t &dim : *permutation)
    dim += dim < 0 ? rank : 0;
  node.result(0, node.transpose(node.operand(0), *permutation));
}

//===----------------------------------------------------------------------===//
// Repeating
//===----------------------------------------------------------------------===//

static void importExpand(NodeContext &node) {
  Ints target = node.constantInts(1);
  Shape input = NodeContext::shape(node.operand(0));
  if (!node.check(llvm::all_of(target, [](int64_t extent) { return extent >= 0; }),
                  "shape " + print(target) + " has a negative dim"))
    return;
  std::optional<Ints> joined = nn::getBroadcastShape({input, target});
  if (node.check(joined.has_value(), print(input) + " does not broadcast to " + print(target)))
    node.result(0, node.broadcast(node.operand(0), *joined));
}

/// Repeats as a reshape to [1, d0, 1, d1, ...], a broadcast of the ones, and a reshape back.
static void importTile(NodeContext &node) {
  Ints repeats = node.constantInts(1);
  Shape input = NodeContext::shape(node.operand(0));
  if (!node.check(repeats.size() == input.size(),
                  Twine(repeats.size()) + " repeats for " + Twine(input.size()) + " dims") ||
      !node.check(llvm::all_of(repeats, [](int64_t n) { return n >= 0; }),
                  "repeats " + print(repeats) + " are negative"))
    return;
  Ints apart, repeated, merged;
  for (auto [extent, count] : llvm::zip(input, repeats)) {
    if (count != 1) {
      apart.push_back(1);
      repeated.push_back(count);
    }
    apart.push_back(extent);
    repeated.push_back(extent);
    std::optional<int64_t> product = llvm::checkedMul(extent, count);
    if (!node.check(product.has_value(), "repeats " + print(repeats) + " overflow"))
      return;
    merged.push_back(*product);
  }
  Value tiled = node.broadcast(node.reshape(node.operand(0), apart), repeated);
  node.result(0, node.reshape(tiled, merged));
}

//===----------------------------------------------------------------------===//
// Parts and wholes
//===----------------------------------------------------------------------===//

static void importConcat(NodeContext &node) {
  int64_t axis = node.axis(node.intAttr("axis"), NodeContext::rank(node.operand(0)));
  node.result(0, node.concat(node.getOperands(), axis));
}

/// ONNX clamps starts and ends to the dim; with a negative step an end of -1 after clamping means "through 0".
static void importSlice(NodeContext &node) {
  Shape shape = NodeContext::shape(node.operand(0));
  // Before opset 10 attributes, and no steps.
  bool areOperands = node.getOpset() >= 10;
  auto read = [&](unsigned index, StringRef name) { return operandOrAttr(node, index, name, 10); };
  std::optional<Ints> starts = read(1, "starts"), ends = read(2, "ends"), axes = read(3, "axes");
  std::optional<Ints> steps = areOperands && node.hasOperand(4) ? std::optional(node.constantInts(4)) : std::nullopt;
  if (!node.check(starts && ends, "'starts' and 'ends' are needed"))
    return;
  if (!axes)
    axes = llvm::to_vector(llvm::seq<int64_t>(0, starts->size()));
  if (!steps)
    steps = Ints(starts->size(), 1);
  size_t count = starts->size();
  if (!node.check(ends->size() == count && axes->size() == count && steps->size() == count,
                  "'starts', 'ends', 'axes' and 'steps' differ in length"))
    return;
  node.axes(*axes, shape.size());
  if (node.failed())
    return;
  Ints from(shape.size(), 0), sizes(shape), by(shape.size(), 1);
  for (size_t i = 0; i < count; ++i) {
    int64_t dim = (*axes)[i] < 0 ? (*axes)[i] + int64_t(shape.size()) : (*axes)[i];
    int64_t extent = shape[dim], step = (*steps)[i];
    if (!node.check(step != 0 && step != std::numeric_limits<int64_t>::min(), "a step is 0 or out of range"))
      return;
    auto clamp = [&](int64_t place, int64_t low, int64_t high) {
      return std::clamp(place < 0 ? place + extent : place, low, high);
    };
    if (extent == 0)
      continue;
    int64_t start = step > 0 ? clamp((*starts)[i], 0, extent) : clamp((*starts)[i], 0, extent - 1);
    int64_t end = step > 0 ? clamp((*ends)[i], 0, extent) : clamp((*ends)[i], -1, extent - 1);
    int64_t span = step > 0 ? end - start : start - end, stride = std::abs(step);
    // One form for each slice: an empty one begins at 0, one element has step 1.
    sizes[dim] = span > 0 ? (span - 1) / stride + 1 : 0;
    from[dim] = sizes[dim] ? start : 0;
    by[dim] = sizes[dim] > 1 ? step : 1;
  }
  node.result(0, node.slice(node.operand(0), from, sizes, by));
}

/// Sizes of the parts: given, or equal with a smaller last one.
static void importSplit(NodeContext &node) {
  Value input = node.operand(0);
  int64_t axis = node.axis(node.intAttr("axis", 0), NodeContext::rank(input));
  std::optional<Ints> sizes = operandOrAttr(node, 1, "split", 13);
  int64_t parts = node.getNumResults();
  if (node.getOpset() >= 18 && node.hasAttr("num_outputs")) {
    int64_t wanted = node.intAttr("num_outputs");
    if (!node.check(!sizes, "both 'split' and 'num_outputs' are given") ||
        !node.check(wanted == parts,
                    "'num_outputs' is " + Twine(wanted) + ", but the node has " + Twine(parts) + " outputs"))
      return;
  }
  if (node.failed())
    return;
  int64_t extent = NodeContext::shape(input)[axis];
  if (!sizes) {
    int64_t each = (extent + parts - 1) / parts;
    if (!node.check(node.getOpset() >= 18 || extent % parts == 0, "dim " + Twine(axis) + " of size " + Twine(extent) +
                                                                      " does not split into " + Twine(parts) +
                                                                      " equal parts"))
      return;
    sizes.emplace();
    for (int64_t start = 0; int64_t(sizes->size()) < parts; start += each)
      sizes->push_back(std::max<int64_t>(0, std::min(each, extent - start)));
  }
  bool isNatural = llvm::all_of(*sizes, [&](int64_t size) { return size >= 0 && size <= extent; });
  if (!node.check(int64_t(sizes->size()) == parts, Twine(sizes->size()) + " sizes for " + Twine(parts) + " outputs") ||
      !node.check(isNatural && std::accumulate(sizes->begin(), sizes->end(), int64_t(0)) == extent,
                  "sizes " + print(*sizes) + " do not add up to dim " + Twine(axis) + " of size " + Twine(extent)))
    return;
  int64_t start = 0;
  for (auto [i, size] : llvm::enumerate(*sizes)) {
    node.result(i, node.sliceDim(input, axis, start, size));
    start += size;
  }
}

//===----------------------------------------------------------------------===//
// Pad
//===----------------------------------------------------------------------===//

static std::optional<nn::PadMode> padMode(NodeContext &node) {
  StringRef name = node.stringAttr("mode", StringRef("constant"));
  std::optional<nn::PadMode> mode = nn::symbolizePadMode(name);
  bool isKnown = mode && (*mode != nn::PadMode::Wrap || node.getOpset() >= 19);
  return node.check(isKnown, "attribute 'mode' is '" + name + "', which is not known") ? mode : std::nullopt;
}

/// Negative amounts crop first.
static void pad(NodeContext &node, Value value, Shape low, Shape high) {
  std::optional<nn::PadMode> mode = padMode(node);
  Value input = node.operand(0);
  Shape shape = NodeContext::shape(input);
  if (node.failed())
    return;
  Ints starts, sizes, padLow, padHigh;
  // So far apart that no sum of an extent and its pads overflows.
  constexpr int64_t limit = int64_t(1) << 40;
  for (auto [extent, before, after] : llvm::zip(shape, low, high)) {
    if (!node.check(std::min(before, after) > -limit && std::max(before, after) < limit, "pads are out of range"))
      return;
    starts.push_back(std::max<int64_t>(0, -before));
    sizes.push_back(extent - starts.back() - std::max<int64_t>(0, -after));
    padLow.push_back(std::max<int64_t>(0, before));
    padHigh.push_back(std::max<int64_t>(0, after));
    if (!node.check(sizes.back() >= 0, "negative pads crop more than there is"))
      return;
  }
  input = node.slice(input, starts, sizes, Ints(shape.size(), 1));
  bool isPadded =
      llvm::any_of(padLow, [](int64_t n) { return n > 0; }) || llvm::any_of(padHigh, [](int64_t n) { return n > 0; });
  if (isPadded)
    input = node.create<nn::PadOp>(*mode, input, *mode == nn::PadMode::Constant ? value : Value(), padLow, padHigh);
  node.result(0, input);
}

static void importPadV2(NodeContext &node) {
  std::optional<Ints> pads = node.intsAttr("pads");
  double fill = node.floatAttr("value", 0.0);
  size_t rank = NodeContext::rank(node.operand(0));
  if (node.check(pads && pads->size() == 2 * rank, "'pads' needs a low and a high amount per dim"))
    pad(node, node.scalarLike(node.operand(0), fill), Shape(*pads).take_front(rank), Shape(*pads).drop_front(rank));
}

/// From opset 18 on amounts may be of some dims only; the others get none.
static void importPadV11(NodeContext &node) {
  Ints pads = node.constantInts(1);
  int64_t rank = NodeContext::rank(node.operand(0));
  Value value = node.operand(2);
  if (value && node.check(ShapedType::getNumElements(NodeContext::shape(value)) == 1, "the pad value is not a scalar"))
    value = node.reshape(value, {});
  Ints axes = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  if (node.getOpset() >= 18 && node.hasOperand(3)) {
    axes = node.constantInts(3);
    node.axes(axes, rank);
  }
  if (node.failed() ||
      !node.check(pads.size() == 2 * axes.size(), Twine(pads.size()) + " pads for " + Twine(axes.size()) + " axes"))
    return;
  Ints low(rank, 0), high(rank, 0);
  for (auto [i, axis] : llvm::enumerate(axes)) {
    int64_t dim = axis < 0 ? axis + rank : axis;
    low[dim] = pads[i];
    high[dim] = pads[i + axes.size()];
  }
  pad(node, value, low, high);
}

/// Centers the input in the shape asked for; where a difference is odd, the last element goes or is added.
static void importCenterCropPad(NodeContext &node) {
  Value x = node.operand(0);
  int64_t rank = NodeContext::rank(x);
  Ints target = node.constantInts(1),
       axes = node.intsAttr("axes").value_or(llvm::to_vector(llvm::seq<int64_t>(0, rank)));
  node.axes(axes, rank);
  if (node.failed() || !node.check(target.size() == axes.size(), "there must be one size per axis"))
    return;
  Ints starts(rank, 0), sizes(NodeContext::shape(x)), low(rank, 0), high(rank, 0);
  bool isPadded = false;
  for (auto [axis, size] : llvm::zip(axes, target)) {
    if (!node.check(size >= 0, "the size " + Twine(size) + " is negative"))
      return;
    int64_t dim = axis < 0 ? axis + rank : axis, extra = size - sizes[dim];
    if (extra < 0) {
      starts[dim] = -extra / 2;
      sizes[dim] = size;
    } else {
      low[dim] = extra / 2;
      high[dim] = extra - extra / 2;
      isPadded |= extra > 0;
    }
  }
  x = node.slice(x, starts, sizes, Ints(rank, 1));
  node.result(0, isPadded ? node.create<nn::PadOp>(nn::PadMode::Constant, x, Value(), low, high) : x);
}

//===----------------------------------------------------------------------===//
// Depth and space, triangles
//===----------------------------------------------------------------------===//

/// Checks a [batch, channels, height, width] operand and gives the block size; 0 after an error.
static int64_t blockSize(NodeContext &node) {
  int64_t block = node.intAttr("blocksize");
  bool isFine = node.check(NodeContext::rank(node.operand(0)) == 4, "the input does not have 4 dims") &&
                node.check(block > 0 && block < (1 << 11), "attribute 'blocksize' is " + Twine(block));
  return isFine && !node.failed() ? block : 0;
}

/// Which part of a channel's number is the place in the block: the major one (DCR) or the minor one (CRD).
static void importDepthToSpace(NodeContext &node) {
  int64_t b = blockSize(node);
  StringRef mode = node.getOpset() >= 11 ? node.stringAttr("mode", StringRef("DCR")) : StringRef("DCR");
  if (!b || !node.check(mode == "DCR" || mode == "CRD", "attribute 'mode' is '" + mode + "', expected 'DCR' or 'CRD'"))
    return;
  Shape s = NodeContext::shape(node.operand(0));
  if (!node.check(s[1] % (b * b) == 0,
                  Twine(s[1]) + " channels do not divide by the square of 'blocksize' " + Twine(b)))
    return;
  int64_t depth = s[1] / (b * b);
  Value y;
  if (mode == "DCR")
    y = node.transpose(node.reshape(node.operand(0), {s[0], b, b, depth, s[2], s[3]}), {0, 3, 4, 1, 5, 2});
  else
    y = node.transpose(node.reshape(node.operand(0), {s[0], depth, b, b, s[2], s[3]}), {0, 1, 4, 2, 5, 3});
  node.result(0, node.reshape(y, {s[0], depth, s[2] * b, s[3] * b}));
}

static void importSpaceToDepth(NodeContext &node) {
  int64_t b = blockSize(node);
  if (!b)
    return;
  Shape s = NodeContext::shape(node.operand(0));
  if (!node.check(s[2] % b == 0 && s[3] % b == 0, "height and width do not divide by 'blocksize' " + Twine(b)))
    return;
  Value blocks = node.reshape(node.operand(0), {s[0], s[1], s[2] / b, b, s[3] / b, b});
  node.result(0, node.reshape(node.transpose(blocks, {0, 3, 5, 1, 2, 4}), {s[0], s[1] * b * b, s[2] / b, s[3] / b}));
}

static void importTrilu(NodeContext &node) {
  bool upper = node.boolAttr("upper", true);
  int64_t offset = node.hasOperand(1) ? node.constantInt(1) : 0;
  node.result(0, node.create<nn::TriluOp>(node.operand(0), offset, upper));
}

//===----------------------------------------------------------------------===//
// Where rows go
//===----------------------------------------------------------------------===//

/// Of a reshape, whatever it is called: rows that stay a dim of their own.
static std::optional<int64_t> findReshapedRows(NodeContext &node, unsigned operand, int64_t dim) {
  Shape from = NodeContext::shape(node.operand(operand)), to = NodeContext::shape(node.getResults().front());
  return operand == 0 ? nn::findReshapedDim(from, dim, to) : std::nullopt;
}

static std::optional<int64_t> findTransposedRows(NodeContext &node, unsigned operand, int64_t dim) {
  int64_t rank = NodeContext::rank(node.operand(operand));
  Ints order = node.intsAttr("perm").value_or(llvm::to_vector(llvm::reverse(llvm::seq<int64_t>(0, rank))));
  return llvm::find(order, dim) - order.begin();
}

/// Of what is put together or taken apart along another dim.
static std::optional<int64_t> findRowsBeside(NodeContext &node, unsigned operand, int64_t dim) {
  int64_t axis = node.axis(node.intAttr("axis", 0), NodeContext::rank(node.operand(operand)));
  return axis == dim ? std::nullopt : std::optional(dim);
}

/// All rows, or the first ones, as they are: nothing for others. Ends count from the front.
static std::optional<int64_t> findSlicedRows(NodeContext &at, unsigned operand, int64_t dim) {
  if (operand != 0)
    return std::nullopt;
  Shape from = NodeContext::shape(at.operand(0)), to = NodeContext::shape(at.getResults().front());
  bool areOperands = at.getOpset() >= 10;
  auto read = [&](unsigned index, StringRef name) {
    return areOperands ? at.hasOperand(index) ? std::optional(at.constantInts(index)) : std::nullopt
                       : at.intsAttr(name);
  };
  Ints starts = *read(1, "starts"), ends = *read(2, "ends");
  Ints axes = read(3, "axes").value_or(llvm::to_vector(llvm::seq<int64_t>(0, starts.size())));
  Ints steps = areOperands && at.hasOperand(4) ? at.constantInts(4) : Ints(starts.size(), 1);
  for (auto [axis, start, end, step] : llvm::zip(axes, starts, ends, steps))
    if (at.axis(axis, from.size()) == dim && (start != 0 || end < 0 || step != 1))
      return std::nullopt;
  return to[dim] > 0 ? std::optional(dim) : std::nullopt;
}

/// Extents are the operand's elements, aligned at the end.
static std::optional<int64_t> findExpanded(NodeContext &node, int64_t element) {
  return element + NodeContext::rank(node.getResults().front()) - NodeContext::shape(node.operand(1))[0];
}
static std::optional<int64_t> findReshaped(NodeContext &, int64_t element) { return element; }
/// Repeated from one.
static std::optional<int64_t> findRepeated(NodeContext &node, int64_t element) {
  return NodeContext::shape(node.operand(0))[element] == 1 ? std::optional(element) : std::nullopt;
}
/// Ends of a slice that begins with the first row.
static std::optional<int64_t> findEnd(NodeContext &node, int64_t element) {
  int64_t dim = element;
  if (node.hasOperand(3))
    dim = node.axis(node.constantInts(3)[element], NodeContext::rank(node.getResults().front()));
  bool isForward = !node.hasOperand(4) || node.constantInts(4)[element] == 1;
  return node.constantInts(1)[element] == 0 && isForward ? std::optional(dim) : std::nullopt;
}

void cleave::onnx::registerMovement(Registry &registry) {
  Arity one{1, 1}, two{2, 2};
  registry.add("CenterCropPad", 18, two, importCenterCropPad);
  registry.add("Concat", 4, {1, Arity::kAny}, importConcat).follow(findRowsBeside).mix(Mixing::Concat);
  registry.add("DepthToSpace", one, importDepthToSpace);
  registry.add("Expand", 8, two, importExpand).follow(findBroadcastRows).sizedBy(1, findExpanded);
  registry.add("Flatten", one, importFlatten).follow(findReshapedRows);
  registry.add("Pad", 2, one, importPadV2);
  registry.add("Pad", 11, {2, 3}, importPadV11);
  registry.add("Pad", 18, {2, 4}, importPadV11);
  registry.add("Reshape", 5, two, importReshape).follow(findReshapedRows).sizedBy(1, findReshaped);
  registry.add("Slice", 1, one, importSlice).follow(findSlicedRows, /*slices=*/true);
  registry.add("Slice", 10, {3, 5}, importSlice).follow(findSlicedRows, /*slices=*/true).sizedBy(2, findEnd);
  registry.add("SpaceToDepth", one, importSpaceToDepth);
  registry.add("Split", 2, {1, 1, Arity::kAny}, importSplit).follow(findRowsBeside);
  registry.add("Split", 13, {1, 2, Arity::kAny}, importSplit).follow(findRowsBeside);
  registry.add("Squeeze", 1, one, importSqueeze).follow(findReshapedRows);
  registry.add("Squeeze", 13, {1, 2}, importSqueeze).follow(findReshapedRows);
  registry.add("Tile", 6, two, importTile).sizedBy(1, findRepeated);
  registry.add("Transpose", one, importTranspose).follow(findTransposedRows);
  registry.add("Trilu", 14, {1, 2}, importTrilu);
  registry.add("Unsqueeze", 1, one, importUnsqueeze).follow(findReshapedRows);
  registry.add("Unsqueeze", 13, two, importUnsqueeze).follow(findReshapedRows);
}
