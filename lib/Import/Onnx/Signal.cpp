//===- Signal.cpp - Fourier transforms, spectra, determinants -------------===//
//
// A transform of n elements is a product with a table of n x n cosines and sines, made at import: exact to rounding, and
// for the lengths of audio frames (up to 2,048) no slower than what moves the data. Longer ones are refused.
//
//   x [.., n, 1 or 2] * W [n, 1 or 2, k, 2] -> [.., k, 2]      W = e^(-+ 2 pi i n k / N)
//
//===----------------------------------------------------------------------===//
#include "NodeContext.h"
#include "Registry.h"
#include "cleave/Dialect/Nn/IR/Ops/Indexing.h"
#include "cleave/Dialect/Nn/IR/Ops/Reduction.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

/// Elements of a table that is made at import.
constexpr int64_t kMaxTable = int64_t(1) << 24;

/// The table [length, inParts, bins, outParts] of a transform of `total` elements. A one-sided inverse has bins on the
/// left, of which all but the first, and the middle one of an even length, stand for two.
static Value makeTable(NodeContext &node, Type type, int64_t total, int64_t length, int64_t inParts, int64_t bins,
                       int64_t outParts, bool isInverse, bool isHalfInput) {
  int64_t count = length * inParts * bins * outParts;
  if (!node.check(count <= kMaxTable, "a transform of " + Twine(total) +
                                          " elements is not supported: its table would have " + Twine(count) +
                                          " elements, more than " + Twine(kMaxTable)))
    return {};
  SmallVector<double> values;
  values.reserve(count);
  double sign = isInverse ? 1 : -1, factor = isInverse ? 1.0 / double(total) : 1;
  for (int64_t n = 0; n < length; ++n) {
    double weight = isHalfInput && n > 0 && 2 * n != total ? 2 * factor : factor;
    for (int64_t in = 0; in < inParts; ++in)
      for (int64_t k = 0; k < bins; ++k) {
        // Reduced first, so that angles of long transforms keep their digits.
        double angle = sign * 2 * llvm::numbers::pi * double(n * k % total) / double(total);
        double re = std::cos(angle) * weight, im = std::sin(angle) * weight;
        // (a + bi)(c + di): the real part comes from a c - b d, the other from a d + b c.
        values.push_back(in == 0 ? re : -im);
        if (outParts == 2)
          values.push_back(in == 0 ? im : re);
      }
  }
  return node.table(type, {length, inParts, bins, outParts}, values);
}

/// Operands: x [.., 1 or 2], length, and since opset 20 the axis.
static void importDft(NodeContext &node) {
  nn::Composer &f = node;
  Value x = node.operand(0);
  int64_t rank = NodeContext::rank(x);
  bool isInverse = node.boolAttr("inverse", false), isOneSided = node.boolAttr("onesided", false);
  int64_t axis = node.getOpset() >= 20 ? (node.hasOperand(2) ? node.constantInt(2) : -2) : node.intAttr("axis", 1);
  if (node.failed() || !node.check(rank >= 2, "the input has no dim besides that of real and imaginary part"))
    return;
  axis = node.axis(axis, rank);
  Shape shape = NodeContext::shape(x);
  int64_t parts = shape.back(), given = shape[axis], last = rank - 1;
  // A spectrum of one side has half the elements of what it is of.
  bool isHalfInput = isInverse && isOneSided;
  int64_t total = node.hasOperand(1) ? node.constantInt(1) : isHalfInput ? 2 * (given - 1) : given;
  if (node.failed() || !node.check(axis != last, "the axis is that of real and imaginary part") ||
      !node.check(parts == 1 || parts == 2, "the last dim must be 1, real, or 2, complex") ||
      !node.check(total > 0 && total <= kMaxTable, "the length is " + Twine(total)))
    return;
  int64_t bins = isOneSided && !isInverse ? total / 2 + 1 : total, outParts = isHalfInput ? 1 : 2;
  int64_t length = std::min(given, isHalfInput ? total / 2 + 1 : total); // others are cut off, or zeros
  Value table =
      makeTable(node, NodeContext::elementType(x), total, length, parts, bins, outParts, isInverse, isHalfInput);
  std::string in, out;
  for (int64_t dim = 0; dim < rank; ++dim) {
    in.push_back(dim == axis ? 'y' : dim == last ? 'z' : char('a' + dim));
    out.push_back(dim == axis ? 'w' : dim == last ? 'v' : char('a' + dim));
  }
  if (node.check(rank <= 20, "more than 20 dims"))
    node.result(0, f.einsum({node.sliceDim(x, axis, 0, length), table}, in + ",yzwv->" + out));
}

