//===- ExecTest.cpp - layouts of weights ----------------------------------===//
//
// Expected values come from the formula of docs/program-file.md, walked the other way: what each place of the packed
// tensor holds.
//
//===----------------------------------------------------------------------===//
#include "Harness.h"

#include "cleave/Dialect/Exec/IR/Exec.h"

using namespace mlir;
using namespace cleave::reference;
using Doubles = std::vector<double>;

namespace {

struct ExecTest : EvaluatorTest {
  ExecTest() { context.loadDialect<cleave::exec::ExecDialect>(); }

  /// 1, 2, .. of `type`, packed, from a constant.
  Doubles pack(std::string type, int64_t count, std::string how, std::string packed) {
    return eval("%i = nn.iota dim 0 start 1 step 1 : tensor<" + std::to_string(count) + "xf32>\n" +
                    "%x = nn.reshape %i : (tensor<" + std::to_string(count) + "xf32>) -> " + type + "\n" +
                    "%y = exec.pack %x " + how + " : (" + type + ") -> " + packed,
                packed);
  }
};

TEST_F(ExecTest, PackedPanels) {
  // The operand's dims are k1, b, n, k0.
  constexpr int64_t kBatch = 3, kOuter = 2, kInner = 5, kColumns = 7, kWidth = 4, kPair = 2;
  Doubles expected;
  for (int64_t b = 0; b < kBatch; ++b)
    for (int64_t panel = 0; panel < 2; ++panel)
      for (int64_t k0 = 0; k0 < kOuter; ++k0)
        for (int64_t pair = 0; pair < 3; ++pair)
          for (int64_t lane = 0; lane < kWidth; ++lane)
            for (int64_t odd = 0; odd < kPair; ++odd) {
              int64_t n = panel * kWidth + lane, k1 = pair * kPair + odd;
              bool isThere = n < kColumns && k1 < kInner;
              expected.push_back(isThere ? ((k1 * kBatch + b) * kColumns + n) * kOuter + k0 + 1 : 0);
            }
  EXPECT_EQ(
      pack("tensor<5x3x7x2xf32>", 210, "order [1, 3, 0, 2] batch 1 width 4 interleave 2", "tensor<3x2x2x3x4x2xf32>"),
      expected);
}

TEST_F(ExecTest, OrderAlone) {
  EXPECT_EQ(pack("tensor<2x3xf32>", 6, "order [1, 0] batch 0 width 0 interleave 1", "tensor<3x2xf32>"),
            (Doubles{1, 4, 2, 5, 3, 6}));
}

TEST_F(ExecTest, UnpackGivesBack) {
  for (std::string how : {"order [1, 3, 0, 2] batch 1 width 4 interleave 2 : (TYPE) -> tensor<3x2x2x3x4x2xbf16>",
                          "order [0, 1, 2, 3] batch 2 width 2 interleave 4 : (TYPE) -> tensor<5x3x1x2x2x4xbf16>",
                          "order [3, 2, 1, 0] batch 0 width 0 interleave 1 : (TYPE) -> tensor<2x7x3x5xbf16>"}) {
    StringRef type = "tensor<5x3x7x2xbf16>";
    how.replace(how.find("TYPE"), 4, type);
    auto [layout, types] = StringRef(how).split(" : ");
    StringRef packed = types.split(" -> ").second;
    Doubles back = eval(("%i = nn.iota dim 0 start 0 step 1 : tensor<210xbf16>\n"
                         "%x = nn.reshape %i : (tensor<210xbf16>) -> " +
                         type + "\n%p = exec.pack %x " + how + "\n%y = exec.unpack %p " + layout + " : (" + packed +
                         ") -> " + type)
                            .str(),
                        type);
    ASSERT_EQ(back.size(), 210u) << errors;
    for (int64_t i = 0; i < 210; ++i)
      EXPECT_EQ(back[i], i) << how;
  }
}

} // namespace
