//===- IndexingTest.cpp - reads and writes at computed places -------------===//
//
// Expected values by hand, as numpy's take, take_along_axis and put_along_axis give them.
//
//===----------------------------------------------------------------------===//
#include "Harness.h"

using namespace mlir;
using namespace cleave::reference;
using Doubles = std::vector<double>;

namespace {

class IndexingTest : public EvaluatorTest {
protected:
  static constexpr const char *kTable =
      "%x = nn.constant dense<[[0, 1, 2], [3, 4, 5]]> : tensor<2x3xi32> -> tensor<2x3xi32>\n";
  Doubles onTable(StringRef ops, StringRef type) { return eval((kTable + ops).str(), type); }
  std::string failOnTable(StringRef ops, StringRef type) { return failBody((kTable + ops).str(), type); }
};

TEST_F(IndexingTest, GatherAlongAnyDim) {
  StringRef ops = R"(%i = nn.constant dense<[[2, 0], [-1, -3]]> : tensor<2x2xi64> -> tensor<2x2xi64>
      %y = nn.gather %x, %i dim 1 : (tensor<2x3xi32>, tensor<2x2xi64>) -> tensor<2x2x2xi32>)";
  EXPECT_EQ(onTable(ops, "tensor<2x2x2xi32>"), (Doubles{2, 0, 2, 0, 5, 3, 5, 3}));
  EXPECT_EQ(onTable(R"(%i = nn.constant dense<-1> : tensor<i32> -> tensor<i32>
      %y = nn.gather %x, %i dim 0 : (tensor<2x3xi32>, tensor<i32>) -> tensor<3xi32>)",
                    "tensor<3xi32>"),
            (Doubles{3, 4, 5}));
}

TEST_F(IndexingTest, IndicesOutOfRangeAreErrors) {
  EXPECT_EQ(failOnTable(R"(%i = nn.constant dense<[0, 3]> : tensor<2xi64> -> tensor<2xi64>
      %y = nn.gather %x, %i dim 1 : (tensor<2x3xi32>, tensor<2xi64>) -> tensor<2x2xi32>)",
                        "tensor<2x2xi32>"),
            "'nn.gather' op index 3 is out of range for dim 1 of size 3: element 1 of the indices\n"
            "note: the indices come from here\n");
  EXPECT_EQ(failOnTable(R"(%i = nn.constant dense<[[1, -4]]> : tensor<1x2xi64> -> tensor<1x2xi64>
      %y = nn.gather_nd %x, %i batch_dims 0 : (tensor<2x3xi32>, tensor<1x2xi64>) -> tensor<1xi32>)",
                        "tensor<1xi32>"),
            "'nn.gather_nd' op index -4 is out of range for dim 1 of size 3: element 1 of the indices\n"
            "note: the indices come from here\n");
  EXPECT_EQ(failOnTable(R"(%i = nn.constant dense<[[-9223372036854775808]]> : tensor<1x1xi64> -> tensor<1x1xi64>
      %u = nn.constant dense<1> : tensor<1x1xi32> -> tensor<1x1xi32>
      %y = nn.scatter_elements set %x, %i, %u dim 0 : (tensor<2x3xi32>, tensor<1x1xi64>, tensor<1x1xi32>) -> tensor<2x3xi32>)",
                        "tensor<2x3xi32>"),
            "'nn.scatter_elements' op index -9223372036854775808 is out of range for dim 0 of size 2: element 0 of the "
            "indices\nnote: the indices come from here\n");
}

TEST_F(IndexingTest, GatherElementsPicksOnePerIndex) {
  EXPECT_EQ(onTable(R"(%i = nn.constant dense<[[2, 2], [0, 1]]> : tensor<2x2xi64> -> tensor<2x2xi64>
      %y = nn.gather_elements %x, %i dim 1 : (tensor<2x3xi32>, tensor<2x2xi64>) -> tensor<2x2xi32>)",
                    "tensor<2x2xi32>"),
            (Doubles{2, 2, 3, 4}));
}

