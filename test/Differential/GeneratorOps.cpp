//===- GeneratorOps.cpp - the ops of random programs ----------------------===//
//
// One function per op or family: picks operands among the values so far, adds arguments where it needs more, and
// appends the op with its result shape. A new op is a member here and a row of `addOp`.
//
//===----------------------------------------------------------------------===//
#include "GeneratorImpl.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace cleave::test;
using llvm::formatv;
using llvm::SmallVector;

static std::string listText(llvm::ArrayRef<int64_t> list) {
  std::string text = "[";
  for (auto [index, number] : llvm::enumerate(list))
    text += (index ? ", " : "") + std::to_string(number);
  return text + "]";
}

bool Generator::addUnary() {
  static constexpr const char *ops[] = {"tanh", "sigmoid", "relu", "neg", "abs", "gelu", "sin", "silu"};
  const Value *x = pickValue();
  return add(formatv("nn.{0} {1}", pick(ops), x->name), {x}, x->shape);
}

/// An operand that broadcasts with `x`: another value that fits, or a new argument.
bool Generator::addBinary() {
  static constexpr const char *ops[] = {"add", "add", "sub", "mul", "max", "min"};
  const Value *x = pickValue();
  SmallVector<const Value *> fitting;
  for (const Value &value : values)
    if (value.elementType == "f32" && value.shape == x->shape)
      fitting.push_back(&value);
  Value left = *x, right = *pick(fitting);
  if (chance(50)) {
    SmallVector<int64_t> shape(llvm::ArrayRef<int64_t>(x->shape).drop_front(below(x->shape.size() + 1)));
    for (int64_t &extent : shape)
      if (chance(25))
        extent = 1;
    right = addArgument(shape, "f32");
  }
  if (chance(30))
    std::swap(left, right);
  SmallVector<int64_t> shape(left.shape.size() > right.shape.size() ? left.shape : right.shape);
  if (countElements(left.shape) == countElements(right.shape) || left.shape.size() == right.shape.size())
    for (auto [extent, a, b] : llvm::zip(llvm::reverse(shape), llvm::reverse(left.shape), llvm::reverse(right.shape)))
      extent = std::max(a, b);
  return add(formatv("nn.{0} {1}, {2}", pick(ops), left.name, right.name), {&left, &right}, shape);
}

bool Generator::addSelect() {
  const Value *argument = pickArgument(0);
  if (!argument)
    return false;
  Value compared = *argument, other = addArgument(compared.shape, "f32");
  Value condition{formatv("%v{0}", nextName++), compared.shape, false, "", "i1"};
  body += formatv("  {0} = nn.lt {1}, {2} : ({3}, {4}) -> {5}\n", condition.name, compared.name, other.name,
                  typeOf(compared), typeOf(other), typeOf(condition));
  values.push_back(condition);
  return add(formatv("nn.select {0}, {1}, {2}", condition.name, compared.name, other.name),
             {&condition, &compared, &other}, compared.shape);
}

/// A contraction of a value with a new argument: some of its dims are batch, some contracted, some new.
bool Generator::addEinsum() {
  const Value *found = pickValue(1);
  if (!found)
    return false;
  Value x = *found;
  std::string left, right, result;
  SmallVector<int64_t> rightShape, resultShape;
  char letter = 'a';
  for (int64_t extent : x.shape) {
    left += letter;
    int64_t role = below(3); // kept from the left, contracted, batch
    if (role != 0) {
      right += letter;
      rightShape.push_back(extent);
    }
    if (role != 1) {
      result += letter;
      resultShape.push_back(extent);
    }
    ++letter;
  }
  for (int64_t i = 0, count = below(3); i < count; ++i, ++letter) {
    int64_t extent = pickSize();
    right += letter;
    rightShape.push_back(extent);
    size_t at = below(result.size() + 1);
    result.insert(result.begin() + at, letter);
    resultShape.insert(resultShape.begin() + at, extent);
  }
  if (countElements(rightShape) > kMaxElements || countElements(resultShape) > kMaxElements)
    return false;
  Value y = addArgument(rightShape, "f32");
  return add(formatv("nn.einsum {0}, {1} \"{2},{3}->{4}\"", x.name, y.name, left, right, result), {&x, &y},
             resultShape);
}

