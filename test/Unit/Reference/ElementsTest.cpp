//===- ElementsTest.cpp - conversions of elements, against APFloat --------===//
#include "Harness.h"

#include "mlir/AsmParser/AsmParser.h"
#include "llvm/ADT/APFloat.h"
#include <cmath>
#include <random>

using namespace mlir;
using namespace cleave::reference;
using llvm::APFloat;

namespace {

bool isSame(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

class ElementsTest : public EvaluatorTest {
protected:
  /// `value` rounded by APFloat to the type's semantics.
  static double roundTo(const llvm::fltSemantics &semantics, APFloat value) {
    bool losesInfo;
    value.convert(semantics, APFloat::rmNearestTiesToEven, &losesInfo);
    value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
    return value.convertToDouble();
  }
  /// Casts `values` of `from` to `to` in the evaluator.
  std::vector<double> cast(StringRef from, StringRef to, ArrayRef<double> values) {
    std::string n = std::to_string(values.size());
    std::string fromType = "tensor<" + n + "x" + from.str() + ">", toType = "tensor<" + n + "x" + to.str() + ">";
    return run("func.func @main(%x: " + fromType + ") -> " + toType + " { %y = nn.cast %x : (" + fromType + ") -> " +
                   toType + " return %y : " + toType + " }",
               make(fromType, values));
  }
  /// Doubles of all sizes, and the neighbors of what 16-bit types can hold.
  static std::vector<double> getProbes() {
    std::vector<double> probes = {0.0,        -0.0,    65504,     65519.99,        65520,    65536,
                                  0x1p-24,    0x1p-25, 0x1.8p-25, 0x1.0000001p-25, 0x1p-133, 0x1p-134,
                                  0x1.8p-134, 3.4e38,  3.39e38,   HUGE_VAL,        -HUGE_VAL};
    std::mt19937_64 random(1);
    for (int i = 0; i < 4000; ++i) {
      int exponent = int(random() % 340) - 170;
      probes.push_back(std::ldexp(double(random() % 4096) + (i % 2 ? 0.5 : 0.5000001), exponent) * (i % 3 ? 1 : -1));
    }
    return probes;
  }
};

// Every f16 and bf16 bit pattern widens to the value that APFloat gives it, and narrows back to itself.
TEST_F(ElementsTest, SixteenBitFloatsSurviveTheRoundTrip) {
  for (bool isHalf : {true, false}) {
    Type narrow = isHalf ? Type(Float16Type::get(&context)) : Type(BFloat16Type::get(&context));
    auto type = RankedTensorType::get({65536}, narrow);
    Tensor all = Tensor::zeros(type);
    for (int i = 0; i < 65536; ++i)
      all.write<uint16_t>()[i] = i;
    std::string name = isHalf ? "f16" : "bf16";
    std::string types = "tensor<65536x" + name + ">";
    SmallVector<Tensor> outputs =
        runModule("func.func @main(%x: " + types + ") -> (tensor<65536xf32>, " + types + ") { %w = nn.cast %x : (" +
                      types + ") -> tensor<65536xf32> %n = nn.cast %w : (tensor<65536xf32>) -> " + types +
                      " return %w, %n : tensor<65536xf32>, " + types + " }",
                  all);
    ASSERT_EQ(outputs.size(), 2u) << errors;
    std::vector<double> wide = toDoubles(outputs[0]), want = toDoubles(all), back = toDoubles(outputs[1]);
    int numDifferent = 0;
    for (int i = 0; i < 65536; ++i) {
      numDifferent += !isSame(wide[i], want[i]);
      numDifferent += !isSame(back[i], want[i]);
    }
    EXPECT_EQ(numDifferent, 0) << name;
  }
}

TEST_F(ElementsTest, DoublesRoundOnceToEverySmallerFloat) {
  std::vector<double> probes = getProbes();
  const std::pair<StringRef, const llvm::fltSemantics *> targets[] = {
      {"f16", &APFloat::IEEEhalf()}, {"bf16", &APFloat::BFloat()}, {"f32", &APFloat::IEEEsingle()}};
  for (auto [name, semantics] : targets) {
    std::vector<double> got = cast("f64", name, probes);
    ASSERT_EQ(got.size(), probes.size());
    for (size_t i = 0; i < probes.size(); ++i)
      EXPECT_TRUE(isSame(got[i], roundTo(*semantics, APFloat(probes[i])))) << name.str() << " of " << probes[i];
  }
}

TEST_F(ElementsTest, FloatsRoundToSixteenBits) {
  std::vector<double> probes = getProbes();
  for (double &probe : probes)
    probe = float(probe);
  std::vector<double> half = cast("f32", "f16", probes), brain = cast("f32", "bf16", probes);
  for (size_t i = 0; i < probes.size(); ++i) {
    EXPECT_TRUE(isSame(half[i], roundTo(APFloat::IEEEhalf(), APFloat(probes[i])))) << probes[i];
    EXPECT_TRUE(isSame(brain[i], roundTo(APFloat::BFloat(), APFloat(probes[i])))) << probes[i];
  }
}

// 2^24 + 2^16 + 1 lies just above the middle of two bf16 values; by way of f32 it would fall on the middle and then
// to the even, lower one.
TEST_F(ElementsTest, IntegersRoundOnce) {
  EXPECT_EQ(cast("i64", "bf16", {16842753}), std::vector<double>{16908288});
  EXPECT_EQ(cast("i64", "f32", {16777217, -16777219}), (std::vector<double>{16777216, -16777220}));
  EXPECT_EQ(cast("ui8", "f16", {255, 0}), (std::vector<double>{255, 0}));
}

// As x86 converts: out of range gives the smallest i32 or i64, narrower integers keep the low bits.
TEST_F(ElementsTest, FloatsTruncateToIntegers) {
  double nan = std::nan("");
  EXPECT_EQ(cast("f32", "i32", {1.9, -1.9, 3e9, nan}), (std::vector<double>{1, -1, -2147483648.0, -2147483648.0}));
  EXPECT_EQ(cast("f64", "i64", {1e30, -2.5}), (std::vector<double>{-9223372036854775808.0, -2}));
  EXPECT_EQ(cast("f32", "ui8", {-1, 256, 300.7}), (std::vector<double>{255, 0, 44}));
  EXPECT_EQ(cast("f64", "ui64", {0x1p63}), std::vector<double>{0x1p63});
  EXPECT_EQ(cast("f32", "i1", {0, -0.0, 0.25, nan}), (std::vector<double>{0, 0, 1, 1}));
  EXPECT_EQ(cast("i32", "i8", {300, -129}), (std::vector<double>{44, 127}));
}

// By IEEE 754: sign, exponent with its bias, fraction. A bool is a byte.
TEST_F(ElementsTest, BitsStayWhatTheyAre) {
  EXPECT_EQ(eval(R"(%x = nn.constant dense<[1.0, -2.5, 0.0]> : tensor<3xf32> -> tensor<3xf32>
                    %y = nn.bitcast %x : (tensor<3xf32>) -> tensor<3xui32>)",
                 "tensor<3xui32>"),
            (std::vector<double>{0x3f800000, 0xc0200000, 0}));
  EXPECT_EQ(eval(R"(%x = nn.constant dense<[0x3c00, 0xbe00]> : tensor<2xui16> -> tensor<2xui16>
                    %y = nn.bitcast %x : (tensor<2xui16>) -> tensor<2xf16>)",
                 "tensor<2xf16>"),
            (std::vector<double>{1, -1.5}));
  EXPECT_EQ(eval(R"(%x = nn.constant dense<[2, 0, 1]> : tensor<3xui8> -> tensor<3xui8>
                    %b = nn.bitcast %x : (tensor<3xui8>) -> tensor<3xi1>
                    %y = nn.bitcast %b : (tensor<3xi1>) -> tensor<3xi8>)",
                 "tensor<3xi8>"),
            (std::vector<double>{1, 0, 1}));
}

