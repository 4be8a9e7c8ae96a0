//===- WindowsTest.cpp - random windows as kernels ------------------------===//
//
// Convolutions and pools by seed, with few rows and columns, or one of them: every stride, dilation and pad, larger than the kernel, too,
// in every layout that programs have of pictures and weights. CLEAVE_WINDOWS says how many, CLEAVE_WINDOW which one comes first.
//
//===----------------------------------------------------------------------===//
#include "Harness.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <random>

using namespace cleave::codegen;
using llvm::formatv;

namespace {

using Dims = std::vector<int64_t>;

/// How a weight lies in memory: as ONNX has it; channels of the result last; these in panels of 16; pairs of bf16 in such panels.
enum class Packing { None, Last, Panels, Pairs };

/// What windows do along one spatial dim.
struct Along {
  int64_t extent, kernel, stride, dilation, low, high;
  int64_t getSpan() const { return (kernel - 1) * dilation + 1; }
  int64_t getRoom() const { return extent + low + high - getSpan(); }
};

std::string tensor(const Dims &shape, llvm::StringRef element) {
  std::string text = "tensor<";
  for (int64_t extent : shape)
    text += std::to_string(extent) + "x";
  return text + element.str() + ">";
}

/// One region: `body` gives %y of `types`.
class Drawing {
public:
  explicit Drawing(uint64_t seed) : engine(seed) { draw(); }
  std::string body, result;
  std::vector<std::string> types;

private:
  int64_t below(int64_t bound) { return int64_t(engine() % uint64_t(bound)); }
  bool chance(int percent) { return below(100) < percent; }
  template <typename T, size_t size> const T &pick(const T (&values)[size]) { return values[below(size)]; }
  void draw();
  void drawAlong(bool isPool);
  void widen(bool isPool);
  std::string readPicture();
  std::string readWeight(int64_t out, int64_t groups, Packing packing);
  std::string addConv(const std::string &picture);
  std::string addPool(const std::string &picture);
  void finish(std::string value);
  std::string addOp(const std::string &text, const std::string &types, const std::string &to);
  std::string addArgument(const std::string &type);
  std::string getWindowText() const;
  /// A shape in the order that the picture has in memory.
  Dims order(const Dims &shape, bool isLast) const;
  std::string transpose(const std::string &value, const std::string &from, bool toLast, const std::string &to);

