//===- PlanRulesTest.cpp - few rules for many tensors ---------------------===//
#include "cleave/Search/PlanRules.h"
#include "cleave/Search/MeshCells.h"
#include "llvm/ADT/StringSet.h"
#include <gtest/gtest.h>

using namespace cleave::spmd;

namespace {

TensorDims shard(std::string name, std::initializer_list<const char *> axes) {
  TensorDims tensor{std::move(name), {}};
  for (const char *axis : axes) {
    PlanDim &dim = tensor.dims.emplace_back();
    if (*axis)
      dim.axes.push_back({axis, 1, 0, {}});
  }
  return tensor;
}

std::vector<std::string> rulesOf(std::vector<TensorDims> tensors, std::vector<std::string> others = {}) {
  ModelNames names;
  names.tensors.assign(others.begin(), others.end());
  for (const TensorDims &tensor : tensors)
    names.tensors.push_back(tensor.name);
  std::vector<std::string> texts;
  for (const PlanRule &rule : makePlanRules(tensors, names))
    texts.push_back(rule.pattern + " " + rule.formatDims());
  return texts;
}

using Texts = std::vector<std::string>;

TEST(PlanRulesTest, EqualLayersAreOneRule) {
  EXPECT_EQ(rulesOf({shard("h.0.up", {"", "model"}), shard("h.0.down", {"model", ""}), shard("h.1.up", {"", "model"}),
                     shard("h.1.down", {"model", ""})}),
            (Texts{"h.*.up [_, model]", "h.*.down [model, _]"}));
}

TEST(PlanRulesTest, OneTensorKeepsItsName) {
  EXPECT_EQ(rulesOf({shard("wte.weight", {"model", ""})}), Texts{"wte.weight [model, _]"});
}

// A star would pick the layer that is cut otherwise, or not at all.
TEST(PlanRulesTest, OtherTensorsAreNotPicked) {
  EXPECT_EQ(rulesOf({shard("h.0.up", {"model"}), shard("h.2.up", {"model"})}, {"h.1.up"}), Texts{"h.{0,2}.up [model]"});
  EXPECT_EQ(rulesOf({shard("h.0.up", {"model"}), shard("h.2.up", {"model"}), shard("h.1.up", {"data"})}),
            (Texts{"h.{0,2}.up [model]", "h.1.up [data]"}));
}

// Numbers that differ in two places, and a star that would pick too much: each for itself.
TEST(PlanRulesTest, NamesOneByOne) {
  EXPECT_EQ(rulesOf({shard("a.0.b.1", {"model"}), shard("a.1.b.0", {"model"})}, {"a.0.b.0"}),
            (Texts{"a.0.b.1 [model]", "a.1.b.0 [model]"}));
}

// Letters that patterns read as more than themselves.
TEST(PlanRulesTest, NamesWithWordsOfPatterns) {
  EXPECT_EQ(rulesOf({shard("h[0]", {"model"}), shard("h[1]", {"model"})}), (Texts{"h[0] [model]", "h[1] [model]"}));
}

// A weight goes by the module that has it alone; a star picks no layer that is cut otherwise, and passes over what has no such weight.
TEST(PlanRulesTest, WeightsGoByTheirModules) {
  ModelNames names;
  for (llvm::StringRef layer : {"0", "1", "2"})
    for (llvm::StringRef kind : {"up", "down"}) {
      static llvm::StringSet<> kept;
      auto keep = [&](const llvm::Twine &text) { return kept.insert(text.str()).first->first(); };
      llvm::StringRef weight = keep("val_" + layer + kind), module = keep("layers." + layer + "." + kind);
      names.weights.add(weight, 2, {module});
      names.tensors.push_back(weight);
      if (kind == "up")
        names.weights.add(keep("bias_" + layer), 1, {module});
    }
  auto format = [&](std::vector<TensorDims> tensors) {
    Texts texts;
    for (const PlanRule &rule : makePlanRules(tensors, names))
      texts.push_back(rule.formatTarget() + " " + rule.formatDims());
    return texts;
  };
  EXPECT_EQ(format({shard("val_0up", {"", "m"}), shard("val_1up", {"", "m"}), shard("val_2up", {"", "m"}),
                    shard("x", {"m"})}),
            (Texts{"module:layers.*.up [_, m]", "x [m]"}));
  EXPECT_EQ(format({shard("val_0up", {"", "m"}), shard("val_2up", {"", "m"})}), Texts{"module:layers.{0,2}.up [_, m]"});
  EXPECT_EQ(format({shard("bias_0", {"m"}), shard("bias_1", {"m"}), shard("bias_2", {"m"})}),
            Texts{"module:layers.*.up [m]"});
  EXPECT_EQ(format({shard("val_0up", {"", "m"}), shard("val_1up", {"", "m"}), shard("val_2up", {"", "m"}),
                    shard("val_0down", {"", "m"}), shard("val_1down", {"", "m"}), shard("val_2down", {"", "m"}),
                    shard("bias_0", {"m"})}),
            (Texts{"module:layers.*.{up,down} [_, m]", "module:layers.0.up [m]"}));
  names.weights.add("other", 2, {"layers.1.up"});
  EXPECT_EQ(format({shard("val_1up", {"", "m"})}), Texts{"val_1up [_, m]"}) << "the module reads two";
}

//===----------------------------------------------------------------------===//
// Meshes
//===----------------------------------------------------------------------===//

Cluster nodesOf(std::vector<int64_t> sizes) {
  Cluster cluster;
  cluster.name = "nodes";
  cluster.levels.clear();
  for (int64_t size : sizes)
    cluster.levels.push_back({"link", size, {}});
  return cluster;
}

std::vector<std::vector<int64_t>> cellsOf(const Cluster &cluster, int64_t devices, bool isQuick = false) {
  std::vector<std::vector<int64_t>> sizes;
  for (const MeshCell &cell : llvm::cantFail(listMeshCells(cluster, devices, isQuick ? 1 : 3)))
    sizes.push_back(cell.sizes);
  return sizes;
}

using Sizes = std::vector<std::vector<int64_t>>;

TEST(MeshCellsTest, AllFactorizationsOfOneLevel) {
  EXPECT_EQ(cellsOf(nodesOf({0}), 8), (Sizes{{8}, {4, 2}, {2, 4}, {2, 2, 2}}));
  EXPECT_EQ(cellsOf(nodesOf({0}), 7), Sizes{{7}});
  EXPECT_EQ(cellsOf(nodesOf({0}), 1), Sizes{{1}});
}

// 64 on nodes of 8: three axes at most, and none over the end of a node: 16 (docs/finding-plans.md).
TEST(MeshCellsTest, AxesEndWithNodes) {
  Sizes cells = cellsOf(nodesOf({8, 8}), 64);
  EXPECT_EQ(cells.front(), (std::vector<int64_t>{8, 8}));
  EXPECT_EQ(cells.size(), 5u);
  EXPECT_EQ(cellsOf(nodesOf({8, 8}), 64, /*isQuick=*/true), (Sizes{{8, 8}}));
  EXPECT_EQ(cellsOf(nodesOf({8, 2}), 4, /*isQuick=*/true), Sizes{{4}}) << "a part of one node";
}

TEST(MeshCellsTest, DevicesThatDoNotFillNodes) {
  auto complain = [](const Cluster &cluster, int64_t devices) {
    return llvm::toString(listMeshCells(cluster, devices, /*mostAxes=*/3).takeError());
  };
  EXPECT_EQ(complain(nodesOf({8, 2}), 12), "12 devices do not fill nodes of 8 of 'nodes': 8 or 16 would");
  EXPECT_EQ(complain(nodesOf({8}), 16), "'nodes' has 8 devices, 16 are asked for");
  EXPECT_EQ(complain(nodesOf({3}), 8), "'nodes' has 3 devices, 8 are asked for") << "6 or 9 would not";
}

} // namespace
