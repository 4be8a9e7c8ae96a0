//===- ElementwiseTest.cpp - elementwise ops ------------------------------===//
#include "Harness.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace cleave::reference;
using Doubles = std::vector<double>;

namespace {

class ElementwiseTest : public EvaluatorTest {
protected:
  /// `op` on two operands of `type`.
  std::string binaryModule(StringRef op, StringRef lhs, StringRef rhs, StringRef result) {
    return ("func.func @main(%a: " + lhs + ", %b: " + rhs + ") -> " + result + " { %y = nn." + op.split(' ').first +
            " %a, %b " + op.split(' ').second + " : (" + lhs + ", " + rhs + ") -> " + result +
            " return %y : " + result + " }")
        .str();
  }
  Doubles binary(StringRef op, StringRef type, ArrayRef<double> a, ArrayRef<double> b) {
    return run(binaryModule(op, type, type, type), {make(type, a), make(type, b)});
  }
  Doubles unary(StringRef op, StringRef type, ArrayRef<double> x) {
    return run(("func.func @main(%x: " + type + ") -> " + type + " { %y = nn." + op + " : (" + type + ") -> " + type +
                " return %y : " + type + " }")
                   .str(),
               make(type, x));
  }
};

TEST_F(ElementwiseTest, OperandsBroadcastLikeNumpy) {
  // numpy: arange(6).reshape(2, 3, 1) + 10 * arange(4) -> [[[0, 10, 20, 30], [1, ...]]]
  Doubles want;
  for (int i = 0; i < 6; ++i)
    for (int j = 0; j < 4; ++j)
      want.push_back(i + 10 * j);
  EXPECT_EQ(run(binaryModule("add", "tensor<2x3x1xf32>", "tensor<4xf32>", "tensor<2x3x4xf32>"),
                {make("tensor<2x3x1xf32>", {0, 1, 2, 3, 4, 5}), make("tensor<4xf32>", {0, 10, 20, 30})}),
            want);
  EXPECT_EQ(run(binaryModule("sub", "tensor<f32>", "tensor<2xf32>", "tensor<2xf32>"),
                {make("tensor<f32>", {1}), make("tensor<2xf32>", {3, 5})}),
            (Doubles{-2, -4}));
}

// Longer than a run, and not a multiple of its length.
TEST_F(ElementwiseTest, LongOperandsAreDoneToTheEnd) {
  Doubles a(2500), want(2500);
  for (int i = 0; i < 2500; ++i) {
    a[i] = i % 100;
    want[i] = a[i] * 3;
  }
  EXPECT_EQ(run(binaryModule("mul", "tensor<2500xf16>", "tensor<1xf16>", "tensor<2500xf16>"),
                {make("tensor<2500xf16>", a), make("tensor<1xf16>", {3})}),
            want);
}

TEST_F(ElementwiseTest, EmptyOperandsGiveEmptyResults) {
  EXPECT_EQ(binary("add", "tensor<0x3xf32>", {}, {}), Doubles());
  EXPECT_EQ(binary("div", "tensor<0xi32>", {}, {}), Doubles());
}

TEST_F(ElementwiseTest, IntegersWrap) {
  EXPECT_EQ(binary("add", "tensor<2xi8>", {127, -128}, {1, -1}), (Doubles{-128, 127}));
  EXPECT_EQ(binary("mul", "tensor<1xui8>", {16}, {17}), Doubles{16});
  EXPECT_EQ(binary("sub", "tensor<1xui32>", {0}, {1}), Doubles{4294967295.0});
  EXPECT_EQ(binary("mul", "tensor<1xi64>", {0x1p62}, {4}), Doubles{0});
  EXPECT_EQ(unary("neg %x", "tensor<1xi8>", {-128}), Doubles{-128});
  EXPECT_EQ(unary("abs %x", "tensor<2xi64>", {-0x1p63, -5}), (Doubles{-0x1p63, 5}));
}

TEST_F(ElementwiseTest, IntegerDivisionTruncates) {
  EXPECT_EQ(binary("div", "tensor<4xi32>", {7, -7, 7, -7}, {2, 2, -2, -2}), (Doubles{3, -3, -3, 3}));
  EXPECT_EQ(binary("div", "tensor<1xi64>", {-0x1p63}, {-1}), Doubles{-0x1p63});
  EXPECT_EQ(binary("div", "tensor<1xi8>", {-128}, {-1}), Doubles{-128});
}

TEST_F(ElementwiseTest, DivisionOfIntegersByZeroIsAnError) {
  std::string type = "tensor<3xi32>";
  Tensor ones = make(type, {1, 1, 1}), zero = make(type, {1, 0, 2});
  EXPECT_EQ(fail(binaryModule("div", type, type, type), {ones, zero}),
            "'nn.div' op divides integers by zero: element 1 of the divisor is 0\nnote: the divisor comes from here\n");
  EXPECT_EQ(fail(binaryModule("mod", type, type, type), {ones, zero}),
            "'nn.mod' op divides integers by zero: element 1 of the divisor is 0\nnote: the divisor comes from here\n");
}

// Python's % for the first, C's fmod for the second.
TEST_F(ElementwiseTest, RemaindersTakeTheSignAskedFor) {
  EXPECT_EQ(binary("mod", "tensor<4xi32>", {7, -7, 7, -7}, {3, 3, -3, -3}), (Doubles{1, 2, -2, -1}));
  EXPECT_EQ(binary("mod {truncated}", "tensor<4xi32>", {7, -7, 7, -7}, {3, 3, -3, -3}), (Doubles{1, -1, 1, -1}));
  EXPECT_EQ(binary("mod", "tensor<2xf32>", {-5.5, 5.5}, {2, -2}), (Doubles{0.5, -0.5}));
  EXPECT_EQ(binary("mod {truncated}", "tensor<2xf32>", {-5.5, 5.5}, {2, -2}), (Doubles{-1.5, 1.5}));
  EXPECT_EQ(binary("mod", "tensor<1xi64>", {-0x1p63}, {-1}), Doubles{0});
}

TEST_F(ElementwiseTest, PowersOfIntegersAreExact) {
  EXPECT_EQ(binary("pow", "tensor<5xi64>", {3, 2, 7, -1, 0}, {30, 62, 0, 3, 0}),
            (Doubles{205891132094649.0, 0x1p62, 1, -1, 1}));
  EXPECT_EQ(binary("pow", "tensor<3xi32>", {2, -1, 1}, {-1, -3, -8}), (Doubles{0, -1, 1}));
  EXPECT_EQ(binary("pow", "tensor<2xf32>", {2, 9}, {-1, 0.5}), (Doubles{0.5, 3}));
}

TEST_F(ElementwiseTest, ShiftsPastTheWidthLeaveNothing) {
  EXPECT_EQ(binary("shift", "tensor<3xui8>", {3, 3, 3}, {1, 7, 8}), (Doubles{6, 128, 0}));
  EXPECT_EQ(binary("shift {right}", "tensor<3xui64>", {8, 8, 0x1p63}, {2, 64, 63}), (Doubles{2, 0, 1}));
}

TEST_F(ElementwiseTest, NanWinsMinimumAndMaximum) {
  double nan = std::nan("");
  for (StringRef op : {"min", "max"}) {
    Doubles got = binary(op, "tensor<3xf32>", {nan, 1, 1}, {1, nan, 2});
    EXPECT_TRUE(std::isnan(got[0]) && std::isnan(got[1])) << op.str();
    EXPECT_EQ(got[2], op == "min" ? 1 : 2);
  }
  EXPECT_TRUE(std::isnan(unary("relu %x", "tensor<1xf32>", {nan})[0]));
  EXPECT_TRUE(std::isnan(unary("sign %x", "tensor<1xf32>", {nan})[0]));
}

TEST_F(ElementwiseTest, ComparisonsWithNanAreFalse) {
  double nan = std::nan("");
  std::string type = "tensor<2xf32>";
  EXPECT_EQ(run(binaryModule("eq", type, type, "tensor<2xi1>"), {make(type, {nan, 1}), make(type, {nan, 1})}),
            (Doubles{0, 1}));
  EXPECT_EQ(run(binaryModule("ge", type, type, "tensor<2xi1>"), {make(type, {nan, 2}), make(type, {0, 2})}),
            (Doubles{0, 1}));
}

// f16: 2048 + 1 is halfway to 2050 and goes to even; 60000 + 60000 overflows.
TEST_F(ElementwiseTest, HalfPrecisionRoundsOnceToEven) {
  EXPECT_EQ(binary("add", "tensor<3xf16>", {2048, 2050, 60000}, {1, 1, 60000}), (Doubles{2048, 2052, HUGE_VAL}));
  EXPECT_EQ(binary("mul", "tensor<1xbf16>", {1.0078125}, {1.0078125}), Doubles{1.015625});
}

// Expected values of math functions are libm's on doubles; extreme arguments must not overflow on the way.
TEST_F(ElementwiseTest, ActivationsStayFinite) {
  EXPECT_EQ(unary("sigmoid %x", "tensor<3xf32>", {-1000, 0, 1000}), (Doubles{0, 0.5, 1}));
  EXPECT_EQ(unary("softplus %x", "tensor<3xf32>", {-HUGE_VAL, 1000, HUGE_VAL}), (Doubles{0, 1000, HUGE_VAL}));
  EXPECT_NEAR(unary("softplus %x", "tensor<1xf64>", {1})[0], std::log(1 + std::exp(1.0)), 1e-15);
  EXPECT_NEAR(unary("gelu %x", "tensor<1xf64>", {1.5})[0], 0.75 * (1 + std::erf(1.5 / std::sqrt(2.0))), 1e-15);
  EXPECT_NEAR(unary("gelu %x {tanh = true}", "tensor<1xf64>", {1.5})[0],
              0.75 * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (1.5 + 0.044715 * 3.375))), 1e-15);
  EXPECT_NEAR(unary("elu %x {alpha = 2.0 : f64}", "tensor<1xf64>", {-1})[0], 2 * (std::exp(-1.0) - 1), 1e-15);
  EXPECT_EQ(unary("hard_swish %x", "tensor<3xf32>", {-4, 0, 4}), (Doubles{0, 0, 4}));
  EXPECT_EQ(unary("round %x", "tensor<4xf32>", {0.5, 1.5, -2.5, 2.6}), (Doubles{0, 2, -2, 3}));
}

