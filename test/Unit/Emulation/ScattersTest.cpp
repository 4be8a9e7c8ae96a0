//===- ScattersTest.cpp - scatters of many updates on the emulated device -===//
//
// Random shapes, kinds and types, with places that many updates lead to, against updates taken one after the other in loops: that order is
// what the op means, so that floats must have the very same bits. Half of the kernels write over what they update.
//
//===----------------------------------------------------------------------===//
#include "DeviceKernels.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
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

struct Scatter {
  std::string kind, type;
  SmallVector<int64_t> shape, indices, updates;
  std::optional<int64_t> dim; ///< of single elements; none: slices, by tuples
  bool isAlone = false;       ///< nothing is computed of the result

  bool isFloat() const { return type.find('f') != std::string::npos; }
  bool isNegated() const { return isFloat() && !isAlone; }
  std::string getText() const;
};

std::string makeType(ArrayRef<int64_t> shape, StringRef element) {
  std::string text = "tensor<";
  for (int64_t extent : shape)
    text += std::to_string(extent) + "x";
  return text + element.str() + ">";
}

/// What is computed of the result is part of the kernel.
std::string Scatter::getText() const {
  std::string x = makeType(shape, type), op = dim ? "elements" : "nd";
  std::string text = llvm::formatv("func.func @main(%x: {0}, %i: {1}, %u: {2}) -> {0} {{\n", x,
                                   makeType(indices, "i64"), makeType(updates, type));
  text +=
      llvm::formatv("  %0 = nn.scatter_{0} {1} %x, %i, %u{2} : ({3}, {4}, {5}) -> {3}\n", op, kind,
                    dim ? " dim " + std::to_string(*dim) : "", x, makeType(indices, "i64"), makeType(updates, type));
  if (isNegated())
    text += llvm::formatv("  %1 = nn.neg %0 : ({0}) -> {0}\n", x);
  return text + llvm::formatv("  return %{0} : {1}\n}", isNegated() ? 1 : 0, x).str();
}

template <typename T> T join(StringRef kind, T old, T with) {
  if (kind == "add")
    return old + with;
  if (kind == "mul")
    return old * with;
  return kind == "set" ? with : kind == "max" ? std::max(old, with) : std::min(old, with);
}

class DeviceScattersTest : public DeviceKernelsTest {
protected:
  /// What is wrong, or an empty string. `damage` is done to the kernel before it is compiled.
  std::string check(const Scatter &scatter, uint64_t seed, function_ref<void(ModuleOp)> damage = nullptr);
  /// Those whose result may lie where the input does.
  int inPlace = 0;
};

int64_t linearize(ArrayRef<int64_t> at, ArrayRef<int64_t> shape) {
  int64_t linear = 0;
  for (auto [index, extent] : llvm::zip_equal(at, shape))
    linear = linear * extent + index;
  return linear;
}

/// Where update `number` of all elements goes.
int64_t findPlace(const Scatter &s, ArrayRef<int64_t> indices, int64_t number) {
  SmallVector<int64_t> at(s.updates.size());
  for (int64_t dim = int64_t(at.size()) - 1, rest = number; dim >= 0; --dim) {
    at[dim] = rest % s.updates[dim];
    rest /= s.updates[dim];
  }
  auto wrap = [](int64_t index, int64_t extent) { return index < 0 ? index + extent : index; };
  if (s.dim) {
    at[*s.dim] = wrap(indices[number], s.shape[*s.dim]);
    return linearize(at, s.shape);
  }
  int64_t depth = s.indices.back(), tuples = int64_t(s.indices.size()) - 1;
  int64_t tuple = linearize(ArrayRef(at).take_front(tuples), ArrayRef(s.indices).drop_back());
  SmallVector<int64_t> place;
  for (int64_t i = 0; i < depth; ++i)
    place.push_back(wrap(indices[tuple * depth + i], s.shape[i]));
  llvm::append_range(place, ArrayRef(at).drop_front(tuples));
  return linearize(place, s.shape);
}

template <typename T>
std::vector<T> updateAll(const Scatter &s, ArrayRef<Tensor> inputs, std::vector<T> all, const std::vector<T> &updates) {
  ArrayRef<int64_t> indices = inputs[1].as<int64_t>();
  for (int64_t number = 0; number < int64_t(updates.size()); ++number) {
    T &old = all[size_t(findPlace(s, indices, number))];
    old = join(s.kind, old, updates[size_t(number)]);
  }
  return all;
}