bool Generator::addReduce() {
  static constexpr const char *kinds[] = {"sum", "sum", "mean", "max", "min"};
  const Value *x = pickValue(1);
  if (!x)
    return false;
  bool keeps = chance(40);
  SmallVector<int64_t> dims, shape;
  for (auto [dim, extent] : llvm::enumerate(x->shape)) {
    bool isReduced = chance(40);
    if (isReduced)
      dims.push_back(dim);
    if (!isReduced || keeps)
      shape.push_back(isReduced ? 1 : extent);
  }
  return add(formatv("nn.reduce {0} {1} dims {2}{3}", pick(kinds), x->name, listText(dims), keeps ? " keep_dims" : ""),
             {x}, shape);
}

bool Generator::addSoftmax() {
  const Value *x = pickValue(1);
  if (!x)
    return false;
  const char *name = chance(50) ? "softmax" : "log_softmax";
  return add(formatv("nn.{0} {1} dim {2}", name, x->name, below(x->shape.size())), {x}, x->shape);
}

bool Generator::addNorm() {
  const Value *found = pickValue(1);
  if (!found)
    return false;
  Value x = *found;
  int64_t dim = below(x.shape.size());
  Value scale = addArgument(SmallVector<int64_t>(llvm::ArrayRef<int64_t>(x.shape).drop_front(dim)), "f32");
  const char *name = chance(50) ? "layer_norm" : "rms_norm";
  return add(formatv("nn.{0} {1}, {2} dim {3} epsilon 1.0e-2", name, x.name, scale.name, dim), {&x, &scale}, x.shape);
}

bool Generator::addTranspose() {
  const Value *x = pickValue(2);
  if (!x)
    return false;
  SmallVector<int64_t> permutation = llvm::to_vector(llvm::seq<int64_t>(0, x->shape.size()));
  for (size_t i = permutation.size() - 1; i > 0; --i)
    std::swap(permutation[i], permutation[below(i + 1)]);
  SmallVector<int64_t> shape;
  for (int64_t dim : permutation)
    shape.push_back(x->shape[dim]);
  return add(formatv("nn.transpose {0} {1}", x->name, listText(permutation)), {x}, shape);
}

/// Merges neighbors or splits a dim, now and then regroups everything.
bool Generator::addReshape() {
  const Value *x = pickValue(1);
  if (!x)
    return false;
  SmallVector<int64_t> shape(x->shape);
  if (shape.size() > 1 && chance(50)) {
    size_t at = below(shape.size() - 1);
    shape[at] *= shape[at + 1];
    shape.erase(shape.begin() + at + 1);
  } else {
    size_t at = below(shape.size());
    static constexpr int64_t divisors[] = {2, 3, 4};
    int64_t divisor = pick(divisors);
    if (shape[at] % divisor)
      return false;
    bool isMajor = chance(50);
    int64_t major = isMajor ? divisor : shape[at] / divisor, minor = isMajor ? shape[at] / divisor : divisor;
    shape[at] = major;
    shape.insert(shape.begin() + at + 1, minor);
  }
  return shape.size() <= 5 && add(formatv("nn.reshape {0}", x->name), {x}, shape);
}

bool Generator::addBroadcast() {
  const Value *x = pickValue();
  SmallVector<int64_t> shape(x->shape);
  for (int64_t &extent : shape)
    if (extent == 1 && chance(60))
      extent = pickSize();
  if (chance(60))
    shape.insert(shape.begin(), pickSize());
  return shape.size() <= 5 && add(formatv("nn.broadcast {0}", x->name), {x}, shape);
}