/// Operands: signal [batch, length, 1 or 2], step, window, length of a frame. Frames are copied out by one gather.
static void importStft(NodeContext &node) {
  nn::Composer &f = node;
  Value signal = node.operand(0), window = node.operand(2);
  bool isOneSided = node.boolAttr("onesided", true);
  int64_t step = node.constantInt(1);
  Shape shape = NodeContext::shape(signal);
  if (node.failed() || !node.check((shape.size() == 3 && (shape[2] == 1 || shape[2] == 2)) || shape.size() == 2,
                                   "the signal must be [batch, length, 1 or 2]"))
    return;
  int64_t batch = shape[0], length = shape[1], parts = shape.size() == 3 ? shape[2] : 1;
  if (!node.check(node.hasOperand(3) || window, "neither a window nor the length of a frame is given"))
    return;
  int64_t frame = node.hasOperand(3) ? node.constantInt(3) : NodeContext::shape(window).back();
  if (node.failed() ||
      !node.check(step > 0 && frame > 0 && frame <= length, "frames of " + Twine(frame) + " in steps of " +
                                                                Twine(step) + " do not fit into a signal of " +
                                                                Twine(length)) ||
      !node.check(!window || NodeContext::shape(window) == Shape({frame}), "the window is not as long as a frame"))
    return;
  int64_t count = (length - frame) / step + 1, bins = isOneSided ? frame / 2 + 1 : frame;
  Value place = f.add(f.iota({count, 1}, 0, f.i64(), 0, step), f.iota({1, frame}, 1, f.i64()));
  Value frames = f.gather(node.reshape(signal, {batch, length, parts}), place, 1);
  if (window)
    frames = f.mul(frames, node.reshape(window, {frame, 1}));
  Value table = makeTable(node, NodeContext::elementType(signal), frame, frame, parts, bins, 2, false, false);
  node.result(0, f.einsum({frames, table}, "afyz,yzwv->afwv"));
}

/// Triangles between points that lie evenly on the mel scale (`2595 log10(1 + hz / 700)`), [bins of a spectrum, mels]:
/// the standard's own formula, whose points are rounded down to bins.
static void importMelWeights(NodeContext &node) {
  int64_t mels = node.constantInt(0), length = node.constantInt(1), rate = node.constantInt(2);
  SmallVector<double> edges = node.constantFloats(3);
  llvm::append_range(edges, node.constantFloats(4));
  Type type = node.typeAttr("output_datatype", FLOAT);
  if (node.failed() || !node.check(edges.size() == 2 && mels > 0 && length > 0 && rate > 0 && edges[0] < edges[1],
                                   "the numbers of bins, the rate or the edges are out of range"))
    return;
  int64_t bins = length / 2 + 1;
  if (!node.check(mels <= kMaxTable && bins <= kMaxTable && mels * bins <= kMaxTable, "the matrix is too large"))
    return;
  auto toMel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  double low = toMel(edges[0]), stride = (toMel(edges[1]) - low) / double(mels + 2);
  SmallVector<int64_t> points;
  for (int64_t i = 0; i < mels + 2; ++i) {
    double hertz = 700 * (std::pow(10, (double(i) * stride + low) / 2595) - 1);
    points.push_back(int64_t(std::floor(double(length + 1) * hertz / double(rate))));
  }
  SmallVector<double> values(mels * bins, 0);
  for (int64_t mel = 0; mel < mels; ++mel) {
    int64_t first = points[mel], center = points[mel + 1], end = points[mel + 2];
    auto set = [&](int64_t bin, double value) {
      if (bin >= 0 && bin < bins)
        values[bin * mels + mel] = value;
    };
    for (int64_t bin = first; bin < center; ++bin)
      set(bin, double(bin - first) / double(center - first));
    set(center, 1);
    for (int64_t bin = center + 1; bin < end; ++bin)
      set(bin, double(end - bin) / double(end - center));
  }
  node.result(0, node.table(type, {bins, mels}, values));
}

