//===- CostsTest.cpp - cost models in a module, and back ------------------===//
//
// A cost model that was written and read must be the one that it was, field by field, also through text: else reshards
// of a stored file are planned by other costs than its shardings were decided by.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Spmd/IR/Costs.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "cleave/Sharding/Cluster.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace cleave::spmd;

namespace {

auto asTuple(const NearLink &near) { return std::tuple(near.block, near.link.perByte, near.link.latency); }

void expectEqual(const CostModel &a, const CostModel &b) {
  EXPECT_EQ(a.links, b.links);
  EXPECT_TRUE(a.anyLink == b.anyLink);
  ASSERT_EQ(a.nearLinks.size(), b.nearLinks.size());
  for (auto [one, other] : llvm::zip_equal(a.nearLinks, b.nearLinks)) {
    ASSERT_EQ(one.size(), other.size());
    for (auto [near, far] : llvm::zip_equal(one, other))
      EXPECT_EQ(asTuple(near), asTuple(far));
  }
  auto rest = [](const CostModel &m) {
    return std::tuple(m.perCollective, m.perNs, m.perMemoryByte, m.perCacheByte, m.cacheBytes, m.perLaunch,
                      m.flopShares, m.perFlop, m.perRepeatedFlop, m.repetitionSlack, m.perExtraWrite, m.perMovedByte,
                      m.perReshard, m.perMadePartial, m.perKeptPartial, m.fallbackSurcharge, m.tornSurcharge,
                      m.parameterSurcharge);
  };
  EXPECT_EQ(rest(a), rest(b));
}

class CostsTest : public ::testing::Test {
protected:
  CostsTest() { context.loadDialect<SpmdDialect>(); }

  OwningOpRef<ModuleOp> parse(StringRef text) { return parseSourceString<ModuleOp>(text, &context); }

  /// The model, written into a module that is printed, parsed and read.
  CostModel takeThere(const CostModel &costs) {
    OwningOpRef<ModuleOp> module = parse("module {}");
    writeCosts(*module, costs);
    std::string text;
    llvm::raw_string_ostream os(text);
    module->print(os);
    OwningOpRef<ModuleOp> again = parse(text);
    EXPECT_TRUE(again) << text;
    FailureOr<CostModel> read = readCosts(*again);
    EXPECT_TRUE(succeeded(read)) << text;
    return read.value_or(CostModel());
  }

  /// What reading a module with this attribute says.
  std::string getError(StringRef costs) {
    OwningOpRef<ModuleOp> module = parse(("module attributes {spmd.costs = " + costs + "} {}").str());
    std::string error;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) { error += diagnostic.str(); });
    EXPECT_TRUE(module && failed(readCosts(*module))) << costs.str();
    return error;
  }

  MLIRContext context;
};

TEST_F(CostsTest, ModelsComeBackAsTheyWere) {
  for (Optimize optimize : {Optimize::Balanced, Optimize::Bytes, Optimize::Time})
    expectEqual(takeThere(CostModel::create(optimize)), CostModel::create(optimize));
}

// Numbers without a short decimal, axes of two kinds of links, and one within a node.
TEST_F(CostsTest, ClustersComeBackAsTheyWere) {
  Cluster cluster;
  cluster.beginNs = 6600.1;
  cluster.levels = {{"near", 3, {1000.7, 400.3}}, {"far", 5, {2700.9, 50.7}}};
  ClusterMesh mesh{{"a", "b"}, {15, 1}, {}};
  for (Optimize optimize : {Optimize::Balanced, Optimize::Bytes, Optimize::Time}) {
    CostModel costs = makeCostModel(cluster, mesh, mesh.names, optimize);
    expectEqual(takeThere(costs), costs);
  }
  EXPECT_FALSE(makeCostModel(cluster, mesh, mesh.names, Optimize::Time).nearLinks.empty());
}

// Each field by itself, so that one which is not written, or is read into another, is seen.
TEST_F(CostsTest, EveryFieldIsKept) {
  auto with = [&](auto change) {
    CostModel costs;
    change(costs);
    expectEqual(takeThere(costs), costs);
  };
  with([](CostModel &m) { m.links = {{7, 0}, {1024, 3}}; });
  with([](CostModel &m) { m.anyLink = {5, 6}; });
  with([](CostModel &m) { m.nearLinks = {{}, {{2, {3, 4}}}}; });
  with([](CostModel &m) { m.perCollective = 11; });
  with([](CostModel &m) { m.perNs = 0.1; });
  with([](CostModel &m) { m.perMemoryByte = 1e-300; });
  with([](CostModel &m) { m.perCacheByte = 0.3; });
  with([](CostModel &m) { m.cacheBytes = 41; });
  with([](CostModel &m) { m.perLaunch = 13; });
  with([](CostModel &m) { m.flopShares = {0.5, 1.0 / 3, 1, 2}; });
  with([](CostModel &m) { m.perFlop = 0.7; });
  with([](CostModel &m) { m.perRepeatedFlop = 0; });
  with([](CostModel &m) { m.repetitionSlack = 1.5; });
  with([](CostModel &m) { m.perExtraWrite = 0.9; });
  with([](CostModel &m) { m.perMovedByte = 1e9; });
  with([](CostModel &m) { m.perReshard = 17; });
  with([](CostModel &m) { m.perMadePartial = 19; });
  with([](CostModel &m) { m.perKeptPartial = -23; });
  with([](CostModel &m) { m.fallbackSurcharge = 29; });
  with([](CostModel &m) { m.tornSurcharge = 31; });
  with([](CostModel &m) { m.parameterSurcharge = 37; });
}

TEST_F(CostsTest, TheDefaultModelIsNotWritten) {
  OwningOpRef<ModuleOp> module = parse("module attributes {spmd.costs = {per_launch = 1}} {}");
  writeCosts(*module, CostModel());
  EXPECT_FALSE((*module)->hasAttr(SpmdDialect::kCostsAttr));
}

TEST_F(CostsTest, MistakesAreNamed) {
  EXPECT_EQ(getError("1"), "'spmd.costs' is not a dictionary");
  EXPECT_EQ(getError("{per_lunch = 1}"), "'spmd.costs' has an entry that is not a field of the cost model");
  for (StringRef entry : {"per_launch = 1 : i32", "per_launch = 1.0", "per_launch = 9223372036854775807", "per_ns = 1",
                          "per_ns = -1.0", "per_ns = 0x7FF0000000000000 : f64", "flop_shares = array<f64: 1.0>",
                          "links = array<i64: 1, 2>", "links = [array<i64: 1>]", "any_link = array<i64: -1, 0>",
                          "near_links = [[array<i64: 0, 1, 1>]]", "torn_surcharge = 4294967296"})
    EXPECT_EQ(getError(("{" + entry + "}").str())
                  .find("'spmd.costs' has an entry '" + entry.split(' ').first.str() +
                        "' of the wrong type, or out of range: "),
              0u)
        << entry.str();
}

} // namespace