bool Generator::addConcat() {
  const Value *found = pickValue(1);
  if (!found)
    return false;
  Value x = *found;
  int64_t dim = below(x.shape.size());
  SmallVector<int64_t> otherShape(x.shape), shape(x.shape);
  otherShape[dim] = pickSize();
  shape[dim] += otherShape[dim];
  Value y = chance(30) ? x : addArgument(otherShape, "f32");
  shape[dim] = x.shape[dim] + y.shape[dim];
  SmallVector<const Value *> parts = {&x, &y};
  std::string names = x.name + ", " + y.name;
  for (; chance(25) && countElements(shape) <= kMaxElements / 2; shape[dim] += x.shape[dim]) {
    parts.push_back(&x);
    names += ", " + x.name;
  }
  return add(formatv("nn.concat {0} dim {1}", names, dim), parts, shape);
}

bool Generator::addSlice() {
  const Value *x = pickValue(1);
  if (!x)
    return false;
  SmallVector<int64_t> starts, sizes, steps;
  for (int64_t extent : x->shape) {
    bool isFull = chance(60);
    int64_t step = isFull ? 1 : 1 + below(2);
    int64_t start = isFull ? 0 : below(extent);
    int64_t size = isFull ? extent : 1 + below((extent - start + step - 1) / step);
    bool isReversed = !isFull && chance(15);
    starts.push_back(isReversed ? start + (size - 1) * step : start);
    sizes.push_back(size);
    steps.push_back(isReversed ? -step : step);
  }
  return add(formatv("nn.slice {0} starts {1} sizes {2} steps {3}", x->name, listText(starts), listText(sizes),
                     listText(steps)),
             {x}, sizes);
}

bool Generator::addPad() {
  static constexpr const char *modes[] = {"constant", "constant", "edge", "wrap", "reflect"};
  const Value *x = pickValue(1);
  if (!x)
    return false;
  // A mirror shows less than there is; some pads make of an extent what the mesh divides again.
  SmallVector<int64_t> low, high, shape(x->shape);
  for (int64_t &extent : shape) {
    int64_t most = std::min<int64_t>(extent, 4);
    low.push_back(chance(30) ? below(most) : 0);
    high.push_back(chance(30) ? below(most) : 0);
    if (low.back() && chance(50))
      high.back() = low.back();
    extent += low.back() + high.back();
  }
  return add(formatv("nn.pad {0} {1} low {2} high {3}", pick(modes), x->name, listText(low), listText(high)), {x},
             shape);
}

bool Generator::addLrn() {
  const Value *x = pickValue(2);
  return x && add(formatv("nn.lrn {0} size {1} alpha 1.0e-1 beta 0.75 k 1.0", x->name, 1 + below(5)), {x}, x->shape);
}

bool Generator::addGather() {
  const Value *found = pickValue(1);
  if (!found)
    return false;
  Value x = *found;
  int64_t dim = below(x.shape.size());
  SmallVector<int64_t> indexShape = pickShape(0, 2), shape(x.shape);
  Value indices = addArgument(indexShape, "i64");
  shape.erase(shape.begin() + dim);
  shape.insert(shape.begin() + dim, indexShape.begin(), indexShape.end());
  return add(formatv("nn.gather {0}, {1} dim {2}", x.name, indices.name, dim), {&x, &indices}, shape);
}

bool Generator::addScan() {
  const Value *x = pickValue(1);
  if (!x)
    return false;
  int64_t dim = below(x->shape.size());
  if (chance(50))
    return add(formatv("nn.cumsum {0} dim {1}{2}", x->name, dim, chance(30) ? " reverse" : ""), {x}, x->shape);
  return add(formatv("nn.rotate {0} dim {1} by {2}", x->name, dim, below(x->shape[dim])), {x}, x->shape);
}

