//===- ProductsTest.cpp - contractions on the emulated device -------------===//
//
// Random shapes, in all orders of letters, with what works on the result behind them, against sums in f64 by a loop over
// all letters. Each product of two numbers of the type that is multiplied is exact; the bound is that of the order of sums.
//
//===----------------------------------------------------------------------===//
#include "DeviceKernels.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "gmock/gmock.h"
#include <random>

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;
using reference::Tensor;
using ::testing::HasSubstr;

namespace {

/// `y = [relu](einsum(a, b) [+ c])`: how letters stand in terms, and how many there are of each.
struct Product {
  std::string a, b, result, type;
  std::map<char, int64_t> extents;
  bool isFused = false; ///< with a sum of the result's shape, and relu

  SmallVector<int64_t> getShape(StringRef term) const {
    return llvm::map_to_vector<4>(term, [&](char letter) { return extents.at(letter); });
  }
  std::string getType(StringRef term) const {
    std::string text = "tensor<";
    for (int64_t extent : getShape(term))
      text += std::to_string(extent) + "x";
    return text + type + ">";
  }
  std::string getText() const {
    std::string y = getType(result), text = "func.func @main(%a: " + getType(a) + ", %b: " + getType(b) + ", %c: " + y +
                                            ") -> " + y + " {\n  %0 = nn.einsum %a, %b \"" + a + "," + b + "->" +
                                            result + "\" : (" + getType(a) + ", " + getType(b) + ") -> " + y + "\n";
    if (isFused)
      text +=
          "  %1 = nn.add %0, %c : (" + y + ", " + y + ") -> " + y + "\n  %2 = nn.relu %1 : (" + y + ") -> " + y + "\n";
    return text + "  return %" + (isFused ? "2" : "0") + " : " + y + "\n}";
  }
};

/// Bits of fraction that a type has.
int getFraction(StringRef type) { return type == "f16" ? 10 : type == "bf16" ? 7 : type == "f64" ? 52 : 23; }

class DeviceProductsTest : public DeviceKernelsTest {
protected:
  /// What is wrong with a product, or an empty string. `damage` is done to the kernel before it is compiled.
  std::string check(const Product &product, uint64_t seed, function_ref<void(ModuleOp)> damage = nullptr) {
    auto ofInputs = [&](ArrayRef<Tensor> inputs, ArrayRef<double> got) { return compare(product, inputs, got); };
    return runAlone(product.getText(), "product", seed, ofInputs, damage);
  }

  std::string compare(const Product &product, ArrayRef<Tensor> inputs, ArrayRef<double> got);
};

/// Row-major in each operand. Of large results every 61st element, which leaves out no row, column or lane of a block.
std::string DeviceProductsTest::compare(const Product &product, ArrayRef<Tensor> inputs, ArrayRef<double> got) {
  std::vector<double> a = getNumbers(inputs[0]), b = getNumbers(inputs[1]), c = getNumbers(inputs[2]);
  std::map<char, int64_t> at;
  auto place = [&](StringRef term) {
    int64_t linear = 0;
    for (char letter : term)
      linear = linear * product.extents.at(letter) + at[letter];
    return size_t(linear);
  };
  auto spread = [&](StringRef term, int64_t linear) {
    for (char letter : llvm::reverse(term)) {
      at[letter] = linear % product.extents.at(letter);
      linear /= product.extents.at(letter);
    }
  };
  std::string summed;
  for (auto [letter, extent] : product.extents)
    if (product.result.find(letter) == std::string::npos)
      summed += letter;
  int64_t terms = ShapedType::getNumElements(product.getShape(summed));
  bool isShort = cuda->getAllowed() == Allowed::Tf32 && product.type == "f32";
  double own = std::ldexp(1, -getFraction(product.type) - 1), order = product.type == "f64" ? 1e-14 : 4e-6;
  for (size_t i = 0; i < got.size(); i += got.size() > 500'000 ? 61 : 1) {
    double sum = 0, size = 0;
    spread(product.result, int64_t(i));
    for (int64_t number = 0; number < terms; ++number) {
      spread(summed, number);
      double x = a[place(product.a)], y = b[place(product.b)];
      double term = isShort ? roundToTf32(x) * roundToTf32(y) : x * y;
      sum += term;
      size += std::fabs(term);
    }
    double want = product.isFused ? std::max(0.0, sum + c[i]) : sum;
    // Each op rounds once.
    double bound = order * size + 1.001 * own * (std::fabs(sum) + std::fabs(sum + c[i])) + 1e-7 * own;
    if (!(std::fabs(got[i] - want) <= bound))
      return "element " + std::to_string(i) + " is " + std::to_string(got[i]) + " and should be " +
             std::to_string(want);
  }
  return "";
}

/// Sizes at, below and above those of vectors, fragments and blocks.
Product draw(uint64_t seed) {
  std::mt19937_64 random(seed);
  auto pick = [&](auto list) { return *(list.begin() + random() % list.size()); };
  auto any = [&] { return pick(std::initializer_list<int64_t>{1, 2, 5, 8, 16, 17, 24, 31, 32, 40, 64, 72, 96, 130}); };
  Product product;
  product.type = pick(std::initializer_list<const char *>{"f32", "f16", "bf16", "f32", "f16", "bf16", "f64"});
  product.extents = {{'i', any()}, {'j', any()}, {'k', any()}};
  product.a = "ik";
  product.b = "kj";
  product.result = "ij";
  if (random() % 3 == 0) {
    product.extents['b'] = pick(std::initializer_list<int64_t>{1, 2, 3});
    for (std::string *term : {&product.a, &product.b, &product.result})
      *term += 'b';
  }
  // A second letter of the depth, or of the rows.
  if (random() % 4 == 0) {
    bool isDepth = random() % 2;
    product.extents['x'] = pick(std::initializer_list<int64_t>{2, 3, 8});
    product.a += 'x';
    (isDepth ? product.b : product.result) += 'x';
  }
  for (std::string *term : {&product.a, &product.b, &product.result})
    std::shuffle(term->begin(), term->end(), random);
  product.isFused = random() % 2;
  return product;
}

TEST_F(DeviceProductsTest, EqualSumsInAnyOrderOfLetters) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    Product product = draw(seed);
    EXPECT_EQ(check(product, seed), "") << "seed " << seed << "\n" << product.getText();
  }
}