/// As the op says: in the order of updates, in f32 for halves, rounded once.
std::vector<double> findWanted(const Scatter &s, ArrayRef<Tensor> inputs) {
  std::vector<double> wanted;
  auto put = [&](const auto &all) { wanted.assign(all.begin(), all.end()); };
  if (s.type == "i32")
    put(updateAll<int32_t>(s, inputs, inputs[0].as<int32_t>().vec(), inputs[2].as<int32_t>().vec()));
  else if (s.type == "i64")
    put(updateAll<int64_t>(s, inputs, inputs[0].as<int64_t>().vec(), inputs[2].as<int64_t>().vec()));
  else if (s.type == "f64")
    put(updateAll<double>(s, inputs, inputs[0].as<double>().vec(), inputs[2].as<double>().vec()));
  if (!wanted.empty() && s.type == "f64" && s.isNegated())
    for (double &number : wanted)
      number = -number;
  if (!wanted.empty())
    return wanted;
  std::vector<double> x = getNumbers(inputs[0]), u = getNumbers(inputs[2]);
  put(updateAll<float>(s, inputs, {x.begin(), x.end()}, {u.begin(), u.end()}));
  for (double &number : wanted) {
    llvm::APFloat rounded(s.isNegated() ? -number : number);
    bool isInexact = false;
    const llvm::fltSemantics &type = s.type == "f16"    ? llvm::APFloat::IEEEhalf()
                                     : s.type == "bf16" ? llvm::APFloat::BFloat()
                                                        : llvm::APFloat::IEEEsingle();
    rounded.convert(type, llvm::APFloat::rmNearestTiesToEven, &isInexact);
    rounded.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &isInexact);
    number = rounded.convertToDouble();
  }
  return wanted;
}

std::vector<double> getAny(const Scatter &s, const Tensor &tensor) {
  std::vector<double> numbers;
  if (s.isFloat())
    return getNumbers(tensor);
  for (APInt number : tensor.toAttr().getValues<APInt>())
    numbers.push_back(double(number.getSExtValue()));
  return numbers;
}

/// Places of any size, negative ones too; few of them in some cases, so that many updates meet.
void drawPlaces(const Scatter &s, SmallVector<Tensor> &inputs, std::mt19937_64 &random) {
  bool areFew = random() % 3 == 0;
  auto places = inputs[1].write<int64_t>();
  for (size_t i = 0; i < places.size(); ++i) {
    int64_t extent = s.shape[size_t(s.dim ? *s.dim : int64_t(i) % s.indices.back())];
    places[i] =
        int64_t(random() % uint64_t(areFew ? std::min<int64_t>(extent, 2) : extent)) - (random() % 2 ? extent : 0);
  }
  for (size_t number : {0, 2}) {
    if (s.type == "i32")
      for (int32_t &element : inputs[number].write<int32_t>())
        element = int32_t(random() % 7) - 3;
    if (s.type == "i64")
      for (int64_t &element : inputs[number].write<int64_t>())
        element = int64_t(random() % 7) - 3;
  }
}

std::string DeviceScattersTest::check(const Scatter &s, uint64_t seed, function_ref<void(ModuleOp)> damage) {
  OwningOpRef<ModuleOp> source = parseSourceString<ModuleOp>(s.getText(), &context);
  if (!source)
    return "cannot parse: " + errors;
  func::FuncOp func = *source->getOps<func::FuncOp>().begin();
  std::string reason;
  if (!canEmitDevice(func.front(), reason))
    return reason;
  SmallVector<int64_t> places;
  if (seed % 2 && canBeInPlaceOnDevice(func.front(), 0, 0)) {
    places = {0};
    ++inPlace;
  }
  OwningOpRef<ModuleOp> kernels = ModuleOp::create(UnknownLoc::get(&context));
  DeviceKernel launch = emitDeviceKernel(func.front(), "scatter", *kernels, *cuda, places, {}, s.isAlone);
  int64_t updates = s.dim ? s.updates[*s.dim] : ShapedType::getNumElements(ArrayRef(s.indices).drop_back());
  if (launch.sharedBytes == 0 && updates >= 32)
    return "each element looks for its updates";
  int64_t threads = int64_t(launch.grid[0]) * launch.block[0], elements = ShapedType::getNumElements(s.updates);
  // A line of a scatter of elements may have no updates.
  if (s.isAlone && !s.dim && !places.empty() && updates < 32 && threads >= elements + launch.block[0])
    return "there are " + std::to_string(threads) + " threads";
  if (damage)
    damage(*kernels);
  const emulation::Module *module = load(*kernels);
  if (!module)
    return "cannot load: " + errors;
  std::mt19937_64 random(seed);
  SmallVector<Tensor> inputs = drawInputs(func, seed);
  drawPlaces(s, inputs, random);
  Tensor output = Tensor::zeros(cast<RankedTensorType>(func.getResultTypes()[0]));
  std::vector<double> wanted = findWanted(s, inputs);
  if (std::string finding = run(*module, launch, inputs, output, places); !finding.empty())
    return finding;
  std::vector<double> got = getAny(s, output);
  for (size_t i = 0; i < got.size(); ++i)
    if (got[i] != wanted[i])
      return llvm::formatv("element {0} is {1} and should be {2}", i, got[i], wanted[i]);
  return "";
}

