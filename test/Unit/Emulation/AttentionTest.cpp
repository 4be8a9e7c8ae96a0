//===- AttentionTest.cpp - attention on the emulated device ---------------===//
//
// Random shapes, types and masks, with keys and values read in another order, against scores, softmax and sums in f64, query by
// query. Products of what is multiplied are exact; the bound is that of the order of sums, and of weights that are rounded.
//
//===----------------------------------------------------------------------===//
#include "DeviceKernels.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FormatVariadic.h"
#include "gmock/gmock.h"
#include <random>

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;
using reference::Tensor;
using ::testing::HasSubstr;

namespace {

/// `y = neg(attention(q, k, v))`.
struct Attention {
  std::string type; ///< of what is multiplied
  int64_t batches, kvHeads, group, queries, keys, size, valueSize;
  std::string mask;                        ///< the shape and element of an operand, if there is one
  bool isTurned = false, isCausal = false; ///< turned: positions of keys and values come before heads
  int64_t offset = 0;
  double softcap = 0;
  bool isWidened = false;        ///< to f32, in front of attention
  int64_t left = -1, right = -1; ///< how far a query sees; negative: no bound, or that of `isCausal`

  std::string getResultType() const { return isWidened ? "f32" : type; }
  int64_t countHeads() const { return kvHeads * group; }
  std::string getText() const;
};

std::string Attention::getText() const {
  auto shaped = [&](int64_t x, int64_t y, int64_t z, const std::string &element) {
    return llvm::formatv("tensor<{0}x{1}x{2}x{3}x{4}>", batches, x, y, z, element).str();
  };
  std::string y = shaped(countHeads(), queries, valueSize, getResultType()), arguments, text, names, types;
  for (int i : {0, 1, 2}) {
    int64_t has = i == 0 ? countHeads() : kvHeads, length = i == 0 ? queries : keys, wide = i == 2 ? valueSize : size;
    std::string name = "%a" + std::to_string(i), whole = shaped(has, length, wide, type), given = whole;
    if (isTurned && i > 0) {
      given = shaped(length, has, wide, type);
      text += llvm::formatv("  %t{0} = nn.transpose {1} [0, 2, 1, 3] : ({2}) -> {3}\n", i, name, given, whole);
      name = "%t" + std::to_string(i);
    }
    if (isWidened) {
      std::string widened = shaped(has, length, wide, "f32");
      text += llvm::formatv("  %w{0} = nn.cast {1} : ({2}) -> {3}\n", i, name, whole, widened);
      name = "%w" + std::to_string(i);
      whole = widened;
    }
    arguments += llvm::formatv("{0}%a{1}: {2}", i ? ", " : "", i, given);
    names += (i ? ", " : "") + name;
    types += (i ? ", " : "") + whole;
  }
  if (!mask.empty()) {
    arguments += ", %m: tensor<" + mask + ">";
    names += " mask %m";
    types += ", tensor<" + mask + ">";
  }
  std::string window = left >= 0 ? llvm::formatv(", left = {0} : i64", left).str() : "";
  if (right >= 0 && !isCausal)
    window += llvm::formatv(", right = {0} : i64", right);
  return llvm::formatv(
      "func.func @main({0}) -> {1} {{\n{2}  %0 = nn.attention {3} scale 0.25{4} {{causalOffset = {5} : "
      "i64, softcap = {6:F1} : f64{8}} : ({7}) -> {1}\n  %1 = nn.neg %0 : ({1}) -> {1}\n  return %1 : {1}\n}",
      arguments, y, text, names, isCausal ? " causal" : "", offset, softcap, types, window);
}

/// What there is of a weight, and of an element, when it is rounded.
double getStep(StringRef type) {
  int fraction = type == "f16" ? 10 : type == "bf16" ? 7 : type == "f64" ? 52 : 23;
  return std::ldexp(1, -fraction - 1);
}

class DeviceAttentionTest : public DeviceKernelsTest {
protected:
  /// As `check`, by the two kernels that a device with few blocks to do gets.
  std::string checkStages(const Attention &attention, uint64_t seed);
  /// What is wrong, or an empty string. `damage` is done to the kernel before it is compiled.
  std::string check(const Attention &attention, uint64_t seed, function_ref<void(ModuleOp)> damage = nullptr) {
    auto ofInputs = [&](ArrayRef<Tensor> inputs, ArrayRef<double> got) { return compare(attention, inputs, got); };
    return runAlone(attention.getText(), "attention", seed, ofInputs, damage);
  }

private:
  std::string compare(const Attention &attention, ArrayRef<Tensor> inputs, ArrayRef<double> got);
};

/// The score of a key; -inf where it is not seen. `mask` broadcasts from the last dims on.
double findScore(const Attention &a, double product, ArrayRef<double> mask, ArrayRef<int64_t> maskShape, bool isBool,
                 std::array<int64_t, 4> at) {
  double score = product * 0.25;
  if (a.softcap > 0)
    score = a.softcap * std::tanh(score / a.softcap);
  if (!mask.empty()) {
    int64_t place = 0;
    for (size_t dim = 0; dim < maskShape.size(); ++dim)
      place = place * maskShape[dim] + (maskShape[dim] == 1 ? 0 : at[4 - maskShape.size() + dim]);
    score = !isBool ? score + mask[place] : mask[place] != 0 ? score : -INFINITY;
  }
  int64_t ahead = at[3] - at[2] - a.offset;
  bool isHidden =
      (a.isCausal && ahead > 0) || (a.left >= 0 && -ahead > a.left) || (!a.isCausal && a.right >= 0 && ahead > a.right);
  return isHidden ? -INFINITY : score;
}

std::string DeviceAttentionTest::compare(const Attention &a, ArrayRef<Tensor> inputs, ArrayRef<double> got) {
  std::vector<double> q = getNumbers(inputs[0]), k = getNumbers(inputs[1]), v = getNumbers(inputs[2]), mask;
  ArrayRef<int64_t> maskShape;
  if (inputs.size() > 3) {
    mask = getNumbers(inputs[3]);
    maskShape = inputs[3].getShape();
  }
  bool isBool = inputs.size() > 3 && inputs[3].getElementType().isInteger(1);
  // Larger heads find no room for fragments of 32 bits.
  bool isShort =
      cuda->getAllowed() == Allowed::Tf32 && a.type == "f32" && a.queries >= 16 && std::max(a.size, a.valueSize) <= 240;
  if (isShort)
    for (std::vector<double> *numbers : {&q, &k, &v})
      llvm::transform(*numbers, numbers->begin(), roundToTf32);
  // What is widened for few queries is computed in f32.
  // The longer a score's sum is, the more does its order weigh, and so in the exponential.
  double own = getStep(a.getResultType()), order = (a.type == "f64" ? 1e-13 : 1e-5) * std::max(1., a.size / 128.);
  double rounded = isShort ? getStep("f16") : a.isWidened && a.queries < 16 ? own : getStep(a.type);
  int64_t heads = a.countHeads(), rows = a.batches * heads * a.queries;
  for (int64_t row = 0; row < rows; ++row) {
    int64_t batch = row / (heads * a.queries), number = row / a.queries % heads, kv = number / a.group;
    auto place = [&](int64_t key, int64_t columns) {
      return (a.isTurned ? (batch * a.keys + key) * a.kvHeads + kv : (batch * a.kvHeads + kv) * a.keys + key) * columns;
    };
    std::vector<double> scores(a.keys);
    double largest = -INFINITY, total = 0;
    for (int64_t key = 0; key < a.keys; ++key) {
      double product = 0;
      for (int64_t i = 0; i < a.size; ++i)
        product += q[row * a.size + i] * k[place(key, a.size) + i];
      scores[key] = findScore(a, product, mask, maskShape, isBool, {batch, number, row % a.queries, key});
      largest = std::max(largest, scores[key]);
    }
    for (double &score : scores)
      total += score = largest == -INFINITY ? 0 : std::exp(score - largest);
    for (int64_t column = 0; column < a.valueSize; ++column) {
      double sum = 0, absolute = 0;
      for (int64_t key = 0; key < a.keys && total > 0; ++key) {
        double term = scores[key] / total * v[place(key, a.valueSize) + column];
        sum += term;
        absolute += std::fabs(term);
      }
      double bound = (order + 1.01 * rounded) * absolute + 1.01 * own * std::fabs(sum) + 1e-7 * own,
             is = got[row * a.valueSize + column];
      if (!(std::fabs(is + sum) <= bound))
        return llvm::formatv("component {0} of query {1} of head {2} is {3:F6} and should be {4:F6}", column,
                             row % a.queries, number, is, -sum);
    }
  }
  return "";
}

std::string DeviceAttentionTest::checkStages(const Attention &attention, uint64_t seed) {
  OwningOpRef<ModuleOp> source = parseSourceString<ModuleOp>(attention.getText(), &context);
  auto func = *source->getOps<func::FuncOp>().begin();
  DeviceSplits splits = findDeviceStages(func.front());
  if (!splits.region)
    return "it has one stage";
  SmallVector<Tensor> inputs = drawInputs(func, seed);
  // The first stage ends behind its op. The second has its results as arguments.
  Operation *first = splits.ops.front();
  OwningOpRef<func::FuncOp> second = splits.region->clone();
  Block &body = splits.region->front();
  body.getTerminator()->setOperands(first->getResults());
  while (&*std::next(first->getIterator()) != body.getTerminator())
    body.getTerminator()->getPrevNode()->erase();
  Operation *again = &*std::next(second->front().begin(), std::distance(body.begin(), first->getIterator()));
  for (Value result : again->getResults())
    result.replaceAllUsesWith(second->front().addArgument(result.getType(), again->getLoc()));
  OwningOpRef<ModuleOp> kernels = ModuleOp::create(UnknownLoc::get(&context));
  DeviceKernel launches[] = {emitDeviceKernel(body, "first", *kernels, *cuda),
                             emitDeviceKernel(second->front(), "second", *kernels, *cuda)};
  const emulation::Module *module = load(*kernels);
  if (!module)
    return "cannot load: " + errors;
  SmallVector<Tensor> parts, all = inputs;
  for (Type type : first->getResultTypes())
    parts.push_back(Tensor::zeros(cast<RankedTensorType>(type)));
  std::string finding = run(*module, launches[0], inputs, parts);
  llvm::append_range(all, parts);
  Tensor output = Tensor::zeros(cast<RankedTensorType>(func.getResultTypes()[0]));
  if (finding.empty())
    finding = run(*module, launches[1], all, output);
  return finding.empty() ? compare(attention, inputs, getNumbers(output)) : finding;
}

/// Sizes at, below and above those of vectors, fragments and tiles.
Attention draw(uint64_t seed) {
  std::mt19937_64 random(seed);
  auto pick = [&](std::initializer_list<int64_t> list) { return *(list.begin() + random() % list.size()); };
  auto name = [&](std::initializer_list<const char *> list) { return *(list.begin() + random() % list.size()); };
  Attention a;
  a.type = name({"f32", "f16", "bf16", "f32", "f16", "bf16", "f32", "f64"});
  a.batches = pick({1, 2});
  a.kvHeads = pick({1, 2});
  a.group = pick({1, 1, 3});
  a.queries = pick({1, 3, 15, 16, 17, 33, 64, 70});
  a.keys = pick({1, 7, 31, 32, 33, 64, 100, 130});
  a.size = pick({1, 4, 8, 17, 24, 64, 80, 128});
  a.valueSize = pick({1, 4, 9, 16, 24, 64, 72, 128});
  if (random() % 8 == 0)
    a.size = a.valueSize = pick({200, 250, 256});
  a.isTurned = random() % 3 == 0;
  a.isCausal = random() % 2;
  a.offset = a.isCausal ? pick({0, 0, 5, -3, 60}) : 0;
  if (random() % 3 == 0)
    a.left = pick({0, 3, 20, 40, 70});
  if (random() % 3 == 0)
    a.right = pick({0, 5, 33});
  a.softcap = random() % 4 == 0 ? 2 : 0;
  a.isWidened = a.type.back() == '6' && random() % 3 == 0;
  if (random() % 3 == 0) {
    auto shape = [](auto... extents) {
      std::string text;
      ((text += std::to_string(extents) + "x"), ...);
      return text;
    };
    std::string shapes[] = {shape(a.keys), shape(a.queries, a.keys), shape(a.batches, 1, 1, a.keys),
                            shape(1, a.countHeads(), a.queries, a.keys), shape(a.queries, 1)};
    a.mask = shapes[random() % std::size(shapes)] + name({"i1", "f32"});
    if (a.mask.back() == '2')
      a.mask = a.mask.substr(0, a.mask.size() - 3) + a.getResultType();
  }
  return a;
}

TEST_F(DeviceAttentionTest, EqualSumsOfAnyShape) {
  for (uint64_t seed = 1; seed <= 90; ++seed) {
    Attention attention = draw(seed);
    EXPECT_EQ(check(attention, seed), "") << "seed " << seed << "\n" << attention.getText();
  }
}

// Few queries by all warps of a block, many by products of warps or lanes; at, below and above a tile of keys; the largest heads.
TEST_F(DeviceAttentionTest, EqualSumsOfListedShapes) {
  uint64_t number = 0;
  for (const char *element : {"f32", "f16", "bf16", "f64"})
    for (auto [queries, keys, size, valueSize] : {std::array{1, 300, 64, 64},
                                                  {3, 33, 24, 40},
                                                  {16, 16, 64, 64},
                                                  {20, 45, 17, 9},
                                                  {40, 100, 80, 128},
                                                  {17, 40, 256, 250}}) {
      Attention attention{element, 1, 1, 2, queries, keys, size, valueSize, ""};
      // Six shapes and five ways: each type has another pairing.
      uint64_t way = number++ % 5;
      attention.isCausal = way == 1 || way == 2;
      attention.offset = way == 2 ? 5 : 0;
      attention.softcap = way == 3 ? 2 : 0;
      if (way == 4)
        attention.mask = llvm::formatv("2x1x{0}x{1}", keys, element);
      EXPECT_EQ(check(attention, number), "") << attention.getText();
    }
}

TEST_F(DeviceAttentionTest, RoundToTf32WhereThatIsAllowed) {
  cuda->allow(Allowed::Tf32);
  for (uint64_t seed = 1; seed <= 25; ++seed) {
    Attention attention = draw(seed);
    attention.type = "f32";
    attention.isWidened = false;
    attention.mask = "";
    EXPECT_EQ(check(attention, seed), "") << "seed " << seed << "\n" << attention.getText();
  }
}

//===----------------------------------------------------------------------===//
// In two stages
//===----------------------------------------------------------------------===//

/// Few queries to many keys: of what is cut off first, and of the rest, a kernel each; the second reads what the first made.
TEST_F(DeviceAttentionTest, PartsTogetherAreTheWhole) {
  for (uint64_t seed = 1; seed <= 24; ++seed) {
    Attention attention = draw(seed);
    attention.group = 1 + int64_t(seed % 2);
    attention.queries = 1 + int64_t(seed % 3);
    attention.keys = 1024 + int64_t(seed * 37 % 500);
    attention.size = attention.valueSize = 64 + int64_t(seed % 4);
    attention.offset = attention.isCausal ? attention.keys - 1 - int64_t(seed * 71 % 1100) : 0;
    attention.mask = seed % 3 ? "" : std::to_string(attention.keys) + "xi1";
    attention.left = seed % 4 ? -1 : int64_t(seed * 53 % 700);
    EXPECT_EQ(checkStages(attention, seed), "") << "seed " << seed << "\n" << attention.getText();
  }
}

/// Likewise by tiles of keys: a block has up to 64 queries, and parts end within a tile, or where a causal mask does.
TEST_F(DeviceAttentionTest, PartsOfManyQueriesTogetherAreTheWhole) {
  const char *types[] = {"f32", "f16", "bf16"};
  for (uint64_t seed = 1; seed <= 15; ++seed) {
    Attention attention = draw(seed);
    attention.type = types[seed % 3];
    attention.batches = 1;
    attention.queries = 16 + int64_t(seed * 11 % 60);
    attention.keys = 1024 + int64_t(seed * 37 % 200);
    attention.size = attention.valueSize = 64 + int64_t(seed % 4);
    attention.offset = attention.isCausal ? attention.keys - attention.queries - int64_t(seed * 71 % 900) : 0;
    attention.mask = seed % 3 ? "" : std::to_string(attention.keys) + "xi1";
    attention.left = seed % 2 ? -1 : int64_t(seed * 53 % 700);
    EXPECT_EQ(checkStages(attention, seed), "") << "seed " << seed << "\n" << attention.getText();
  }
}

//===----------------------------------------------------------------------===//
// What must not go unnoticed
//===----------------------------------------------------------------------===//

TEST_F(DeviceAttentionTest, MissAnyBarrier) {
  // By warps; by lanes, with values beside keys and in their place; by all warps for a query.
  const Attention lowerings[] = {{"bf16", 1, 1, 2, 70, 100, 64, 64, "", false, true},
                                 {"f32", 1, 1, 2, 70, 100, 64, 64, "", false, true},
                                 {"f32", 1, 2, 1, 40, 50, 80, 128, "", true},
                                 {"f32", 1, 1, 1, 1, 300, 64, 64, ""}};
  for (auto [number, attention] : llvm::enumerate(lowerings)) {
    ASSERT_EQ(check(attention, 1), "") << attention.getText();
    size_t barriers = 1;
    for (size_t missing = 0; missing < barriers; ++missing)
      EXPECT_THAT(check(attention, 1,
                        [&](ModuleOp kernels) {
                          SmallVector<gpu::BarrierOp> all;
                          kernels.walk([&](gpu::BarrierOp op) { all.push_back(op); });
                          barriers = all.size();
                          all[missing].erase();
                        }),
                  HasSubstr("race"))
          << "barrier " << missing << " of\n"
          << attention.getText();
    EXPECT_EQ(barriers, (std::array<size_t, 4>{2, 3, 4, 1}[number]));
  }
}

/// Whoever takes part in a row's largest score, a lane left out is seen.
TEST_F(DeviceAttentionTest, MissAShuffle) {
  const Attention lowerings[] = {{"f16", 1, 1, 1, 33, 64, 64, 64, ""}, {"f32", 1, 1, 1, 33, 64, 64, 64, ""}};
  for (const Attention &attention : lowerings)
    EXPECT_THAT(check(attention, 1,
                      [](ModuleOp kernels) {
                        SmallVector<gpu::ShuffleOp> all;
                        kernels.walk([&](gpu::ShuffleOp op) { all.push_back(op); });
                        all.back().getShuffleResult().replaceAllUsesWith(all.back().getValue());
                      }),
                HasSubstr("should be"));
}

} // namespace
