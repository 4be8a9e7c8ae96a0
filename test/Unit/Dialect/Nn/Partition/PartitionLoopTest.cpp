//===- PartitionLoopTest.cpp - loops, in every sharding of their values ---===//
//
// As PartitionTest.cpp. A body looks at all of what it carries, so that a rank that has a wrong part gives a wrong result.
//
//===----------------------------------------------------------------------===//
#include "EveryChoice.h"

#include "llvm/ADT/Twine.h"
#include "gtest/gtest.h"

using namespace cleave;

// Two values of one shape change places; 5 rows divide over no mesh.
TEST(PartitionLoop, CountedIterations) {
  for (const char *rows : {"4", "5"}) {
    std::string x = std::string("tensor<") + rows + "x6xf32>", w = "tensor<6x6xf32>";
    check("%x: " + x + ", %y: " + x + ", %w: " + w,
          "%0:2 = nn.loop count 3 carries (%x, %y) captures (%w) : (" + x + ", " + x + ", " + w + ") -> (" + x + ", " +
              x + ") {\n^bb0(%a: " + x + ", %b: " + x + ", %v: " + w + "):\n%c = nn.einsum %a, %v \"bi,ij->bj\" : (" +
              x + ", " + w + ") -> " + x + "\n%d = nn.tanh %c : (" + x + ") -> " + x + "\nnn.yield next (%b, %d) : (" +
              x + ", " + x + ") -> ()\n}");
  }
}

// Data say how often: while the number is below a limit that they give, of -3 to 2, where a flag holds.
TEST(PartitionLoop, IterationsOfData) {
  check(
      "%go: tensor<i1>, %n: tensor<i64>, %x: tensor<4x6xf32>, %most: tensor<i64>",
      R"(%0:2 = nn.loop count 5 while %go carries (%n, %x) captures (%most) : (tensor<i1>, tensor<i64>, tensor<4x6xf32>, tensor<i64>) -> (tensor<i64>, tensor<4x6xf32>) {
^bb0(%i: tensor<i64>, %a: tensor<4x6xf32>, %limit: tensor<i64>):
  %b = nn.softmax %a dim 1 : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %one = nn.constant dense<1> : tensor<i64> -> tensor<i64>
  %j = nn.add %i, %one : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %more = nn.lt %j, %limit : (tensor<i64>, tensor<i64>) -> tensor<i1>
  nn.yield while %more next (%j, %b) : (tensor<i1>, tensor<i64>, tensor<4x6xf32>) -> ()
})");
}

// Each iteration reads its row, and writes its own; from the last one on or from the first.
TEST(PartitionLoop, RowsOfIterations) {
  check(
      "%n: tensor<i64> {test.bound = 1}, %x: tensor<4x6xf32>, %all: tensor<4x6xf32>",
      R"(%0:2 = nn.loop count 3 carries (%n, %all) captures (%x) : (tensor<i64>, tensor<4x6xf32>, tensor<4x6xf32>) -> (tensor<i64>, tensor<4x6xf32>) {
^bb0(%i: tensor<i64>, %a: tensor<4x6xf32>, %in: tensor<4x6xf32>):
  %row = nn.gather %in, %i dim 0 : (tensor<4x6xf32>, tensor<i64>) -> tensor<6xf32>
  %place = nn.reshape %i : (tensor<i64>) -> tensor<1x1xi64>
  %new = nn.reshape %row : (tensor<6xf32>) -> tensor<1x6xf32>
  %b = nn.scatter_nd set %a, %place, %new : (tensor<4x6xf32>, tensor<1x1xi64>, tensor<1x6xf32>) -> tensor<4x6xf32>
  %one = nn.constant dense<1> : tensor<i64> -> tensor<i64>
  %j = nn.add %i, %one : (tensor<i64>, tensor<i64>) -> tensor<i64>
  nn.yield next (%j, %b) : (tensor<i64>, tensor<4x6xf32>) -> ()
})");
}