Scatter draw(uint64_t seed) {
  std::mt19937_64 random(seed);
  auto pick = [&](std::initializer_list<int64_t> list) { return *(list.begin() + random() % list.size()); };
  auto name = [&](std::initializer_list<const char *> list) { return *(list.begin() + random() % list.size()); };
  Scatter s;
  s.kind = name({"set", "set", "add", "add", "mul", "max", "min"});
  s.type = name({"f32", "f32", "f64", "f16", "bf16", "i32", "i64"});
  if (random() % 2) {
    s.shape = {pick({1, 2, 3}), pick({1, 5, 40}), pick({1, 3, 4})};
    s.dim = random() % 3;
    s.shape[*s.dim] = pick({2, 30, 300, 1200});
    s.updates = s.shape;
    for (int64_t &extent : s.updates)
      extent = random() % 3 ? extent : llvm::divideCeil(extent, 2);
    s.updates[*s.dim] = pick({32, 60, 256, 300, 1100});
    s.indices = s.updates;
    return s;
  }
  int64_t depth = pick({1, 1, 2}), numbers = pick({32, 33, 200, 256, 1100});
  for (int64_t i = 0; i < depth; ++i)
    s.shape.push_back(pick({1, 4, 40, 70}));
  s.indices = random() % 2 ? SmallVector<int64_t>{numbers, depth} : SmallVector<int64_t>{2, numbers, depth};
  s.updates.assign(s.indices.begin(), s.indices.end() - 1);
  for (int64_t left = random() % 3; left > 0; --left) {
    s.shape.push_back(pick({1, 3, 8, 20}));
    s.updates.push_back(s.shape.back());
  }
  return s;
}

TEST_F(DeviceScattersTest, EqualUpdatesOneAfterTheOther) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    Scatter s = draw(seed);
    EXPECT_EQ(check(s, seed), "") << "seed " << seed << "\n" << s.getText();
  }
  EXPECT_GE(inPlace, 60);
}

/// Where few are updated, and the result lies where the input does, nothing else is touched: no more threads than updates have elements.
TEST_F(DeviceScattersTest, WriteNothingElseInPlace) {
  for (uint64_t seed = 1; seed <= 120; ++seed) {
    Scatter s = draw(seed);
    std::mt19937_64 random(seed);
    int64_t few = 1 + int64_t(random() % 31);
    if (s.dim) {
      s.updates[*s.dim] = s.indices[*s.dim] = few;
    } else {
      s.indices = {few, s.indices.back()};
      s.updates.assign({few});
      s.updates.append(s.shape.begin() + s.indices.back(), s.shape.end());
    }
    s.isAlone = true;
    EXPECT_EQ(check(s, 2 * seed + 1), "") << "seed " << seed << "\n" << s.getText();
    EXPECT_EQ(inPlace, int(seed));
  }
}

/// Rows of so many columns that blocks share them, and whole ones of threads that have several rows.
TEST_F(DeviceScattersTest, EqualUpdatesOfWideRows) {
  for (const char *kind : {"set", "add"})
    for (const char *type : {"f32", "bf16"})
      for (int64_t columns : {768, 1100, 5000}) {
        Scatter s{kind, type, {9, columns}, {40, 1}, {40, columns}, std::nullopt};
        EXPECT_EQ(check(s, 3), "") << s.getText();
      }
}

/// As many blocks as many rows are split into.
TEST_F(DeviceScattersTest, EqualUpdatesOfManyRows) {
  for (const char *kind : {"set", "add", "max"}) {
    Scatter s{kind, "f32", {70000}, {3000, 1}, {3000}, std::nullopt};
    EXPECT_EQ(check(s, 4), "") << s.getText();
    Scatter lines{kind, "f16", {3, 20000, 2}, {3, 700, 2}, {3, 700, 2}, 1};
    EXPECT_EQ(check(lines, 5), "") << lines.getText();
  }
}

/// Without any one of its barriers, and with stores that are no atomics, a kernel is found out.
TEST_F(DeviceScattersTest, MissAnyBarrier) {
  for (auto [kind, expected] : {std::pair("set", 2), {"add", 1}}) {
    Scatter s{kind, "f32", {40, 24}, {600, 1}, {600, 24}, std::nullopt};
    ASSERT_EQ(check(s, 2), "") << s.getText();
    int barriers = 1;
    for (int missing = 0; missing < barriers; ++missing)
      EXPECT_THAT(check(s, 2,
                        [&](ModuleOp kernels) {
                          SmallVector<gpu::BarrierOp> all;
                          kernels.walk([&](gpu::BarrierOp op) { all.push_back(op); });
                          barriers = int(all.size());
                          all[size_t(missing)].erase();
                        }),
                  HasSubstr("race"))
          << "barrier " << missing << " of " << kind;
    EXPECT_EQ(barriers, expected);
  }
  Scatter s{"set", "f32", {40, 24}, {600, 1}, {600, 24}, std::nullopt};
  auto useStores = [](ModuleOp kernels) {
    kernels.walk([](memref::AtomicRMWOp op) {
      OpBuilder b(op);
      memref::StoreOp::create(b, op.getLoc(), op.getValue(), op.getMemref(), op.getIndices());
      op.erase();
    });
  };
  EXPECT_THAT(check(s, 2, useStores), HasSubstr("race"));
}

} // namespace