  std::mt19937_64 engine;
  std::vector<Along> along;
  Dims input, output;
  std::string element;
  bool isLast = false, isPaired = false, isCeil = false;
  unsigned nextName = 0;
};

std::string Drawing::addArgument(const std::string &type) {
  types.push_back(type);
  return "%a" + std::to_string(types.size() - 1);
}

std::string Drawing::addOp(const std::string &text, const std::string &from, const std::string &to) {
  std::string name = "%v" + std::to_string(nextName++);
  body += formatv("{0} = {1} : ({2}) -> {3}\n", name, text, from, to).str();
  return name;
}

Dims Drawing::order(const Dims &shape, bool isLast) const {
  Dims moved(shape);
  if (isLast)
    std::rotate(moved.begin() + 1, moved.begin() + 2, moved.end());
  return moved;
}

std::string Drawing::transpose(const std::string &value, const std::string &from, bool toLast, const std::string &to) {
  Dims permutation(along.size() + 2);
  std::iota(permutation.begin(), permutation.end(), 0);
  std::rotate(permutation.begin() + 1, toLast ? permutation.begin() + 2 : permutation.end() - 1, permutation.end());
  return addOp(formatv("nn.transpose {0} [{1}]", value,
                       llvm::join(llvm::map_range(permutation, [](int64_t dim) { return std::to_string(dim); }), ", ")),
               from, to);
}

std::string Drawing::getWindowText() const {
  auto list = [&](int64_t Along::*member) {
    std::string text;
    for (const Along &dim : along)
      text += (text.empty() ? "[" : ", ") + std::to_string(dim.*member);
    return text + "]";
  };
  return "strides " + list(&Along::stride) + " pads_low " + list(&Along::low) + " pads_high " + list(&Along::high) +
         " dilations " + list(&Along::dilation);
}

/// A window that is too large is one element.
static void fit(Along &dim, bool isPool) {
  if (dim.getRoom() < 0)
    dim.kernel = dim.dilation = 1, dim.low = dim.high = isPool ? 0 : dim.low;
}

/// A window of a pool has an element of the picture.
void Drawing::drawAlong(bool isPool) {
  static constexpr int64_t extents[] = {1, 1, 1, 2, 2, 3, 4, 5, 7, 13, 17}, kernels[] = {1, 2, 3, 3, 3, 5, 7};
  static constexpr int64_t strides[] = {1, 1, 1, 2, 3}, dilations[] = {1, 1, 1, 2, 3};
  Along dim{pick(extents), pick(kernels), pick(strides), isPool ? 1 : pick(dilations), 0, 0};
  int64_t most = isPool ? dim.kernel : dim.kernel + 3;
  dim.low = below(most), dim.high = below(most);
  fit(dim, isPool);
  along.push_back(dim);
}

/// So that bands are a few rows, and the last one now and then a single one; some weights are too large to be read for each band.
void Drawing::widen(bool isPool) {
  static constexpr int64_t channels[] = {1, 2, 64, 128};
  static constexpr int64_t bytes[] = {512 << 10, 384 << 10, 256 << 10, 64 << 10};
  int64_t rows = 1 + below(4);
  input[1] = pick(channels);
  along[0].extent = rows * (1 + below(2)) + 1;
  along[1].extent = std::min<int64_t>(pick(bytes) / 4 / input[1] / rows, 1024);
  for (Along &dim : along)
    fit(dim, isPool);
  input = {1, input[1], along[0].extent, along[1].extent};
}

void Drawing::draw() {
  static constexpr int64_t channels[] = {1, 2, 3, 8, 16, 17, 20, 32, 33, 48};
  static constexpr const char *elements[] = {"f32", "f32", "f32", "bf16", "f16", "f64"};
  static constexpr int64_t ranks[] = {1, 2, 2, 2, 2, 3};
  bool isPool = chance(35);
  element = pick(elements);
  isLast = chance(70);
  input = {1 + below(2), pick(channels)};
  for (int64_t left = pick(ranks); left > 0; --left)
    drawAlong(isPool);
  for (const Along &dim : along)
    input.push_back(dim.extent);
  if (along.size() == 2 && chance(10))
    widen(isPool);
  isCeil = isPool && chance(30);
  output = {input[0], input[1]};
  for (const Along &dim : along) {
    int64_t count = dim.getRoom() / dim.stride + 1;
    output.push_back(count + (isCeil && dim.getRoom() % dim.stride && count * dim.stride < dim.extent + dim.low));
  }
  isPaired = !isPool && along.size() == 2 && input[1] % 2 == 0 && isLast && chance(40);
  std::string picture = readPicture();
  finish(isPool ? addPool(picture) : addConv(picture));
}

std::string Drawing::readPicture() {
  std::string stored = isPaired ? "bf16" : element, given = tensor(order(input, isLast), stored);
  std::string value = addArgument(given);
  if (isPaired) {
    element = "f32";
    std::string widened = tensor(order(input, isLast), element);
    value = addOp("nn.cast " + value, given, widened);
    given = widened;
  }
  return isLast ? transpose(value, given, false, tensor(input, element)) : value;
}

std::string Drawing::readWeight(int64_t out, int64_t groups, Packing packing) {
  std::string stored = isPaired ? "bf16" : element;
  Dims shape = {out, input[1] / groups}, packed, order;
  for (const Along &dim : along) {
    shape.push_back(dim.kernel);
    packed.push_back(dim.kernel);
    order.push_back(order.size() + 2);
  }
  if (packing == Packing::None)
    return addArgument(tensor(shape, stored));
  int64_t interleave = packing == Packing::Pairs ? 2 : 1, width = packing == Packing::Last ? 0 : 16;
  packed.push_back(shape[1] / interleave);
  if (width) {
    packed.insert(packed.begin(), llvm::divideCeil(out, width));
    packed.insert(packed.end(), {width, interleave});
  } else
    packed.push_back(out);
  std::string text;
  for (int64_t dim : order)
    text += std::to_string(dim) + ", ";
  std::string given = tensor(packed, stored), weight = addArgument(given);
  weight = addOp(
      formatv("exec.unpack {0} order [{1}1, 0] batch 0 width {2} interleave {3}", weight, text, width, interleave),
      given, tensor(shape, stored));
  return isPaired ? addOp("nn.cast " + weight, tensor(shape, stored), tensor(shape, element)) : weight;
}

std::string Drawing::addConv(const std::string &picture) {
  static constexpr int64_t channels[] = {1, 3, 8, 16, 17, 32, 40};
  static constexpr Packing packings[] = {Packing::None, Packing::Last, Packing::Last, Packing::Panels, Packing::Panels};
  bool isByChannel = !isPaired && chance(35);
  int64_t out = isByChannel ? input[1] : pick(channels), groups = isByChannel ? input[1] : 1;
  Packing packing = isPaired ? Packing::Pairs : pick(packings);
  packing = isByChannel && packing == Packing::Panels ? Packing::Last : packing;
  Dims shape = {out, input[1] / groups};
  for (const Along &dim : along)
    shape.push_back(dim.kernel);
  output[1] = out;
  std::string weight = readWeight(out, groups, packing), bias = chance(50) ? addArgument(tensor({out}, element)) : "";
  return addOp(formatv("nn.conv {0}, {1}{2}{3} {4} groups {5}", picture, weight, bias.empty() ? "" : ", ", bias,
                       getWindowText(), groups),
               tensor(input, element) + ", " + tensor(shape, element) +
                   (bias.empty() ? "" : ", " + tensor({out}, element)),
               tensor(output, element));
}

std::string Drawing::addPool(const std::string &picture) {
  static constexpr const char *kinds[] = {"max", "max", "average", "average", "lp"};
  std::string kernel;
  for (const Along &dim : along)
    kernel += (kernel.empty() ? "" : ", ") + std::to_string(dim.kernel);
  return addOp(formatv("nn.pool {0} {1} kernel [{2}] {3}{4}{5}", pick(kinds), picture, kernel, getWindowText(),
                       chance(40) ? " count_pads" : "", isCeil ? " ceil" : ""),
               tensor(input, element), tensor(output, element));
}

/// What stands behind windows in networks.
void Drawing::finish(std::string value) {
  std::string type = tensor(output, element);
  if (chance(25)) {
    std::string other = addArgument(tensor(order(output, isLast), element));
    if (isLast)
      other = transpose(other, tensor(order(output, true), element), false, type);
    value = addOp(formatv("nn.add {0}, {1}", value, other), type + ", " + type, type);
  }
  static constexpr const char *activations[] = {"relu", "silu", ""};
  if (std::string op = pick(activations); !op.empty())
    value = addOp("nn." + op + " " + value, type, type);
  result = tensor(order(output, isLast), element);
  if (isLast)
    value = transpose(value, type, true, result);
  // The last value is %y.
  size_t at = body.rfind(value + " = ");
  body.replace(at, value.size(), "%y");
}

class WindowsTest : public KernelTest {
protected:
  void expectRight(uint64_t seed);
};

void WindowsTest::expectRight(uint64_t seed) {
  errors.clear();
  Drawing drawing(seed);
  EXPECT_EQ(checkBody(drawing.body, drawing.types, drawing.result, seed), "")
      << "repeat with: CLEAVE_WINDOW=" << seed << " CLEAVE_WINDOWS=1\n"
      << drawing.body;
}

TEST_F(WindowsTest, EqualTheEvaluator) {
  uint64_t first = getNumber("CLEAVE_WINDOW", 1), count = getNumber("CLEAVE_WINDOWS", 300);
  for (uint64_t seed = first; seed < first + count; ++seed)
    expectRight(seed);
}

/// With masks that the processor lacks, and vectors of 16 bytes and 32.
TEST_F(WindowsTest, EqualTheEvaluatorOnOtherProcessors) {
  for (const char *isa : {"x86-64", "x86-64-v3"}) {
    target = llvm::cantFail(HostTarget::create(isa));
    for (uint64_t seed = 1; seed <= 30; ++seed)
      expectRight(seed);
  }
}

} // namespace