/// What a window does to each spatial dim of `x`, the extents of the result at the end. Pads of a convolution may be larger than its
/// window, and all of a window may be padding; of a pool each window has an element.
Generator::Window Generator::pickWindow(const Value &x, bool isPool) {
  Window window;
  window.isCeil = isPool && chance(25);
  for (int64_t extent : llvm::ArrayRef<int64_t>(x.shape).drop_front(2)) {
    int64_t kernel = 1 + below(chance(20) ? 5 : 3), dilation = 1 + below(2), stride = 1 + below(3);
    int64_t low = below(isPool ? kernel : kernel + 2), high = below(isPool ? kernel : kernel + 2);
    int64_t span = (kernel - 1) * dilation + 1;
    if (span > (isPool ? extent : extent + low + high))
      dilation = 1, span = kernel;
    if (span > extent + low + high)
      kernel = span = 1, low = high = 0;
    int64_t room = extent + low + high - span, count = room / stride + 1;
    window.kernel.push_back(kernel);
    window.strides.push_back(stride);
    window.low.push_back(low);
    window.high.push_back(high);
    window.dilations.push_back(dilation);
    window.result.push_back(count + (window.isCeil && room % stride != 0 && count * stride < extent + low));
  }
  return window;
}

std::string Generator::Window::getText() const {
  return formatv("strides {0} pads_low {1} pads_high {2} dilations {3}", listText(strides), listText(low),
                 listText(high), listText(dilations));
}

/// Batch, channels, and one to three dims for windows; now and then of one row.
Value Generator::addPicture(int64_t channels) {
  static constexpr int64_t extents[] = {1, 1, 2, 3, 4, 6, 8, 8, 12, 13};
  SmallVector<int64_t> shape = {1 + below(3), channels, pick(extents)};
  if (chance(60))
    shape.push_back(pick(extents));
  if (shape.size() == 4 && chance(10))
    shape.push_back(1 + below(4));
  if (countElements(shape) > kMaxElements)
    shape[0] = 1;
  return addArgument(shape, "f32");
}

/// Mostly one that is a weight, which kernels have in an order of their own.
Value Generator::addWeight(SmallVector<int64_t> shape) {
  Value weight = addArgument(shape, "f32");
  if (loops.empty() && annotation(60))
    arguments.back().isWeight = values.back().isWeight = weight.isWeight = true;
  return weight;
}

bool Generator::addConv() {
  static constexpr int64_t channelCounts[] = {2, 4, 8, 8, 16};
  int64_t channels = pick(channelCounts), outputs = pick(channelCounts), groups = chance(30) ? 2 : 1;
  if (chance(15))
    groups = outputs = channels;
  Value x = addPicture(channels);
  Window window = pickWindow(x, /*isPool=*/false);
  SmallVector<int64_t> weight = {outputs, channels / groups}, shape = {x.shape[0], outputs};
  weight.append(window.kernel);
  shape.append(window.result);
  if (countElements(shape) > kMaxElements || countElements(weight) > 2 * kMaxElements)
    return false;
  Value w = addWeight(weight), b = addArgument({outputs}, "f32");
  return add(formatv("nn.conv {0}, {1}, {2} {3} groups {4}", x.name, w.name, b.name, window.getText(), groups),
             {&x, &w, &b}, shape);
}

bool Generator::addPool() {
  static constexpr const char *kinds[] = {"max", "average", "lp"};
  const Value *found = pickValue(3);
  Value x = found && chance(70) ? *found : addPicture(chance(30) ? 16 : 2);
  Window window = pickWindow(x, /*isPool=*/true);
  SmallVector<int64_t> shape = {x.shape[0], x.shape[1]};
  shape.append(window.result);
  return add(formatv("nn.pool {0} {1} kernel {2} {3}{4}{5}", pick(kinds), x.name, listText(window.kernel),
                     window.getText(), chance(30) ? " count_pads" : "", window.isCeil ? " ceil" : ""),
             {&x}, shape);
}

