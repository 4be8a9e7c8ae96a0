//===- ReductionTest.cpp - along one or more dims -------------------------===//
//
// Expected values by hand; those of softmax from its formula on doubles.
//
//===----------------------------------------------------------------------===//
#include "Harness.h"

#include <cmath>

using namespace mlir;
using namespace cleave::reference;
using Doubles = std::vector<double>;

namespace {

class ReductionTest : public EvaluatorTest {
protected:
  Doubles reduce(StringRef kind, StringRef type, ArrayRef<double> x, StringRef dims, StringRef result) {
    return run(("func.func @main(%x: " + type + ") -> " + result + " { %y = nn.reduce " + kind + " %x dims " + dims +
                " : (" + type + ") -> " + result + " return %y : " + result + " }")
                   .str(),
               make(type, x));
  }
};

TEST_F(ReductionTest, EveryKindOverAnyDims) {
  Doubles x = {1, 2, 3, 4, 5, 6};
  EXPECT_EQ(reduce("sum", "tensor<2x3xf32>", x, "[0]", "tensor<3xf32>"), (Doubles{5, 7, 9}));
  EXPECT_EQ(reduce("sum", "tensor<2x3xf32>", x, "[1] keep_dims", "tensor<2x1xf32>"), (Doubles{6, 15}));
  EXPECT_EQ(reduce("mean", "tensor<2x3xf32>", x, "[0, 1]", "tensor<f32>"), Doubles{3.5});
  EXPECT_EQ(reduce("prod", "tensor<2x3xi32>", x, "[1]", "tensor<2xi32>"), (Doubles{6, 120}));
  EXPECT_EQ(reduce("max", "tensor<2x3xi8>", {-3, -2, -9, 1, 0, -1}, "[1]", "tensor<2xi8>"), (Doubles{-2, 1}));
  EXPECT_EQ(reduce("min", "tensor<2x3xui64>", x, "[0]", "tensor<3xui64>"), (Doubles{1, 2, 3}));
  EXPECT_EQ(reduce("max", "tensor<2x2xi1>", {0, 0, 1, 0}, "[1]", "tensor<2xi1>"), (Doubles{0, 1}));
  EXPECT_EQ(reduce("sum", "tensor<2x3xf32>", x, "[]", "tensor<2x3xf32>"), x);
}

// The middle dim of three: each run of the operand falls on a run of the result.
TEST_F(ReductionTest, MiddleDim) {
  Doubles x(12);
  for (int i = 0; i < 12; ++i)
    x[i] = i;
  EXPECT_EQ(reduce("sum", "tensor<2x3x2xf64>", x, "[1]", "tensor<2x2xf64>"), (Doubles{6, 9, 24, 27}));
  EXPECT_EQ(reduce("max", "tensor<2x3x2xf64>", x, "[0, 2]", "tensor<3xf64>"), (Doubles{7, 9, 11}));
}

TEST_F(ReductionTest, IntegersWrapAndMeansTruncate) {
  EXPECT_EQ(reduce("sum", "tensor<2xi8>", {100, 100}, "[0]", "tensor<i8>"), Doubles{-56});
  EXPECT_EQ(reduce("mean", "tensor<2xi32>", {-3, 0}, "[0]", "tensor<i32>"), Doubles{-1});
}

TEST_F(ReductionTest, OverNoElements) {
  EXPECT_EQ(reduce("sum", "tensor<0xf32>", {}, "[0]", "tensor<f32>"), Doubles{0});
  EXPECT_EQ(reduce("prod", "tensor<0xf32>", {}, "[0]", "tensor<f32>"), Doubles{1});
  EXPECT_EQ(reduce("max", "tensor<2x0xf16>", {}, "[1]", "tensor<2xf16>"), (Doubles{-HUGE_VAL, -HUGE_VAL}));
  EXPECT_EQ(reduce("min", "tensor<0xi8>", {}, "[0]", "tensor<i8>"), Doubles{127});
  EXPECT_EQ(reduce("max", "tensor<0xui8>", {}, "[0]", "tensor<ui8>"), Doubles{0});
  EXPECT_TRUE(std::isnan(reduce("mean", "tensor<0xf32>", {}, "[0]", "tensor<f32>")[0]));
  EXPECT_EQ(failBody(R"(%x = nn.constant dense<> : tensor<0xi32> -> tensor<0xi32>
                        %y = nn.reduce mean %x dims [0] : (tensor<0xi32>) -> tensor<i32>)",
                     "tensor<i32>"),
            "'nn.reduce' op cannot take the mean of no integers\n");
}

