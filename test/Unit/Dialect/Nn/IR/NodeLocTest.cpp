//===- NodeLocTest.cpp - names of ONNX nodes and tensors ------------------===//
#include "cleave/Dialect/Nn/IR/NodeLoc.h"

#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"
#include "cleave/Dialect/Nn/IR/Ops/Reduction.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace cleave::nn;

namespace {

using Names = SmallVector<StringRef, 1>;

class NodeLocTest : public ::testing::Test {
protected:
  NodeLocTest() { context.loadDialect<NnDialect, func::FuncDialect>(); }

  std::string print(Location loc) {
    std::string text;
    llvm::raw_string_ostream(text) << loc;
    return text;
  }

  MLIRContext context;
};

TEST_F(NodeLocTest, ALocationGivesBackWhatItWasMadeOf) {
  Location loc = makeNodeLoc(&context, {"/enc/MatMul", "MatMul", {"x", "w"}, {{"y", "alias"}, {}}});
  SmallVector<NodeInfo, 1> infos = getNodeInfos(loc);
  ASSERT_EQ(infos.size(), 1u);
  EXPECT_EQ(infos[0].node, "/enc/MatMul");
  EXPECT_EQ(infos[0].opType, "MatMul");
  EXPECT_EQ(infos[0].operands, ArrayRef<StringRef>({"x", "w"}));
  ASSERT_EQ(infos[0].results.size(), 2u);
  EXPECT_EQ(infos[0].results[0], ArrayRef<StringRef>({"y", "alias"}));
  EXPECT_TRUE(infos[0].results[1].empty());
}

// The text is part of the file format: files of earlier versions must stay readable.
TEST_F(NodeLocTest, TheTextFormIsFixed) {
  Location loc = makeNodeLoc(&context, {"n", "Add", {"a", "b"}, {{"c"}}});
  EXPECT_EQ(print(loc), "#nn.node<\"n\", \"Add\", [\"a\", \"b\"], [[\"c\"]]>");
}

TEST_F(NodeLocTest, HelperOpsNameTheNodeOnly) {
  Location loc = makeNodeLoc(&context, {"n", "Gelu", {}, {}});
  EXPECT_EQ(print(loc), "#nn.node<\"n\", \"Gelu\">");
  EXPECT_TRUE(getNodeInfos(loc).front().results.empty());
}

TEST_F(NodeLocTest, AFusedOpNamesAllItsNodes) {
  Location first = makeNodeLoc(&context, {"first", "Mul", {}, {}}),
           second = makeNodeLoc(&context, {"second", "Add", {}, {}});
  SmallVector<NodeInfo, 1> infos = getNodeInfos(FusedLoc::get(&context, {first, second}));
  ASSERT_EQ(infos.size(), 2u);
  EXPECT_EQ(infos[0].node, "first");
  EXPECT_EQ(infos[1].node, "second");
}

TEST_F(NodeLocTest, OtherLocationsNameNothing) {
  EXPECT_TRUE(getNodeInfos(UnknownLoc::get(&context)).empty());
  EXPECT_TRUE(getNodeInfos(FileLineColLoc::get(&context, "f.mlir", 1, 2)).empty());
  EXPECT_TRUE(getNodeInfos(NameLoc::get(StringAttr::get(&context, "n"))).empty());
  // Metadata of somebody else.
  Location other = FusedLoc::get(&context, {UnknownLoc::get(&context)}, StringAttr::get(&context, "n"));
  EXPECT_TRUE(getNodeInfos(other).empty());
}

// Values of every kind: an argument, a load, both results of one op, a value without a name.
const char *const kModule = R"mlir(
  nn.param @w : tensor<4xf32> = dense<1.0> : tensor<4xf32>
  func.func @main(%x: tensor<4xf32> {nn.name = "input"}, %unnamed: tensor<4xf32>) {
    %w = nn.load @w : tensor<4xf32>
    %v, %i = nn.top_k %x k 2 dim 0 : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xi64>)
      loc(#nn.node<"/top", "TopK", [], [["values"], ["indices", "again"]]>)
    %n = nn.neg %x : (tensor<4xf32>) -> tensor<4xf32> loc(#nn.node<"", "Neg", [], [["only"]]>)
    %a = nn.abs %x : (tensor<4xf32>) -> tensor<4xf32>
    return
  }
)mlir";

class NodeLocModuleTest : public NodeLocTest {
protected:
  NodeLocModuleTest() : module(parseSourceString<ModuleOp>(kModule, ParserConfig(&context))) {}

  func::FuncOp getMain() { return *module->getOps<func::FuncOp>().begin(); }
  template <typename Op> Op getOp() { return *getMain().getOps<Op>().begin(); }

  OwningOpRef<ModuleOp> module;
};

TEST_F(NodeLocModuleTest, ValuesHaveTensorNames) {
  ASSERT_TRUE(module);
  EXPECT_EQ(getTensorNames(getMain().getArgument(0)), Names{"input"});
  EXPECT_EQ(getTensorNames(getMain().getArgument(1)), Names{"arg1"});
  EXPECT_EQ(getTensorNames(getOp<LoadOp>().getResult()), Names{"w"});
  EXPECT_EQ(getTensorNames(getOp<TopKOp>().getValues()), Names{"values"});
  EXPECT_EQ(getTensorNames(getOp<TopKOp>().getIndices()), (Names{"indices", "again"}));
  EXPECT_TRUE(getTensorNames(getOp<AbsOp>().getResult()).empty());
}

TEST_F(NodeLocModuleTest, NodesAreDescribedByNameOrTensor) {
  ASSERT_TRUE(module);
  EXPECT_EQ(describeNode(getOp<TopKOp>()), "/top");
  EXPECT_EQ(describeNode(getOp<NegOp>()), "only");
  EXPECT_EQ(describeNode(getOp<AbsOp>()), "");
}

TEST_F(NodeLocTest, AnArgumentOfNoFunctionHasNoName) {
  Block block;
  EXPECT_TRUE(getTensorNames(block.addArgument(IntegerType::get(&context, 1), UnknownLoc::get(&context))).empty());
}

} // namespace