bool Generator::addResize() {
  static constexpr const char *modes[] = {"nearest", "linear", "cubic"},
                              *coordinates[] = {"half_pixel", "asymmetric", "align_corners", "half_pixel_symmetric"};
  const Value *found = pickValue(1);
  if (!found)
    return false;
  Value x = *found;
  SmallVector<int64_t> shape(x.shape);
  std::string scales;
  for (int64_t &extent : shape) {
    int64_t times = chance(40) ? 2 : 1;
    bool shrinks = times == 1 && extent % 2 == 0 && chance(20), isHalf = times == 2 && extent % 2 == 0 && chance(30);
    extent = shrinks ? extent / 2 : isHalf ? extent / 2 * 3 : extent * times;
    scales += formatv("{0}{1:f1}", scales.empty() ? "" : ", ", shrinks ? 0.5 : isHalf ? 1.5 : double(times));
  }
  if (countElements(shape) > kMaxElements)
    return false;
  return add(formatv("nn.resize {0} {1} coordinates {2} rounding floor scales [{3}]", pick(modes), x.name,
                     pick(coordinates), scales),
             {&x}, shape);
}

bool Generator::addAttention() {
  static constexpr int64_t counts[] = {1, 2, 4};
  int64_t batch = pick(counts), kvHeads = pick(counts), heads = kvHeads * pick(counts), sequence = 2 * pick(counts);
  int64_t keys = chance(40) ? sequence : 2 * pick(counts);
  SmallVector<Value, 3> made = addAttentionOperands(batch, heads, kvHeads, sequence, keys);
  Value q = made[0], k = made[1], v = made[2];
  std::string form = chance(50) ? " causal" : "";
  if (chance(50)) // a window, one-sided or two-sided
    form += formatv(" {{causalOffset = {0} : i64, left = {1} : i64{2}}", int64_t(below(6)) - 2, below(5),
                    form.empty() && chance(70) ? formatv(", right = {0} : i64", below(4)).str() : "");
  if (chance(attentionWord.empty() ? 40 : 10)) { // a cache in front, as models that generate have it
    int64_t past = pick(counts);
    auto join = [&](const Value &now, int64_t size) {
      Value before = addArgument({batch, kvHeads, past, size}, "f32");
      return addInner(formatv("nn.concat {0}, {1} dim 2", before.name, now.name), {&before, &now},
                      {batch, kvHeads, past + keys, size}, "f32");
    };
    k = join(k, 4), v = join(v, 6);
    keys += past;
  }
  SmallVector<const Value *> operands = {&q, &k, &v};
  Value mask;
  std::string masked;
  if (chance(40)) {
    SmallVector<int64_t> shape = {batch, heads, sequence, keys};
    for (int64_t &extent : llvm::MutableArrayRef<int64_t>(shape).drop_back())
      extent = chance(50) ? 1 : extent;
    mask = addArgument(SmallVector<int64_t>(llvm::ArrayRef<int64_t>(shape).drop_front(below(3))),
                       chance(50) ? "i1" : "f32");
    operands.push_back(&mask);
    masked = " mask " + mask.name;
  }
  return add(formatv("nn.attention {0}, {1}, {2}{3} scale 0.5{4}", q.name, k.name, v.name, masked, form), operands,
             {batch, heads, sequence, 6});
}

/// Of all of the last dim or the front of it, by angles of each sample or of all.
bool Generator::addRotaryEmbedding() {
  static constexpr int64_t counts[] = {1, 2, 3, 4}, sizes[] = {4, 6, 8, 12};
  const Value *found = pickValue(4);
  SmallVector<int64_t> shape = {pick(counts), pick(counts), pick(counts), pick(sizes)};
  Value x =
      found && found->shape.size() == 4 && found->shape[3] >= 2 && chance(50) ? *found : addArgument(shape, "f32");
  int64_t pairs = 1 + below(x.shape[3] / 2);
  SmallVector<int64_t> angles = {chance(50) ? 1 : x.shape[0], x.shape[2], pairs};
  Value cos = addArgument(angles, "f32"), sin = addArgument(angles, "f32");
  return add(formatv("nn.rotary_embedding {0}, {1}, {2} rotated {3}{4}", x.name, cos.name, sin.name, 2 * pairs,
                     chance(50) ? " interleaved" : ""),
             {&x, &cos, &sin}, x.shape);
}

