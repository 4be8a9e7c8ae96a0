//===- LaunchesTest.cpp - where sending makes two kernels of one ----------===//
//
// Expected are the kernels that exec-fuse-kernels makes of such chains: a product with what is done on its tiles; rows; and no two
// of these in one.
//
//===----------------------------------------------------------------------===//
#include "Launches.h"
#include "GraphBuilder.h"
#include <gtest/gtest.h>

using namespace cleave::spmd;
using llvm::ArrayRef;

namespace {

/// Reads small programs: a chain of ops, each on the result of the last, and then which edges between them split a kernel.
struct Chain {
  GraphBuilder graph = GraphBuilder({2});
  ValueId last = graph.input({8, 8});

  Chain &product() {
    last = graph.einsum("ik,kj->ij", {last, graph.parameter({8, 8})});
    return *this;
  }
  Chain &map() {
    last = graph.pointwise({last});
    return *this;
  }
  Chain &norm() {
    last = graph.normalize({last}, 2);
    return *this;
  }
  /// Rows along dim 0.
  Chain &scan() {
    std::vector<int64_t> shape(graph.problem.shape(last));
    RuleBuilder rule(1, 1);
    for (int64_t extent : shape) {
      std::optional<FactorId> factor = rule.addParallel(extent);
      rule.operandDim(0, factor).resultDim(0, factor);
    }
    rule.rule.orderedFactors = {0};
    rule.rule.form = Form::Row;
    rule.rule.rowDims = {0};
    last = graph.op(rule.rule, {last}, shape);
    return *this;
  }
  Chain &transpose() {
    last = graph.transpose(last, {1, 0});
    return *this;
  }
  /// The same twice, side by side along dim 0.
  Chain &concat() { return concat(last); }
  Chain &concat(ValueId other) {
    std::vector<int64_t> shape(graph.problem.shape(last));
    RuleBuilder rule(2, 1);
    std::optional<FactorId> columns = rule.addParallel(shape[1]);
    for (unsigned operand : {0, 1})
      rule.operandDim(operand, ArrayRef(rule.addFactor(shape[0]))).operandDim(operand, columns);
    rule.resultDim(0, ArrayRef(rule.addFactor(2 * shape[0]))).resultDim(0, columns);
    rule.rule.isMovement = true;
    rule.rule.form = Form::Movement;
    last = graph.op(rule.rule, {last, other}, {2 * shape[0], shape[1]});
    return *this;
  }
  /// Letters of each edge into an op's first operand, and into the output: `x` where sending along it costs a launch, `m` where what is
  /// sent has to be moved before, `j` where that is so of what is split, too; `.` where none of these is true.
  std::string read() {
    graph.problem.addOutput(last);
    SearchGraph searched(graph.problem);
    Launches launches(searched, CostModel::create(Optimize::Time));
    std::string text;
    for (OpId op = 0; op < graph.problem.numOps(); ++op)
      text += letterOf(launches, searched.node(searched.nodeOfOp(op)).firstIn);
    return text + letterOf(launches, searched.node(searched.nodeOfOutput(0)).firstIn);
  }
  static std::string letterOf(const Launches &launches, EdgeId edge) {
    std::string letters = launches.splitsKernel(edge) ? "x" : "";
    if (launches.movesFirst(edge))
      letters += launches.joinsFirst(edge) ? "j" : "m";
    return letters.empty() ? "." : letters;
  }
};

/// Of each edge into an op, whether what is sent along it costs a launch.
std::vector<bool> splitEdges(const GraphBuilder &graph, OpId op, Optimize optimize = Optimize::Time) {
  SearchGraph searched(graph.problem);
  Launches launches(searched, CostModel::create(optimize));
  NodeId node = searched.nodeOfOp(op);
  std::vector<bool> splits;
  for (size_t index = 0; index < searched.inEdges(node).size(); ++index)
    splits.push_back(launches.splitsKernel(searched.node(node).firstIn + index));
  return splits;
}

/// Of each op `k` where what it makes is never stored, and behind it `i` for each operand that is made in the kernel that reads it.
std::string keptBy(const GraphBuilder &graph, Optimize optimize = Optimize::Time) {
  SearchGraph searched(graph.problem);
  Launches launches(searched, CostModel::create(optimize));
  std::string text;
  for (OpId op = 0; op < graph.problem.numOps(); ++op) {
    NodeId node = searched.nodeOfOp(op);
    text += launches.isKept(node) ? "k" : ".";
    for (size_t index = 0; index < searched.inEdges(node).size(); ++index)
      text += launches.sharesKernel(searched.node(node).firstIn + index) ? "i" : "";
  }
  return text;
}

TEST(LaunchesTest, WhatIsSentBehindAProductIsReadByAnotherKernel) {
  EXPECT_EQ(Chain().product().map().product().read(), ".x..");
}

// Rows walk over whole tiles, so a norm has a kernel of its own in any case.
TEST(LaunchesTest, ANormIsSplitOffFromAProductAnyway) { EXPECT_EQ(Chain().product().norm().read(), "..."); }

// Before the collective the sum was made with the product, behind it it is made with the norm; between these two it would be with neither.
TEST(LaunchesTest, ASumGoesToTheNormBehindIt) { EXPECT_EQ(Chain().product().map().norm().read(), "...."); }

TEST(LaunchesTest, RowsAndElementwiseOpsShareAKernel) { EXPECT_EQ(Chain().map().norm().map().read(), ".xx."); }

TEST(LaunchesTest, MovementIsSeenThrough) { EXPECT_EQ(Chain().map().transpose().map().read(), ".xx."); }

// A product's kernel ends in the transpose: the sum is in another one in any case.
TEST(LaunchesTest, NothingFollowsATransposeOfTiles) { EXPECT_EQ(Chain().product().transpose().map().read(), "...."); }

// Rows of [8, 4] and of [4, 8] are not the same, so these are two kernels whatever is sent. The first may not end in the transpose: who
// wants that sent has it moved.
TEST(LaunchesTest, RowsOfTwoShapesAreTwoKernels) {
  Chain chain;
  chain.last = chain.graph.input({8, 4});
  EXPECT_EQ(chain.map().norm().transpose().norm().read(), ".x.m.");
}

TEST(LaunchesTest, RowsAlongTwoDimsAreTwoKernels) {
  EXPECT_EQ(Chain().map().norm().norm().read(), ".xx.");
  EXPECT_EQ(Chain().map().norm().scan().read(), ".x..");
}

// A product, and a kernel of elementwise ops, may end in a transpose; what is sent behind it is moved by these.
TEST(LaunchesTest, AKernelMayEndInATranspose) {
  EXPECT_EQ(Chain().product().transpose().read(), ".x.");
  EXPECT_EQ(Chain().map().transpose().read(), ".x.");
  EXPECT_EQ(Chain().norm().transpose().product().read(), "..m.");
}

// Behind a norm it is a kernel in any case where nobody else reads it.
TEST(LaunchesTest, WhatIsReturnedIsMovedAnyway) { EXPECT_EQ(Chain().norm().transpose().read(), "..."); }

// A product reads through the transpose, but not through one of another shape.
TEST(LaunchesTest, WhatAProductTakesInAnotherShapeIsMovedAnyway) {
  Chain chain;
  chain.norm().transpose();
  chain.last = chain.graph.mergeDims(chain.graph.splitDim(chain.last, 0, 2), 0);
  EXPECT_EQ(chain.product().read(), "......");
}

// Nobody reads a part of a concat through it.
TEST(LaunchesTest, PartsArePutTogetherBeforeTheyAreSplit) {
  EXPECT_EQ(Chain().concat().norm().read(), ".j.");
  EXPECT_EQ(Chain().norm().concat().map().read(), "..j.");
}

// An op that reads a value twice is cut off from what made it once.
TEST(LaunchesTest, AValueThatIsReadTwiceIsSplitOffOnce) {
  GraphBuilder graph({2});
  ValueId x = graph.pointwise({graph.input({8, 8})});
  graph.problem.addOutput(graph.add(x, x));
  EXPECT_EQ(splitEdges(graph, 1), (std::vector<bool>{true, false}));
}

// A sum is made on a product's tiles, of both of its operands if they are one; the next product reads from memory.
TEST(LaunchesTest, WhatAKernelMakesForItselfIsNotStored) {
  GraphBuilder graph({2});
  ValueId x = graph.einsum("ik,kj->ij", {graph.input({8, 8}), graph.parameter({8, 8})});
  ValueId sum = graph.add(x, x);
  graph.problem.addOutput(graph.einsum("ik,kj->ij", {graph.pointwise({sum}), graph.parameter({8, 8})}));
  EXPECT_EQ(keptBy(graph), "kkii.i.");
  EXPECT_EQ(keptBy(graph, Optimize::Bytes), "....");
}

// Somebody else has it stored: it is returned, or a product reads it, too.
TEST(LaunchesTest, WhatIsWantedElsewhereIsStored) {
  GraphBuilder graph({2});
  ValueId x = graph.pointwise({graph.input({8, 8})});
  graph.problem.addOutput(graph.pointwise({x}));
  EXPECT_EQ(keptBy(graph), "k.i");
  graph.problem.addOutput(x);
  EXPECT_EQ(keptBy(graph), "..i");
}

// It is seen through a transpose, if what is behind is made in the same kernel.
TEST(LaunchesTest, WhatIsMovedForOthersIsStored) {
  Chain chain;
  chain.map().transpose().map();
  EXPECT_EQ(keptBy(chain.graph), "kki.i");
  chain.graph.problem.addOutput(chain.product().last);
  EXPECT_EQ(keptBy(chain.graph), "kki.i.");
  Chain other;
  other.map().transpose();
  ValueId moved = other.last;
  other.map();
  other.last = moved;
  other.product();
  EXPECT_EQ(keptBy(other.graph), "..i.i.");
}

// One value goes two ways through a kernel.
TEST(LaunchesTest, WhatIsReadAgainLaterIsNotStored) {
  GraphBuilder graph({2});
  ValueId x = graph.pointwise({graph.input({8, 8})});
  graph.problem.addOutput(graph.add(x, graph.pointwise({x})));
  EXPECT_EQ(keptBy(graph), "kki.ii");
}

// Rows of two kinds are walked by two kernels.
TEST(LaunchesTest, WhatTwoKernelsReadIsStored) {
  Chain chain;
  ValueId x = chain.map().last;
  chain.norm().graph.problem.addOutput(chain.last);
  chain.last = x;
  chain.scan().graph.problem.addOutput(chain.last);
  EXPECT_EQ(keptBy(chain.graph).front(), '.');
}

// Of what is put together only a part was made by the kernel before.
TEST(LaunchesTest, WhatComesFromElsewhereIsRead) {
  Chain chain;
  ValueId other = chain.graph.input({8, 8});
  chain.map().concat(other).map().graph.problem.addOutput(chain.last);
  EXPECT_EQ(keptBy(chain.graph), "..i.");
}

// A value that the plan names is an output without a node of its own.
TEST(LaunchesTest, WhatIsReturnedAsAnnotatedIsStored) {
  GraphBuilder graph({2});
  ValueId x = graph.pointwise({graph.input({8, 8})});
  graph.problem.setAnnotation(x, graph.annotation({{0}, {}}));
  graph.problem.addOutput(x);
  graph.problem.addOutput(graph.pointwise({x}));
  EXPECT_EQ(keptBy(graph), "..i");
}

// What a loop takes along is read by the kernels of its body.
TEST(LaunchesTest, LoopsReadFromMemory) {
  Chain chain;
  chain.map();
  RuleBuilder rule(1, 1);
  std::optional<FactorId> rows = rule.addParallel(8), columns = rule.addParallel(8);
  rule.operandDim(0, rows).operandDim(0, columns).resultDim(0, rows).resultDim(0, columns);
  rule.rule.isMovement = rule.rule.isLoop = true;
  chain.last = chain.graph.op(rule.rule, {chain.last}, {8, 8});
  chain.map().graph.problem.addOutput(chain.last);
  EXPECT_EQ(keptBy(chain.graph), "...");
}

// Without a cost of launches nobody asks.
TEST(LaunchesTest, NothingIsSplitWhereNothingIsCounted) {
  GraphBuilder graph({2});
  graph.problem.addOutput(graph.pointwise({graph.pointwise({graph.input({8, 8})})}));
  EXPECT_EQ(splitEdges(graph, 1), std::vector<bool>{true});
  EXPECT_EQ(splitEdges(graph, 1, Optimize::Bytes), std::vector<bool>{false});
}

// What comes from an earlier kernel may be sent while the later one computes.
TEST(LaunchesTest, OnlyTheLastOfSeveralOperandsCounts) {
  GraphBuilder graph({2});
  ValueId x = graph.input({8, 8}), w = graph.parameter({8, 8});
  ValueId first = graph.einsum("ik,kj->ij", {x, w}), second = graph.einsum("ik,kj->ij", {x, w});
  graph.problem.addOutput(graph.add(first, second));
  EXPECT_EQ(splitEdges(graph, 2), (std::vector<bool>{false, true}));
}

} // namespace
