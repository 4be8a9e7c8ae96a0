//===- ClusterAttrTest.cpp - machines in a module, and back ---------------===//
//
// A machine that was written and read must be the one that it was, also through text: passes predict and fuse by it.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Spmd/IR/ClusterAttr.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace cleave::spmd;

namespace {

auto asTuple(const ClusterLink &link) { return std::tuple(link.latencyNs, link.bytesPerNs); }

void expectEqual(const Cluster &a, const Cluster &b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.beginNs, b.beginNs);
  EXPECT_EQ(a.device.flopsPerNs, b.device.flopsPerNs);
  EXPECT_EQ(a.device.memoryBytes, b.device.memoryBytes);
  EXPECT_EQ(a.device.memoryBytesPerNs, b.device.memoryBytesPerNs);
  EXPECT_EQ(a.device.launchNs, b.device.launchNs);
  EXPECT_EQ(a.device.cacheBytes, b.device.cacheBytes);
  EXPECT_EQ(a.device.cacheBytesPerNs, b.device.cacheBytesPerNs);
  EXPECT_EQ(a.device.hostBytesPerNs, b.device.hostBytesPerNs);
  ASSERT_EQ(a.levels.size(), b.levels.size());
  for (auto [one, other] : llvm::zip_equal(a.levels, b.levels))
    EXPECT_EQ(std::tuple(one.name, one.devices, asTuple(one.link)),
              std::tuple(other.name, other.devices, asTuple(other.link)));
  ASSERT_EQ(a.axes.size(), b.axes.size());
  for (const auto &[axis, link] : a.axes)
    EXPECT_EQ(asTuple(link), asTuple(b.axes.at(axis)));
}

class ClusterAttrTest : public ::testing::Test {
protected:
  ClusterAttrTest() { context.loadDialect<SpmdDialect>(); }

  OwningOpRef<ModuleOp> parse(StringRef text) { return parseSourceString<ModuleOp>(text, &context); }

  std::string print(const Cluster &cluster) {
    OwningOpRef<ModuleOp> module = parse("module {}");
    writeCluster(*module, cluster);
    std::string text;
    llvm::raw_string_ostream os(text);
    (*module)->getAttr(SpmdDialect::kClusterAttr).print(os);
    return text;
  }

  /// What reading a module with this attribute says; empty if that can be read.
  std::string getError(StringRef cluster) {
    OwningOpRef<ModuleOp> module = parse(("module attributes {spmd.cluster = " + cluster + "} {}").str());
    std::string error;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) { error += diagnostic.str(); });
    EXPECT_TRUE(module) << cluster.str();
    EXPECT_EQ(failed(readCluster(*module)), !error.empty());
    return error;
  }

  MLIRContext context;
};

/// Every field is another than that of the default, and some have no short decimal.
Cluster makeOther() {
  Cluster cluster;
  cluster.name = "two \"nodes\"";
  cluster.beginNs = 6600.1;
  cluster.device = {{{"f32", 1.0 / 3}, {"bf16", 7e5}}, 80000000000, 3350.7, 0, 50000000, 5500.3, 51.3};
  cluster.levels = {{"near", 8, {1000.7, 400.3}}, {"far", 0, {0, 1e-3}}};
  cluster.axes = {{"data", {3000, 25}}};
  return cluster;
}

TEST_F(ClusterAttrTest, ComesBackAsItWas) {
  for (const Cluster &cluster : {Cluster(), makeOther()}) {
    OwningOpRef<ModuleOp> module = parse("module attributes {spmd.cluster = " + print(cluster) + "} {}");
    ASSERT_TRUE(module);
    FailureOr<std::optional<Cluster>> read = readCluster(*module);
    ASSERT_TRUE(succeeded(read) && *read);
    expectEqual(**read, cluster);
  }
}

TEST_F(ClusterAttrTest, IsNothingWithoutTheAttribute) {
  OwningOpRef<ModuleOp> module = parse("module {}");
  FailureOr<std::optional<Cluster>> read = readCluster(*module);
  ASSERT_TRUE(succeeded(read));
  EXPECT_FALSE(read->has_value());
}

// Each entry, replaced by something that it is not, and left out.
TEST_F(ClusterAttrTest, MistakesAreNamed) {
  EXPECT_EQ(getError("1"), "'spmd.cluster' is not a dictionary");
  std::string right = print(makeOther());
  EXPECT_EQ(getError(right), "");
  auto expectNamed = [&](StringRef name, const std::string &text) {
    EXPECT_EQ(getError(text).find("'spmd.cluster' has an entry '" + name.str() + "' that is missing, unknown"), 0u)
        << text;
  };
  auto replace = [&](StringRef old, StringRef with) {
    std::string text = right;
    size_t at = text.find(old.str());
    EXPECT_NE(at, std::string::npos) << old.str() << " in " << text;
    return at == std::string::npos ? text : text.replace(at, old.size(), with.str());
  };
  expectNamed("begin_ns", replace("begin_ns = ", "begin_ns = -"));
  expectNamed("launch_ns", replace("launch_ns = 0.000000e+00 : f64", "launch_ns = 0 : i64"));
  expectNamed("memory_bytes", replace("memory_bytes = 80000000000", "memory_bytes = -1"));
  expectNamed("memory_bytes_per_ns", replace("memory_bytes_per_ns = 3.350700e+03", "memory_bytes_per_ns = 0.0"));
  expectNamed("host_bytes_per_ns", replace("host_bytes_per_ns = 5.130000e+01", "host_bytes_per_ns = 0.0"));
  expectNamed("flops_per_ns", replace("f32 = ", "f31 = "));
  expectNamed("levels", replace("devices = 8", "devices = 0"));
  expectNamed("levels", replace("4.003000e+02", "0.0"));
  expectNamed("axes", replace("array<f64: 3.000000e+03, 2.500000e+01>", "array<f64: 3.0>"));
  expectNamed("speed", replace("begin_ns", "speed = 1 : i64, begin_ns"));
  expectNamed("name", replace("name = \"two", "named = \"two"));
}

} // namespace