TEST_F(ReductionTest, NanWins) {
  EXPECT_TRUE(std::isnan(reduce("max", "tensor<3xf32>", {1, std::nan(""), 2}, "[0]", "tensor<f32>")[0]));
  EXPECT_TRUE(std::isnan(reduce("min", "tensor<3xbf16>", {1, std::nan(""), 2}, "[0]", "tensor<bf16>")[0]));
}

// A million times 0.1 in f32: adding one after the other in f32 gives 100958.34.
TEST_F(ReductionTest, SumsOfFloatsAreRoundedOnce) {
  Doubles got = eval(R"(%x = nn.constant dense<0.1> : tensor<1000000xf32> -> tensor<1000000xf32>
                        %y = nn.reduce sum %x dims [0] : (tensor<1000000xf32>) -> tensor<f32>)",
                     "tensor<f32>");
  EXPECT_EQ(got, Doubles{float(1e6 * double(0.1f))});
}

TEST_F(ReductionTest, ExtremaAreFoundFirstOrLast) {
  auto argReduce = [&](std::string kind, std::string how) {
    return eval(
        "%x = nn.constant dense<[[3, 5, 5], [2, 2, 7]]> : tensor<2x3xi32> -> tensor<2x3xi32>\n%y = nn.arg_reduce " +
            kind + " %x dim 1 " + how + " : (tensor<2x3xi32>) -> tensor<2xi64>",
        "tensor<2xi64>");
  };
  EXPECT_EQ(argReduce("max", ""), (Doubles{1, 2}));
  EXPECT_EQ(argReduce("max", "last"), (Doubles{2, 2}));
  EXPECT_EQ(argReduce("min", ""), (Doubles{0, 0}));
  EXPECT_EQ(argReduce("min", "last"), (Doubles{0, 1}));
}

TEST_F(ReductionTest, TopKIsOrderedWithTiesByIndex) {
  SmallVector<Tensor> got = runModule(
      R"(func.func @main(%x: tensor<5x1xf32>) -> (tensor<3x1xf32>, tensor<3x1xi64>) {
           %v, %i = nn.top_k %x k 3 dim 0 : (tensor<5x1xf32>) -> (tensor<3x1xf32>, tensor<3x1xi64>)
           return %v, %i : tensor<3x1xf32>, tensor<3x1xi64> })",
      make("tensor<5x1xf32>", {4, 7, 4, 7, 4}));
  ASSERT_EQ(got.size(), 2u) << errors;
  EXPECT_EQ(toDoubles(got[0]), (Doubles{7, 7, 4}));
  EXPECT_EQ(toDoubles(got[1]), (Doubles{1, 3, 0}));
  EXPECT_EQ(run(R"(func.func @main(%x: tensor<4xf32>) -> tensor<4xi64> {
                     %v, %i = nn.top_k %x k 4 dim 0 {smallest} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xi64>)
                     return %i : tensor<4xi64> })",
                make("tensor<4xf32>", {1, std::nan(""), -1, 1})),
            (Doubles{2, 0, 3, 1}));
}

TEST_F(ReductionTest, RunningSumsInAllDirections) {
  auto cumsum = [&](std::string how) {
    return eval("%x = nn.constant dense<[1, 2, 3]> : tensor<3xi64> -> tensor<3xi64>\n%y = nn.cumsum %x dim 0 " + how +
                    " : (tensor<3xi64>) -> tensor<3xi64>",
                "tensor<3xi64>");
  };
  EXPECT_EQ(cumsum(""), (Doubles{1, 3, 6}));
  EXPECT_EQ(cumsum("exclusive"), (Doubles{0, 1, 3}));
  EXPECT_EQ(cumsum("reverse"), (Doubles{6, 5, 3}));
  EXPECT_EQ(cumsum("exclusive reverse"), (Doubles{5, 3, 0}));
}

TEST_F(ReductionTest, SoftmaxOfLargeNumbersAlongAMajorDim) {
  Doubles got = run(R"(func.func @main(%x: tensor<2x2xf64>) -> tensor<2x2xf64> {
                         %y = nn.softmax %x dim 0 : (tensor<2x2xf64>) -> tensor<2x2xf64>
                         return %y : tensor<2x2xf64> })",
                    make("tensor<2x2xf64>", {1000, 0, 1001, 0}));
  double e = std::exp(1.0);
  Doubles want = {1 / (1 + e), 0.5, e / (1 + e), 0.5};
  for (int i = 0; i < 4; ++i)
    EXPECT_NEAR(got[i], want[i], 1e-15);
  got = run(R"(func.func @main(%x: tensor<2xf64>) -> tensor<2xf64> {
                 %y = nn.log_softmax %x dim 0 : (tensor<2xf64>) -> tensor<2xf64>
                 return %y : tensor<2xf64> })",
            make("tensor<2xf64>", {-1000, 1000}));
  EXPECT_EQ(got, (Doubles{-2000, 0}));
}

} // namespace
