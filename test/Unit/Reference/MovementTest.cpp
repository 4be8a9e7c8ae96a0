//===- MovementTest.cpp - elements change place ---------------------------===//
//
// Expected values are numpy's for the same arrays: transpose, slicing, np.pad, np.roll, np.triu and np.tril.
//
//===----------------------------------------------------------------------===//
#include "Harness.h"

using namespace mlir;
using namespace cleave::reference;
using Doubles = std::vector<double>;

namespace {

class MovementTest : public EvaluatorTest {
protected:
  /// `ops` on %x = arange(2 * 3).reshape(2, 3), of i16.
  Doubles onSix(StringRef ops, StringRef type) {
    return eval(("%x = nn.constant dense<[[0, 1, 2], [3, 4, 5]]> : tensor<2x3xi16> -> tensor<2x3xi16>\n" + ops).str(),
                type);
  }
};

TEST_F(MovementTest, TransposeOfThreeDims) {
  EXPECT_EQ(eval(R"(%i = nn.iota dim 0 start 0 step 1 : tensor<24xf32>
                    %x = nn.reshape %i : (tensor<24xf32>) -> tensor<2x3x4xf32>
                    %y = nn.transpose %x [2, 0, 1] : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>)",
                 "tensor<4x2x3xf32>"),
            (Doubles{0, 4, 8, 12, 16, 20, 1, 5, 9, 13, 17, 21, 2, 6, 10, 14, 18, 22, 3, 7, 11, 15, 19, 23}));
}

TEST_F(MovementTest, PartsOfASplitLieOneBehindTheOther) {
  EXPECT_EQ(onSix("%z, %y = nn.split %x dim 1 parts [1, 2] : (tensor<2x3xi16>) -> (tensor<2x1xi16>, tensor<2x2xi16>)",
                  "tensor<2x2xi16>"),
            onSix("%y = nn.slice %x starts [0, 1] sizes [2, 2] steps [1, 1] : (tensor<2x3xi16>) -> tensor<2x2xi16>",
                  "tensor<2x2xi16>"));
  EXPECT_EQ(onSix("%y, %z = nn.split %x dim 0 parts [1, 1] : (tensor<2x3xi16>) -> (tensor<1x3xi16>, tensor<1x3xi16>)",
                  "tensor<1x3xi16>"),
            onSix("%y = nn.slice %x starts [0, 0] sizes [1, 3] steps [1, 1] : (tensor<2x3xi16>) -> tensor<1x3xi16>",
                  "tensor<1x3xi16>"));
}

TEST_F(MovementTest, SlicesStepForwardAndBackward) {
  EXPECT_EQ(onSix("%y = nn.slice %x starts [1, 2] sizes [2, 2] steps [-1, -2] : (tensor<2x3xi16>) -> tensor<2x2xi16>",
                  "tensor<2x2xi16>"),
            (Doubles{5, 3, 2, 0}));
  EXPECT_EQ(onSix("%y = nn.slice %x starts [0, 1] sizes [2, 0] steps [1, 1] : (tensor<2x3xi16>) -> tensor<2x0xi16>",
                  "tensor<2x0xi16>"),
            Doubles());
  // Of one element any step is a step.
  EXPECT_EQ(onSix("%y = nn.slice %x starts [1, 1] sizes [1, 2] steps [9223372036854775807, 1] : (tensor<2x3xi16>) -> "
                  "tensor<1x2xi16>",
                  "tensor<1x2xi16>"),
            (Doubles{4, 5}));
}

TEST_F(MovementTest, ConcatSkipsEmptyPieces) {
  EXPECT_EQ(onSix(R"(%e = nn.constant dense<> : tensor<2x0xi16> -> tensor<2x0xi16>
                     %c = nn.constant dense<[[7], [8]]> : tensor<2x1xi16> -> tensor<2x1xi16>
                     %y = nn.concat %c, %e, %x dim 1 : (tensor<2x1xi16>, tensor<2x0xi16>, tensor<2x3xi16>) -> tensor<2x4xi16>)",
                  "tensor<2x4xi16>"),
            (Doubles{7, 0, 1, 2, 8, 3, 4, 5}));
}

