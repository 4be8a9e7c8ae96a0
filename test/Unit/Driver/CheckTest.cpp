//===- CheckTest.cpp ------------------------------------------------------===//
//
// Two functions of one module stand for the program on ranks and on one device: what is told apart is rounding, and
// everything else. What f32 does to 1e8 + x is arithmetic: there floats are 8 apart.
//
//===----------------------------------------------------------------------===//
#include "cleave/Driver/Check.h"

#include "cleave/Compiler/CheckOutputs.h"
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
      return llvm::formatv("func.func @{0}(%x: {1}) -> ({1} {{nn.name = \"{3}\"}) {{{2}\nreturn %y : {1}\n}\n", name,
                           type, body, result)
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
    return printChecks(os, checkOutputs({onRanks, onDevice, inputs, got, want, tolerance, tolerance}), /*quiet=*/false);
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
  std::string text, result = "y";
};

// As where one of many ranks is left out of a sum: each element is within its tolerance. The factor is 1 + 419 2^-23 in f32.
TEST_F(CheckTest, AGradientIsHeldToItsLength) {
  constexpr StringLiteral off = R"(
    %c = nn.constant dense<1.00005> : tensor<3xf32> -> tensor<3xf32>
    %y = nn.mul %x, %c : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>)",
                          same = "%y = nn.abs %x : (tensor<3xf32>) -> tensor<3xf32>";
  EXPECT_TRUE(check(off, same, "[3.0, 4.0, 12.0]"));
  result = "grad(w)";
  EXPECT_FALSE(check(off, same, "[3.0, 4.0, 12.0]"));
  EXPECT_EQ(text, "check grad(w): DIFFERS, largest difference 5.99e-04, of length 1.30e+01, all is off by 6.49e-04\n");
  EXPECT_TRUE(check(same, same, "[3.0, 4.0, 12.0]"));
  EXPECT_EQ(text, "check grad(w): ok, largest difference 0.00e+00, of length 1.30e+01\n");
}

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

// 2e-7 for 1e-7 is as wrong as 2 for 1.
TEST_F(CheckTest, SmallTensorsHaveASmallScale) {
  EXPECT_FALSE(checkConstants("[2.0e-7, 3.0e-7, 4.0e-7]", "[1.0e-7, 1.0e-7, 1.0e-7]", "tensor<3xf32>"));
  EXPECT_NE(text.find("check y: DIFFERS, largest difference 3.00e-07"), std::string::npos) << text;
  EXPECT_TRUE(checkConstants("[1.00001e-7, 0.0]", "[1.0e-7, 0.0]", "tensor<2xf32>"));
  EXPECT_FALSE(checkConstants("[1.0e-30, 1.0e-30]", "[1.0e-30, 2.0e-30]", "tensor<2xf32>"));
  EXPECT_FALSE(checkConstants("[1.0e-200]", "[2.0e-200]", "tensor<1xf64>"));
  // Beside 1 a thousandth of 1e-5 is nothing.
  EXPECT_TRUE(checkConstants("[1.0, 1.0e-8]", "[1.0, 0.0]", "tensor<2xf32>"));
  EXPECT_FALSE(checkConstants("[1.0e-9, 0.0]", "[0.0, 0.0]", "tensor<2xf32>")) << "there is nothing to be relative to";
  EXPECT_TRUE(checkConstants("[0.0, 0.0]", "[-0.0, 0.0]", "tensor<2xf32>"));
}

// Terms that cancel to nothing on one device, and to what rounding leaves on ranks, which an f64 leaves a 2^-29 of.
TEST_F(CheckTest, WhatIsLeftOfTermsThatCancelIsRounding) {
  constexpr StringLiteral type = "tensor<3xf32>",
                          nothing = "%y = nn.sub %x, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>";
  auto offBy = [](StringRef factor) {
    return llvm::formatv(R"(
    %c = nn.constant dense<{0}> : tensor<3xf32> -> tensor<3xf32>
    %p = nn.mul %x, %c : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %s = nn.add %x, %p : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %d = nn.sub %s, %p : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %y = nn.sub %d, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>)",
                         factor)
        .str();
  };
  EXPECT_TRUE(check(offBy("1.1"), nothing, "[0.1, 0.3, 0.7]", type)) << text;
  EXPECT_NE(text.find("ok, ill-conditioned here"), std::string::npos) << text;
  EXPECT_FALSE(
      check("%y = nn.constant dense<1.0e-8> : tensor<3xf32> -> tensor<3xf32>", nothing, "[0.1, 0.3, 0.7]", type));
}

// One device in bf16 says how far bf16 is from the model, ranks may be about as far.
TEST_F(CheckTest, BFloatIsHeldAgainstOneDevice) {
  auto checkNarrow = [&](StringRef ranks, StringRef device, StringRef model) {
    auto make = [&](StringRef values) {
      auto attr =
          cast<ElementsAttr>(parseAttribute(llvm::formatv("dense<{0}> : tensor<4xf32>", values).str(), &context));
      return SmallVector<Tensor>{*Tensor::fromAttr(attr)};
    };
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(
        "func.func @f(%x: tensor<4xf32>) -> (tensor<4xf32> {nn.name = \"y\"}) {\nreturn %x : tensor<4xf32>\n}",
        &context);
    auto func = module->lookupSymbol<func::FuncOp>("f");
    SmallVector<Tensor> got = make(ranks), narrow = make(device), want = make(model);
    text.clear();
    llvm::raw_string_ostream os(text);
    return printChecks(
        os, checkOutputs({func, func, want, got, want, std::nullopt, std::nullopt, kNarrowTolerance, narrow}), false);
  };
  // 3 % off, and so is one device, elsewhere.
  EXPECT_TRUE(checkNarrow("[1.03, 1.0, 1.0, 1.0]", "[1.0, 1.0, 0.97, 1.0]", "[1.0, 1.0, 1.0, 1.0]"));
  EXPECT_EQ(text, "check y: ok, largest difference 3.00e-02, rms 1.50e-02, on one device 1.50e-02\n");
  // 1 % off everywhere, which one device is not; and all wrong in one element of four.
  EXPECT_FALSE(checkNarrow("[1.01, 1.01, 1.01, 1.01]", "[1.001, 1.0, 1.0, 1.0]", "[1.0, 1.0, 1.0, 1.0]"));
  EXPECT_FALSE(checkNarrow("[2.0, 1.0, 1.0, 1.0]", "[1.03, 1.0, 1.0, 1.0]", "[1.0, 1.0, 1.0, 1.0]"));
  // A rounding of bf16, 2^-9, where one device has none by chance; the same of small numbers.
  EXPECT_TRUE(checkNarrow("[1.002, 1.0, 1.0, 1.0]", "[1.0, 1.0, 1.0, 1.0]", "[1.0, 1.0, 1.0, 1.0]"));
  EXPECT_FALSE(checkNarrow("[2.0e-7, 0.0, 0.0, 0.0]", "[1.0e-7, 0.0, 0.0, 0.0]", "[1.0e-7, 0.0, 0.0, 0.0]"));
  EXPECT_FALSE(checkNarrow("[0x7FC00000, 1.0, 1.0, 1.0]", "[1.0, 1.0, 1.0, 1.0]", "[1.0, 1.0, 1.0, 1.0]"));
  EXPECT_TRUE(checkNarrow("[0x7F800000, 1.0, 1.0, 1.0]", "[0x7F800000, 1.0, 1.0, 1.0]", "[1.0, 1.0, 1.0, 1.0]"));
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