TEST_F(ElementsTest, SaturatingCastsStopAtTheEnds) {
  EXPECT_EQ(eval(R"(%x = nn.constant dense<[1.0e3, -1.0e3, 5.7]> : tensor<3xf32> -> tensor<3xf32>
                    %y = nn.cast %x {saturate} : (tensor<3xf32>) -> tensor<3xi8>)",
                 "tensor<3xi8>"),
            (std::vector<double>{127, -128, 5}));
  EXPECT_EQ(eval(R"(%x = nn.constant dense<[300, -7, 9]> : tensor<3xi64> -> tensor<3xi64>
                    %y = nn.cast %x {saturate} : (tensor<3xi64>) -> tensor<3xui8>)",
                 "tensor<3xui8>"),
            (std::vector<double>{255, 0, 9}));
}

TEST_F(ElementsTest, SaturatingCastsReachTheLargest64BitIntegers) {
  SmallVector<Tensor> got = runModule(R"(func.func @main(%x: tensor<3xf32>) -> (tensor<3xi64>, tensor<3xui64>) {
      %i = nn.cast %x {saturate} : (tensor<3xf32>) -> tensor<3xi64>
      %u = nn.cast %x {saturate} : (tensor<3xf32>) -> tensor<3xui64>
      return %i, %u : tensor<3xi64>, tensor<3xui64> })",
                                      make("tensor<3xf32>", {1e30, -1e30, std::nan("")}));
  ASSERT_EQ(got.size(), 2u) << errors;
  EXPECT_EQ(got[0].as<int64_t>(), ArrayRef<int64_t>({INT64_MAX, INT64_MIN, 0}));
  EXPECT_EQ(got[1].as<uint64_t>(), ArrayRef<uint64_t>({UINT64_MAX, 0, 0}));
}

// The blob starts with its alignment, 4; then 1.0 and 2.0.
TEST_F(ElementsTest, ResourcesAreRead) {
  EXPECT_EQ(run(R"(func.func @main() -> tensor<2xf32> {
                     %y = nn.constant dense_resource<w> : tensor<2xf32> -> tensor<2xf32>
                     return %y : tensor<2xf32> }
                   {-# dialect_resources: { builtin: { w: "0x040000000000803F00000040" } } #-})"),
            (std::vector<double>{1, 2}));
}

TEST_F(ElementsTest, AttributesComeBackAsTheyWere) {
  for (StringRef text : {"dense<[true, false, true]> : tensor<3xi1>", "dense<7> : tensor<2x2xui8>",
                         "dense<[[1.5], [-2.0]]> : tensor<2x1xbf16>", "dense<> : tensor<0x4xf64>",
                         "dense<-3> : tensor<i64>", "dense<true> : tensor<4xi1>"}) {
    auto attr = llvm::cast<DenseElementsAttr>(parseAttribute(text, &context));
    FailureOr<Tensor> tensor = Tensor::fromAttr(attr);
    ASSERT_TRUE(succeeded(tensor)) << text.str();
    EXPECT_EQ(tensor->toAttr(), attr) << text.str();
  }
}

} // namespace
