//===- ShardingAttrTest.cpp - what a sharding answers ---------------------===//
//
// Every expected number is worked out by hand: a rank is the row-major index of its coordinates, a shard's number is
// the row-major index along the dim's axes, and its offset that number times the local extent.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace cleave::spmd;

namespace {

using Extents = SmallVector<int64_t>;

class ShardingAttrTest : public ::testing::Test {
protected:
  ShardingAttrTest() { context.loadDialect<SpmdDialect>(); }

  /// The sharding with text form `#spmd.sharding<mesh, rest>`.
  ShardingAttr parse(StringRef mesh, StringRef rest) {
    std::string text = ("#spmd.sharding<#spmd.mesh<[" + mesh + "]>, " + rest + ">").str();
    auto sharding = dyn_cast_or_null<ShardingAttr>(parseAttribute(text, &context));
    EXPECT_TRUE(sharding) << text;
    return sharding;
  }

  /// Rank = 4 * data + model.
  ShardingAttr on2x4(StringRef rest) { return parse("\"data\"=2, \"model\"=4", rest); }

  MLIRContext context;
};

TEST_F(ShardingAttrTest, EachDimIsSplitByItsAxis) {
  ShardingAttr sharding = on2x4("[{\"data\"}, {\"model\"}]");
  EXPECT_EQ(sharding.getNumShards(0), 2);
  EXPECT_EQ(sharding.getNumShards(1), 4);
  EXPECT_EQ(sharding.getLocalShape({8, 16}), Extents({4, 4}));
  // Rank 6 is data 1, model 2.
  EXPECT_EQ(sharding.getOffset({8, 16}, 6), Extents({4, 8}));
  EXPECT_EQ(sharding.getOffset({8, 16}, 3), Extents({0, 12}));
}

TEST_F(ShardingAttrTest, AxesOfADimCountMajorToMinor) {
  ShardingAttr sharding = on2x4("[{\"model\", \"data\"}]");
  EXPECT_EQ(sharding.getNumShards(0), 8);
  EXPECT_EQ(sharding.getLocalShape({16}), Extents({2}));
  // Rank 6, data 1 and model 2: piece 2 * 2 + 1 = 5.
  EXPECT_EQ(sharding.getOffset({16}, 6), Extents({10}));
  // The other way round the piece is the rank.
  EXPECT_EQ(on2x4("[{\"data\", \"model\"}]").getOffset({16}, 6), Extents({12}));
}

TEST_F(ShardingAttrTest, SubAxesAreDigitsOfTheCoordinate) {
  // model = 2 * high + low; rows by low, columns by high.
  ShardingAttr sharding = on2x4("[{\"model\":(2)2}, {\"model\":(1)2}]");
  EXPECT_EQ(sharding.getLocalShape({4, 6}), Extents({2, 3}));
  // Rank 5: model 1, high 0, low 1. Rank 6: model 2, high 1, low 0. Rank 7: both 1.
  EXPECT_EQ(sharding.getOffset({4, 6}, 5), Extents({2, 0}));
  EXPECT_EQ(sharding.getOffset({4, 6}, 6), Extents({0, 3}));
  EXPECT_EQ(sharding.getOffset({4, 6}, 7), Extents({2, 3}));
}

TEST_F(ShardingAttrTest, AMiddleDigitHasDigitsOnBothSides) {
  // z = 6 * a + 2 * b + c with b below 3: `"z":(2)3` is b.
  ShardingAttr sharding = parse("\"z\"=12", "[{\"z\":(2)3}]");
  EXPECT_EQ(sharding.getNumShards(0), 3);
  EXPECT_EQ(sharding.getLocalShape({9}), Extents({3}));
  const int64_t offsets[12] = {0, 0, 3, 3, 6, 6, 0, 0, 3, 3, 6, 6};
  for (int64_t rank = 0; rank < 12; ++rank)
    EXPECT_EQ(sharding.getOffset({9}, rank), Extents({offsets[rank]})) << "rank " << rank;
}

TEST_F(ShardingAttrTest, AllDigitsOfAnAxisAreTheAxis) {
  ShardingAttr digits = parse("\"z\"=12", "[{\"z\":(1)2, \"z\":(2)3, \"z\":(6)2}]");
  for (int64_t rank = 0; rank < 12; ++rank)
    EXPECT_EQ(digits.getOffset({24}, rank), Extents({2 * rank})) << "rank " << rank;
}

TEST_F(ShardingAttrTest, UnevenShardsAreRoundedUp) {
  ShardingAttr sharding = on2x4("[{\"model\"}], uneven");
  EXPECT_EQ(sharding.getLocalShape({10}), Extents({3}));
  // The last shard holds one element and two of padding.
  EXPECT_EQ(sharding.getOffset({10}, 3), Extents({9}));
  // Three elements on four ranks: the last one holds padding alone.
  EXPECT_EQ(sharding.getLocalShape({3}), Extents({1}));
  EXPECT_EQ(sharding.getOffset({3}, 7), Extents({3}));
}

TEST_F(ShardingAttrTest, PartialAndReplicatedAxesSplitNothing) {
  ShardingAttr sharding = on2x4("[{}, {\"data\"}], partial = {\"model\":(1)2: sum}, replicated = {\"model\":(2)2}");
  EXPECT_EQ(sharding.getLocalShape({3, 6}), Extents({3, 3}));
  EXPECT_EQ(sharding.getOffset({3, 6}, 7), Extents({0, 3}));
  EXPECT_TRUE(sharding.isPartial());
}

TEST_F(ShardingAttrTest, ScalarsHaveOneShard) {
  ShardingAttr sharding = on2x4("[]");
  EXPECT_EQ(sharding.getLocalShape({}), Extents());
  EXPECT_EQ(sharding.getOffset({}, 5), Extents());
  EXPECT_TRUE(sharding.isReplicated());
}

TEST_F(ShardingAttrTest, ReplicatedMeansAllOnEveryRank) {
  MeshAttr mesh = on2x4("[]").getMesh();
  ShardingAttr whole = ShardingAttr::getReplicated(mesh, 2);
  EXPECT_EQ(whole, on2x4("[{}, {}]"));
  EXPECT_TRUE(whole.isReplicated());
  EXPECT_TRUE(on2x4("[{?}, {}]").isReplicated());
  EXPECT_FALSE(on2x4("[{}, {\"data\"}]").isReplicated());
  EXPECT_FALSE(on2x4("[{}, {}], partial = {\"data\": max}").isReplicated());
}

TEST_F(ShardingAttrTest, OpenDimsAreFound) {
  EXPECT_TRUE(on2x4("[{}, {\"data\", ?}]").hasOpenDim());
  EXPECT_FALSE(on2x4("[{}, {\"data\"}p1]").hasOpenDim());
}

TEST_F(ShardingAttrTest, AMeshKnowsItsAxes) {
  MeshAttr mesh = on2x4("[]").getMesh();
  EXPECT_EQ(mesh.getNumRanks(), 8);
  EXPECT_EQ(mesh.findAxis("model"), std::optional<unsigned>(1));
  EXPECT_EQ(mesh.findAxis("mode"), std::nullopt);
  EXPECT_EQ(AxisAttr::get(&context, "model").getExtent(mesh), 4);
  EXPECT_EQ(AxisAttr::get(&context, "model", 1, 2).getExtent(mesh), 2);
}

TEST_F(ShardingAttrTest, AMeshOwnsItsNames) {
  std::string name = "temporary";
  auto mesh = MeshAttr::get(&context, {StringRef(name)}, {2}, {});
  name.assign("overwritten");
  EXPECT_EQ(mesh.getNames().front(), "temporary");
}

TEST_F(ShardingAttrTest, TypesCarryShardings) {
  ShardingAttr rows = on2x4("[{\"model\"}, {}]");
  auto plain = RankedTensorType::get({8, 3}, Float32Type::get(&context));
  auto sharded = withSharding(plain, rows);
  EXPECT_EQ(getSharding(sharded), rows);
  EXPECT_FALSE(getSharding(plain));
  EXPECT_EQ(getLocalType(sharded), RankedTensorType::get({2, 3}, Float32Type::get(&context)));
  EXPECT_EQ(getLocalType(plain), plain);
  EXPECT_EQ(withSharding(sharded, {}), plain);
}

} // namespace