//===----------------------------------------------------------------------===//
// Det
//===----------------------------------------------------------------------===//

/// Larger matrices would make long programs.
constexpr int64_t kMaxDet = 32;

/// Gaussian elimination with pivots, unrolled: per step the row with the largest first element goes to the front (the
/// sign changes if it was not there), and is taken off the others, which lose a row and a column.
static void importDet(NodeContext &node) {
  nn::Composer &f = node;
  Value x = node.operand(0);
  Ints shape(NodeContext::shape(x));
  if (!node.check(shape.size() >= 2 && shape.back() == shape[shape.size() - 2], "the last two dims must be a square"))
    return;
  int64_t size = shape.back(), batch = ShapedType::getNumElements(Shape(shape).drop_back(2));
  if (!node.check(size <= kMaxDet,
                  "a determinant of " + Twine(size) + " rows is not supported, only of up to " + Twine(kMaxDet)))
    return;
  Type type = NodeContext::elementType(x);
  Value rest = node.reshape(x, {batch, size, size});
  Value det = node.broadcast(node.scalar(type, 1), {batch});
  for (int64_t n = size; n > 0 && !node.failed(); --n) {
    Value column = node.reshape(node.sliceDim(rest, 2, 0, 1), {batch, n});
    Value place = node.create<nn::ArgReduceOp>(nn::ReduceKind::Max, f.abs(column), 1, false, false);
    Value chosen = node.create<nn::OneHotOp>(place, node.cast(node.vector({0, 1}), type), n, 1);
    Value row = f.einsum({chosen, rest}, "bn,bnk->bk"), pivot = node.reshape(node.sliceDim(row, 1, 0, 1), {batch});
    det = f.mul(det, f.select(f.eq(place, 0), pivot, f.neg(pivot)));
    if (n == 1)
      break;
    // The first row goes where the chosen one was.
    Value others = f.select(f.eq(node.unsqueeze(chosen, {2}), 1), node.sliceDim(rest, 1, 0, 1), rest);
    others = node.sliceDim(others, 1, 1, n - 1);
    Value isSingular = f.eq(pivot, 0);
    Value divisor = node.reshape(f.select(isSingular, node.scalar(type, 1), pivot), {batch, 1, 1});
    Value factor = f.div(node.sliceDim(others, 2, 0, 1), divisor);
    Value behind = node.reshape(node.sliceDim(row, 1, 1, n - 1), {batch, 1, n - 1});
    rest = f.sub(node.sliceDim(others, 2, 1, n - 1), f.mul(factor, behind));
  }
  node.result(0, node.reshape(det, Shape(shape).drop_back(2)));
}

void cleave::onnx::registerSignal(Registry &registry) {
  registry.add("DFT", 17, {1, 2}, importDft);
  registry.add("DFT", 20, {1, 3}, importDft);
  registry.add("Det", 11, {1, 1}, importDet);
  registry.add("MelWeightMatrix", 17, {5, 5}, importMelWeights);
  registry.add("STFT", 17, {2, 4}, importStft);
}