TEST_F(IndexingTest, GatherNdPairsBatchDims) {
  EXPECT_EQ(onTable(R"(%i = nn.constant dense<[[2], [-2]]> : tensor<2x1xi64> -> tensor<2x1xi64>
      %y = nn.gather_nd %x, %i batch_dims 1 : (tensor<2x3xi32>, tensor<2x1xi64>) -> tensor<2xi32>)",
                    "tensor<2xi32>"),
            (Doubles{2, 4}));
  EXPECT_EQ(onTable(R"(%i = nn.constant dense<[[1], [0], [1]]> : tensor<3x1xi64> -> tensor<3x1xi64>
      %y = nn.gather_nd %x, %i batch_dims 0 : (tensor<2x3xi32>, tensor<3x1xi64>) -> tensor<3x3xi32>)",
                    "tensor<3x3xi32>"),
            (Doubles{3, 4, 5, 0, 1, 2, 3, 4, 5}));
}

TEST_F(IndexingTest, ScattersOfEveryKind) {
  auto scatter = [&](std::string kind) {
    return onTable(R"(%i = nn.constant dense<[[1, 1]]> : tensor<1x2xi64> -> tensor<1x2xi64>
        %u = nn.constant dense<[[10, -10]]> : tensor<1x2xi32> -> tensor<1x2xi32>
        %y = nn.scatter_elements )" +
                       kind +
                       " %x, %i, %u dim 1 : (tensor<2x3xi32>, tensor<1x2xi64>, tensor<1x2xi32>) -> tensor<2x3xi32>",
                   "tensor<2x3xi32>");
  };
  EXPECT_EQ(scatter("set"), (Doubles{0, -10, 2, 3, 4, 5})); // the later one stays
  EXPECT_EQ(scatter("add"), (Doubles{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(scatter("mul"), (Doubles{0, -100, 2, 3, 4, 5}));
  EXPECT_EQ(scatter("max"), (Doubles{0, 10, 2, 3, 4, 5}));
  EXPECT_EQ(scatter("min"), (Doubles{0, -10, 2, 3, 4, 5}));
}

TEST_F(IndexingTest, ScatterNdWritesSlices) {
  EXPECT_EQ(onTable(R"(%i = nn.constant dense<[[1], [1]]> : tensor<2x1xi32> -> tensor<2x1xi32>
      %u = nn.constant dense<[[1, 1, 1], [2, 3, 4]]> : tensor<2x3xi32> -> tensor<2x3xi32>
      %y = nn.scatter_nd add %x, %i, %u : (tensor<2x3xi32>, tensor<2x1xi32>, tensor<2x3xi32>) -> tensor<2x3xi32>)",
                    "tensor<2x3xi32>"),
            (Doubles{0, 1, 2, 6, 8, 10}));
}

// Added one after the other in bf16, 256 + 1 + 1 would stay 256.
TEST_F(IndexingTest, ScatteredSumsRoundOnce) {
  EXPECT_EQ(eval(R"(%x = nn.constant dense<256.0> : tensor<1xbf16> -> tensor<1xbf16>
      %i = nn.constant dense<0> : tensor<2xi64> -> tensor<2xi64>
      %u = nn.constant dense<1.0> : tensor<2xbf16> -> tensor<2xbf16>
      %y = nn.scatter_elements add %x, %i, %u dim 0 : (tensor<1xbf16>, tensor<2xi64>, tensor<2xbf16>) -> tensor<1xbf16>)",
                 "tensor<1xbf16>"),
            Doubles{258});
}

TEST_F(IndexingTest, OneHotIgnoresIndicesOutside) {
  EXPECT_EQ(eval(R"(%i = nn.constant dense<[1, -1, 3, -4]> : tensor<4xi64> -> tensor<4xi64>
      %v = nn.constant dense<[5, 9]> : tensor<2xi8> -> tensor<2xi8>
      %y = nn.one_hot %i, %v depth 3 dim 0 : (tensor<4xi64>, tensor<2xi8>) -> tensor<3x4xi8>)",
                 "tensor<3x4xi8>"),
            (Doubles{5, 5, 5, 5, 9, 5, 5, 5, 5, 9, 5, 5}));
}

} // namespace
