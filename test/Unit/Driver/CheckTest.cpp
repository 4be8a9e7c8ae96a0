//===- CheckTest.cpp ------------------------------------------------------===//
//
// Two functions of one module stand for the program on ranks and on one device: what is told apart is rounding, and
// everything else. What f32 does to 1e8 + x is arithmetic: there floats are 8 apart.
//
//===----------------------------------------------------------------------===//
#include "cleave/Driver/Check.h"

#include "cleave/Dialect/Nn/IR/Nn.h"
#include "cleave/Reference/Evaluator.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::driver;
using reference::Tensor;

namespace {

/// (1e8 + x) - 1e8, which f32 rounds to a multiple of 8.
constexpr StringLiteral kCancels = R"(
  %big = nn.constant dense<1.0e+8> : tensor<3xf32> -> tensor<3xf32>
  %sum = nn.add %x, %big : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %y = nn.sub %sum, %big : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>)";

class CheckTest : public ::testing::Test {
protected:
  CheckTest() { context.loadDialect<func::FuncDialect, nn::NnDialect, spmd::SpmdDialect>(); }

  /// Runs both bodies (from %x to %y, of `type`) and compares; what is printed is in `text`.
  bool check(StringRef ranks, StringRef original, StringRef values, StringRef type = "tensor<3xf32>",
             std::optional<double> tolerance = std::nullopt) {
    auto write = [&](StringRef name, StringRef body) {
      return llvm::formatv("func.func @{0}(%x: {1}) -> ({1} {{nn.name = \"y\"}) {{{2}\nreturn %y : {1}\n}\n", name,
                           type, body)
          .str();
    };
    OwningOpRef<ModuleOp> module =
        parseSourceString<ModuleOp>(write("ranks", ranks) + write("original", original), &context);
    auto attr = cast<ElementsAttr>(parseAttribute(llvm::formatv("dense<{0}> : {1}", values, type).str(), &context));
    SmallVector<Tensor> inputs{*Tensor::fromAttr(attr)}, got, want;
    auto onRanks = module->lookupSymbol<func::FuncOp>("ranks"),
         onDevice = module->lookupSymbol<func::FuncOp>("original");
    EXPECT_TRUE(succeeded(reference::runGlobal(onRanks, inputs, got)));
    EXPECT_TRUE(succeeded(reference::runGlobal(onDevice, inputs, want)));
    text.clear();
    llvm::raw_string_ostream os(text);
    return printChecks(os, {onRanks, onDevice, inputs, got, want, tolerance, tolerance}, /*quiet=*/false);
  }
  /// The same for bodies that give back constants.
  bool checkConstants(StringRef ranks, StringRef original, StringRef type,
                      std::optional<double> tolerance = std::nullopt) {
    auto constant = [&](StringRef values) {
      return llvm::formatv("%y = nn.constant dense<{0}> : {1} -> {1}", values, type).str();
    };
    return check(constant(ranks), constant(original), ranks, type, tolerance);
  }

  MLIRContext context;
  std::string text;
};

TEST_F(CheckTest, WhatRoundingDoesToTheOriginalItselfIsNoError) {
  EXPECT_TRUE(check("%y = nn.relu %x : (tensor<3xf32>) -> tensor<3xf32>", kCancels, "[16.0, 3.0, 12.5]"));
  EXPECT_EQ(text,
            "check y: ok, ill-conditioned here, largest difference 3.50e+00\n"
            "  at [1]: 3 on ranks, 0 on one device (rtol 0.0001, atol 1e-05)\n"
            "  in double they differ by 0.00e+00; rounding moves one device by 3.50e+00, the ranks by 0.00e+00\n");
}

TEST_F(CheckTest, AWrongProgramIsToldThoughTheOriginalIsAsFarFromTheTruth) {
  EXPECT_FALSE(check(R"(
    %c = nn.constant dense<1.25> : tensor<3xf32> -> tensor<3xf32>
    %y = nn.mul %x, %c : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>)",
                     kCancels, "[8.0, 3.0, 12.0]"));
  EXPECT_EQ(text,
            "check y: DIFFERS, largest difference 3.75e+00\n"
            "  at [0]: 10 on ranks, 8 on one device (rtol 0.0001, atol 1e-05)\n"
            "  in double they differ by 3.00e+00; rounding moves one device by 4.00e+00, the ranks by 3.00e+00\n");
}

// The next f16 to 0.1 is 0.0999756; in double nothing of that is seen.
TEST_F(CheckTest, TooNarrowATypeIsTold) {
  EXPECT_FALSE(check(R"(
    %h = nn.cast %x : (tensor<3xf32>) -> tensor<3xf16>
    %y = nn.cast %h : (tensor<3xf16>) -> tensor<3xf32>)",
                     "%y = nn.relu %x : (tensor<3xf32>) -> tensor<3xf32>", "[0.1, 0.5, 0.75]"));
  EXPECT_NE(
      text.find("in double they differ by 0.00e+00; rounding moves one device by 0.00e+00, the ranks by 2.44e-05"),
      std::string::npos)
      << text;
}

TEST_F(CheckTest, AToleranceOfZeroIsKept) {
  EXPECT_FALSE(
      check("%y = nn.relu %x : (tensor<3xf32>) -> tensor<3xf32>", kCancels, "[16.0, 3.0, 12.5]", "tensor<3xf32>", 0.0));
  EXPECT_NE(text.find("check y: DIFFERS, largest difference 3.50e+00\n"), std::string::npos) << text;
}

TEST_F(CheckTest, NanOnBothSidesIsSaid) {
  EXPECT_TRUE(checkConstants("[0x7FC00000, 1.0, 0xFFC00001]", "[0x7FC00000, 1.0, 0x7FC00000]", "tensor<3xf32>"));
  EXPECT_EQ(text, "check y: ok, largest difference 0.00e+00; 2 of 3 elements are NaN on both\n");
}

TEST_F(CheckTest, NanOnOneSideAndInfinitiesAreDifferences) {
  EXPECT_FALSE(checkConstants("[0x7FC00000, 1.0]", "[0.0, 1.0]", "tensor<2xf32>"));
  EXPECT_FALSE(checkConstants("[0.0, 1.0]", "[0x7F800000, 1.0]", "tensor<2xf32>"));
  EXPECT_FALSE(checkConstants("[0xFF800000, 1.0]", "[0x7F800000, 1.0]", "tensor<2xf32>"));
  EXPECT_TRUE(checkConstants("[0x7F800000, 1.0]", "[0x7F800000, 1.0]", "tensor<2xf32>"));
}

TEST_F(CheckTest, NumbersHaveEnoughDigitsToDiffer) {
  EXPECT_FALSE(checkConstants("[1152921504606846977]", "[1152921504606846976]", "tensor<1xi64>"));
  EXPECT_NE(text.find("DIFFERS, largest difference 1.00e+00"), std::string::npos) << text;
  EXPECT_NE(text.find("at [0]: 1152921504606846977 on ranks, 1152921504606846976 on one device"), std::string::npos)
      << text;
  EXPECT_FALSE(checkConstants("[18446744073709551615]", "[18446744073709551614]", "tensor<1xui64>"));
  EXPECT_NE(text.find("at [0]: 18446744073709551615 on ranks, 18446744073709551614 on"), std::string::npos) << text;
  EXPECT_FALSE(checkConstants("[1.00000012]", "[1.0]", "tensor<1xf32>", 0.0));
  EXPECT_NE(text.find("at [0]: 1.0000001 on ranks, 1 on one device (rtol 0, atol 0)"), std::string::npos) << text;
}

} // namespace
