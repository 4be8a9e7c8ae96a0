//===- PartitionRecurrenceTest.cpp - recurrent nets, in every way ---------===//
//
// As PartitionTest.cpp: over 2, 2 x 2 and 2 x 3 ranks, and unevenly, so that a rank has 3 of 5 hidden units.
//
//===----------------------------------------------------------------------===//
#include "EveryChoice.h"

#include "llvm/ADT/Twine.h"
#include "gtest/gtest.h"

using namespace cleave;

TEST(PartitionRecurrence, Lstm) {
  for (const char *hidden : {"6", "5"}) {
    std::string h = hidden;
    std::string p = "tensor<3x2x4x4x" + h + "xf32>", w = "tensor<2x4x" + h + "x" + h + "xf32>",
                s = "tensor<2x4x" + h + "xf32>";
    std::string q = "tensor<2x3x" + h + "xf32>", y = "tensor<3x2x4x" + h + "xf32>";
    check(
        "%p: " + p + ", %w: " + w + ", %h: " + s + ", %c: " + s + ", %q: " + q,
        "%0:3 = nn.recurrence lstm %p, %w initial (%h, %c) peepholes %q activations [\"sigmoid\", \"tanh\", \"tanh\"] "
        "alphas [0.0, 0.0, 0.0] betas [0.0, 0.0, 0.0] {clip = 2.0} : (" +
            p + ", " + w + ", " + s + ", " + s + ", " + q + ") -> (" + y + ", " + s + ", " + s + ")");
  }
}

TEST(PartitionRecurrence, Gru) {
  check(
      "%p: tensor<3x1x4x3x6xf32>, %w: tensor<1x3x6x6xf32>, %h: tensor<1x4x6xf32>",
      "%0:2 = nn.recurrence gru %p, %w initial (%h) activations [\"sigmoid\", \"tanh\"] alphas [0.0, 0.0] betas [0.0, "
      "0.0] : (tensor<3x1x4x3x6xf32>, tensor<1x3x6x6xf32>, tensor<1x4x6xf32>) -> (tensor<3x1x4x6xf32>, "
      "tensor<1x4x6xf32>)");
  check("%p: tensor<3x1x4x3x6xf64>, %w: tensor<1x3x6x6xf64>, %h: tensor<1x4x6xf64>, %b: tensor<1x6xf64>",
        "%0:2 = nn.recurrence gru %p, %w initial (%h) bias %b activations [\"sigmoid\", \"tanh\"] alphas [0.0, 0.0] "
        "betas "
        "[0.0, 0.0] {linearBeforeReset} : (tensor<3x1x4x3x6xf64>, tensor<1x3x6x6xf64>, tensor<1x4x6xf64>, "
        "tensor<1x6xf64>) -> (tensor<3x1x4x6xf64>, tensor<1x4x6xf64>)");
}

// Of samples that end earlier, states stay.
TEST(PartitionRecurrence, RecurrencesWithLengths) {
  check("%p: tensor<4x1x8x1x6xf32>, %w: tensor<1x1x6x6xf32>, %h: tensor<1x8x6xf32>, %l: tensor<8xi64> {test.bound = 5}",
        "%0:2 = nn.recurrence rnn %p, %w initial (%h) lengths %l activations [\"tanh\"] alphas [0.0] betas [0.0] : "
        "(tensor<4x1x8x1x6xf32>, tensor<1x1x6x6xf32>, tensor<1x8x6xf32>, tensor<8xi64>) -> (tensor<4x1x8x6xf32>, "
        "tensor<1x8x6xf32>)");
}