/// Numbers stay small through all steps: gates are between -1 and 1. Regions of kernels have none, they are unrolled before.
bool Generator::addRecurrence() {
  if (!hasAnnotations)
    return false;
  static constexpr struct {
    const char *name, *activations, *numbers;
    int64_t gates, states;
  } kinds[] = {{"lstm", R"(["sigmoid", "tanh", "tanh"])", "[0.0, 0.0, 0.0]", 4, 2},
               {"gru", R"(["sigmoid", "tanh"])", "[0.0, 0.0]", 3, 1},
               {"rnn", R"(["softsign"])", "[0.0]", 1, 1}};
  const auto &kind = pick(kinds);
  int64_t steps = 1 + below(3), directions = 1 + below(2), batch = pickSize(), hidden = pickSize();
  SmallVector<int64_t> state = {directions, batch, hidden}, projected = {steps, directions, batch, kind.gates, hidden};
  SmallVector<int64_t> weight = {directions, kind.gates, hidden, hidden};
  if (countElements(projected) > kMaxElements || countElements(weight) > kMaxElements)
    return false;
  SmallVector<Value> operands = {addArgument(projected, "f32"), addArgument(weight, "f32")};
  std::string names, types, results = typeOf({steps, directions, batch, hidden}, "f32");
  for (int64_t i = 0; i < kind.states; ++i) {
    operands.push_back(addArgument(state, "f32"));
    names += (i ? ", " : "") + operands.back().name;
    results += ", " + typeOf(state, "f32");
  }
  bool isReset = kind.gates == 3 && chance(50), hasLengths = chance(40);
  std::string rest;
  if (isReset) {
    operands.push_back(addArgument({directions, hidden}, "f32"));
    rest += " bias " + operands.back().name;
  }
  if (kind.gates == 4 && chance(50)) {
    operands.push_back(addArgument({directions, 3, hidden}, "f32"));
    rest += " peepholes " + operands.back().name;
  }
  if (hasLengths) {
    operands.push_back(addArgument({batch}, "i64"));
    rest += " lengths " + operands.back().name;
  }
  for (auto [index, operand] : llvm::enumerate(operands))
    types += (index ? ", " : "") + typeOf(operand);
  std::string name = formatv("%v{0}", nextName++);
  body += formatv("  {0}:{1} = nn.recurrence {2} {3}, {4} initial ({5}){6} activations {7} alphas {8} betas {8}{9} : "
                  "({10}) -> ({11})\n",
                  name, kind.states + 1, kind.name, operands[0].name, operands[1].name, names, rest, kind.activations,
                  kind.numbers, isReset ? " {linearBeforeReset}" : "", types, results);
  values.push_back({name + "#0", {steps, directions, batch, hidden}});
  values.push_back({name + "#" + std::to_string(kind.states), state});
  return true;
}

bool Generator::addOp() {
  using Member = bool (Generator::*)();
  static constexpr Member members[] = {&Generator::addUnary,      &Generator::addUnary,
                                       &Generator::addBinary,     &Generator::addBinary,
                                       &Generator::addSelect,     &Generator::addEinsum,
                                       &Generator::addEinsum,     &Generator::addEinsum,
                                       &Generator::addReduce,     &Generator::addReduce,
                                       &Generator::addSoftmax,    &Generator::addNorm,
                                       &Generator::addTranspose,  &Generator::addReshape,
                                       &Generator::addReshape,    &Generator::addBroadcast,
                                       &Generator::addConcat,     &Generator::addSlice,
                                       &Generator::addPad,        &Generator::addGather,
                                       &Generator::addScan,       &Generator::addConv,
                                       &Generator::addConv,       &Generator::addPool,
                                       &Generator::addResize,     &Generator::addLrn,
                                       &Generator::addAttention,  &Generator::addRotaryEmbedding,
                                       &Generator::addRecurrence, &Generator::addLoop,
                                       &Generator::addLoop,       &Generator::addRows,
                                       &Generator::addQuantized,  &Generator::addIntegerProduct,
                                       &Generator::addBits};
  return (this->*pick(members))();
}