TEST_F(ElementwiseTest, SelectTakesAnyTypeAndBroadcastsAllThree) {
  EXPECT_EQ(eval(R"(%c = nn.constant dense<[[true], [false]]> : tensor<2x1xi1> -> tensor<2x1xi1>
                    %a = nn.constant dense<[1, 2, 3]> : tensor<3xi8> -> tensor<3xi8>
                    %b = nn.constant dense<9> : tensor<i8> -> tensor<i8>
                    %y = nn.select %c, %a, %b : (tensor<2x1xi1>, tensor<3xi8>, tensor<i8>) -> tensor<2x3xi8>)",
                 "tensor<2x3xi8>"),
            (Doubles{1, 2, 3, 9, 9, 9}));
}

// numpy: clip(round(x / s) + z, 0, 255), scale along dim 1.
TEST_F(ElementwiseTest, QuantizeRoundsToEvenAndSaturates) {
  EXPECT_EQ(eval(R"(%x = nn.constant dense<[[1.0, 5.0], [3.0, -900.0]]> : tensor<2x2xf32> -> tensor<2x2xf32>
                    %s = nn.constant dense<[2.0, 0.5]> : tensor<2xf32> -> tensor<2xf32>
                    %z = nn.constant dense<[1, 128]> : tensor<2xui8> -> tensor<2xui8>
                    %y = nn.quantize %x, %s, %z dim 1 : (tensor<2x2xf32>, tensor<2xf32>, tensor<2xui8>) -> tensor<2x2xui8>)",
                 "tensor<2x2xui8>"),
            (Doubles{1, 138, 3, 0}));
  EXPECT_EQ(eval(R"(%x = nn.constant dense<[[1, 138], [3, 0]]> : tensor<2x2xui8> -> tensor<2x2xui8>
                    %s = nn.constant dense<[2.0, 0.5]> : tensor<2xf32> -> tensor<2xf32>
                    %z = nn.constant dense<[1, 128]> : tensor<2xui8> -> tensor<2xui8>
                    %y = nn.dequantize %x, %s, %z dim 1 : (tensor<2x2xui8>, tensor<2xf32>, tensor<2xui8>) -> tensor<2x2xf32>)",
                 "tensor<2x2xf32>"),
            (Doubles{0, 5, 4, -64}));
}

} // namespace
