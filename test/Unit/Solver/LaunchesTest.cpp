//===- LaunchesTest.cpp - where sending makes two kernels of one ----------===//
//
// Expected are the kernels that exec-form-kernels makes of such chains: a product with what is done on its tiles; rows; and no two
// of these in one.
//
//===----------------------------------------------------------------------===//
#include "Launches.h"
#include "GraphBuilder.h"
#include <gtest/gtest.h>

using namespace cleave::spmd;

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
    last = graph.normalise({last}, 2);
    return *this;
  }
  Chain &transpose() {
    last = graph.transpose(last, {1, 0});
    return *this;
  }
  /// One letter an edge into an op's first operand: `x` where sending along it costs a launch.
  std::string read() {
    graph.problem.addOutput(last);
    SearchGraph searched(graph.problem);
    Launches launches(searched);
    std::string text;
    for (OpId op = 0; op < graph.problem.numOps(); ++op)
      text += launches.splitsKernel(searched.node(searched.nodeOfOp(op)).firstIn) ? 'x' : '.';
    return text;
  }
};

TEST(LaunchesTest, WhatIsSentBehindAProductIsReadByAnotherKernel) {
  EXPECT_EQ(Chain().product().map().product().read(), ".x.");
}

// Rows walk over whole tiles, so a norm has a kernel of its own in any case.
TEST(LaunchesTest, ANormIsCutOffFromAProductAnyway) { EXPECT_EQ(Chain().product().norm().read(), ".."); }

// Before the collective the sum was made with the product, behind it it is made with the norm; between these two it would be with neither.
TEST(LaunchesTest, ASumGoesToTheNormBehindIt) { EXPECT_EQ(Chain().product().map().norm().read(), "..."); }

TEST(LaunchesTest, RowsAndElementwiseOpsShareAKernel) { EXPECT_EQ(Chain().map().norm().map().read(), ".xx"); }

TEST(LaunchesTest, MovementIsSeenThrough) { EXPECT_EQ(Chain().product().transpose().map().read(), ".xx"); }

// What comes from an earlier kernel may be sent while the later one computes.
TEST(LaunchesTest, OnlyTheLastOfSeveralOperandsCounts) {
  GraphBuilder graph({2});
  ValueId x = graph.input({8, 8}), w = graph.parameter({8, 8});
  ValueId first = graph.einsum("ik,kj->ij", {x, w}), second = graph.einsum("ik,kj->ij", {x, w});
  graph.problem.addOutput(graph.add(first, second));
  SearchGraph searched(graph.problem);
  Launches launches(searched);
  EdgeId edge = searched.node(searched.nodeOfOp(2)).firstIn;
  EXPECT_FALSE(launches.splitsKernel(edge));
  EXPECT_TRUE(launches.splitsKernel(edge + 1));
}

} // namespace