/// As many blocks as large ones are made for, with ends of rows, columns and depth.
TEST_F(DeviceProductsTest, EqualSumsInLargeBlocks) {
  const Product products[] = {{"ik", "kj", "ij", "bf16", {{'i', 1500}, {'j', 1540}, {'k', 40}}, true},
                              {"ki", "jk", "ij", "f16", {{'i', 1408}, {'j', 768}, {'k', 72}}, false},
                              {"ik", "jk", "ij", "f32", {{'i', 1500}, {'j', 1541}, {'k', 20}}, true},
                              {"ki", "jk", "ij", "f32", {{'i', 1408}, {'j', 768}, {'k', 36}}, false},
                              {"ik", "kj", "ij", "f32", {{'i', 704}, {'j', 768}, {'k', 33}}, true}};
  for (const Product &product : products)
    EXPECT_EQ(check(product, 3), "") << product.getText();
}

TEST_F(DeviceProductsTest, RoundToTf32WhereThatIsAllowed) {
  cuda->allow(Allowed::Tf32);
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Product product = draw(seed);
    product.type = "f32";
    EXPECT_EQ(check(product, seed), "") << "seed " << seed << "\n" << product.getText();
  }
  // Without rounding it is not that.
  Product product{"ik", "kj", "ij", "f32", {{'i', 32}, {'j', 32}, {'k', 32}}};
  EXPECT_EQ(check(product, 1), "");
  auto keepBits = [](ModuleOp kernels) {
    kernels.walk([](NVVM::ConvertFloatToTF32Op op) {
      OpBuilder b(op);
      op.replaceAllUsesWith(LLVM::BitcastOp::create(b, op.getLoc(), b.getI32Type(), op.getSrc()).getResult());
      op.erase();
    });
  };
  EXPECT_THAT(check(product, 1, keepBits), HasSubstr("should be"));
}

//===----------------------------------------------------------------------===//
// What must not go unnoticed
//===----------------------------------------------------------------------===//

template <typename OpT> SmallVector<OpT> getAll(ModuleOp kernels) {
  SmallVector<OpT> found;
  kernels.walk([&](OpT op) { found.push_back(op); });
  return found;
}

const Product kProducts[] = {{"ik", "kj", "ij", "bf16", {{'i', 70}, {'j', 64}, {'k', 512}}, true},
                             {"ik", "jk", "ij", "f16", {{'i', 12}, {'j', 64}, {'k', 1024}}, false},
                             {"ik", "kj", "ij", "f32", {{'i', 70}, {'j', 64}, {'k', 256}}, true},
                             {"ik", "kj", "ij", "f32", {{'i', 71}, {'j', 63}, {'k', 129}}, false}};

TEST_F(DeviceProductsTest, MissAnyBarrier) {
  for (const Product &product : kProducts) {
    ASSERT_EQ(check(product, 1), "");
    size_t barriers = 1;
    for (size_t missing = 0; missing < barriers; ++missing)
      EXPECT_THAT(check(product, 1,
                        [&](ModuleOp kernels) {
                          SmallVector<gpu::BarrierOp> all = getAll<gpu::BarrierOp>(kernels);
                          barriers = all.size();
                          all[missing].erase();
                        }),
                  ::testing::AnyOf(HasSubstr("race"), HasSubstr("not waited for")))
          << "barrier " << missing << " of\n"
          << product.getText();
    EXPECT_GE(barriers, 3u);
  }
}

TEST_F(DeviceProductsTest, MissAWaitForCopies) {
  for (const Product &product : ArrayRef(kProducts).drop_back()) {
    EXPECT_THAT(check(product, 1,
                      [](ModuleOp kernels) {
                        for (NVVM::CpAsyncWaitGroupOp op : getAll<NVVM::CpAsyncWaitGroupOp>(kernels))
                          op.erase();
                      }),
                HasSubstr("an asynchronous copy into it is not waited for"));
    // One more group may be on its way than may.
    EXPECT_THAT(check(product, 1,
                      [](ModuleOp kernels) {
                        for (NVVM::CpAsyncWaitGroupOp op : getAll<NVVM::CpAsyncWaitGroupOp>(kernels))
                          op.setN(op.getN() + 1);
                      }),
                HasSubstr("an asynchronous copy into it is not waited for"));
  }
}

TEST_F(DeviceProductsTest, TakeAWrongLane) {
  for (const Product &product : ArrayRef(kProducts).take_front(2))
    EXPECT_THAT(check(product, 1,
                      [](ModuleOp kernels) {
                        NVVM::MmaOp first = getAll<NVVM::MmaOp>(kernels).front();
                        OperandRange rows = first.getOperandA();
                        Value second = rows[1], third = rows[2];
                        first->setOperand(1, third);
                        first->setOperand(2, second);
                      }),
                HasSubstr("should be"));
}

} // namespace