TEST_F(MovementTest, PadsInEveryMode) {
  auto pad = [&](std::string mode) {
    return onSix("%y = nn.pad " + mode + " low [1, 2] high [0, 2] : (tensor<2x3xi16>) -> tensor<3x7xi16>",
                 "tensor<3x7xi16>");
  };
  EXPECT_EQ(pad("constant %x"), (Doubles{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 3, 4, 5, 0, 0}));
  EXPECT_EQ(pad("edge %x"), (Doubles{0, 0, 0, 1, 2, 2, 2, 0, 0, 0, 1, 2, 2, 2, 3, 3, 3, 4, 5, 5, 5}));
  EXPECT_EQ(pad("reflect %x"), (Doubles{5, 4, 3, 4, 5, 4, 3, 2, 1, 0, 1, 2, 1, 0, 5, 4, 3, 4, 5, 4, 3}));
  EXPECT_EQ(pad("wrap %x"), (Doubles{4, 5, 3, 4, 5, 3, 4, 1, 2, 0, 1, 2, 0, 1, 4, 5, 3, 4, 5, 3, 4}));
}

TEST_F(MovementTest, PadsWithAValueAroundNothing) {
  EXPECT_EQ(eval(R"(%x = nn.constant dense<> : tensor<0xf32> -> tensor<0xf32>
                    %v = nn.constant dense<2.5> : tensor<f32> -> tensor<f32>
                    %y = nn.pad constant %x value %v low [1] high [1] : (tensor<0xf32>, tensor<f32>) -> tensor<2xf32>)",
                 "tensor<2xf32>"),
            (Doubles{2.5, 2.5}));
}

TEST_F(MovementTest, RotateBringsBackWhatLeaves) {
  EXPECT_EQ(onSix("%y = nn.rotate %x dim 1 by 2 : (tensor<2x3xi16>) -> tensor<2x3xi16>", "tensor<2x3xi16>"),
            (Doubles{2, 0, 1, 5, 3, 4}));
  EXPECT_EQ(onSix("%y = nn.rotate %x dim 0 by 0 : (tensor<2x3xi16>) -> tensor<2x3xi16>", "tensor<2x3xi16>"),
            (Doubles{0, 1, 2, 3, 4, 5}));
}

TEST_F(MovementTest, TrianglesAtAnyOffset) {
  auto trilu = [&](std::string how) {
    return onSix("%y = nn.trilu %x " + how + " : (tensor<2x3xi16>) -> tensor<2x3xi16>", "tensor<2x3xi16>");
  };
  EXPECT_EQ(trilu("offset 1 upper"), (Doubles{0, 1, 2, 0, 0, 5}));
  EXPECT_EQ(trilu("offset -1 upper"), (Doubles{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(trilu("offset 0"), (Doubles{0, 0, 0, 3, 4, 0}));
  EXPECT_EQ(trilu("offset -9223372036854775808"), (Doubles{0, 0, 0, 0, 0, 0}));
}

TEST_F(MovementTest, BroadcastAddsMajorDims) {
  EXPECT_EQ(eval(R"(%x = nn.constant dense<[[true], [false]]> : tensor<2x1xi1> -> tensor<2x1xi1>
                    %y = nn.broadcast %x : (tensor<2x1xi1>) -> tensor<2x2x2xi1>)",
                 "tensor<2x2x2xi1>"),
            (Doubles{1, 1, 0, 0, 1, 1, 0, 0}));
}

TEST_F(MovementTest, IotaOfFloats) {
  EXPECT_EQ(eval("%y = nn.iota dim 1 start 3 step -2 : tensor<2x3xbf16>", "tensor<2x3xbf16>"),
            (Doubles{3, 1, -1, 3, 1, -1}));
}

// A small module cannot make the evaluator ask for petabytes.
TEST_F(MovementTest, ResultsLargerThanMemoryAreAnError) {
  EXPECT_EQ(failBody(R"(%x = nn.constant dense<1.0> : tensor<1xf32> -> tensor<1xf32>
                        %y = nn.broadcast %x : (tensor<1xf32>) -> tensor<1000000000x1000000xf32>)",
                     "tensor<1000000000x1000000xf32>"),
            "'nn.broadcast' op cannot be evaluated: a result of 'tensor<1000000000x1000000xf32>' does not fit into "
            "memory\n");
}

} // namespace
