//===- TraitsTest.cpp - what ops of nn say of themselves ------------------===//
//
// Slopes are those of calculus: each op of a program says in an attribute what is expected of it.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Contraction.h"
#include "cleave/Dialect/Nn/IR/Ops/Convolution.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace cleave;

namespace {

class TraitsTest : public ::testing::Test {
protected:
  TraitsTest() { context.loadDialect<func::FuncDialect, nn::NnDialect>(); }

  OwningOpRef<ModuleOp> parse(llvm::StringRef body) {
    std::string text =
        ("func.func @main(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>, %i: tensor<4xi64>, %c: tensor<4x4xi1>, "
         "%a: tensor<4x2x4x4xf32>, %k: tensor<2x2x1x1xf32>, %t: tensor<1x4x2xf32>) {\n" +
         body + "\nreturn }")
            .str();
    return parseSourceString<ModuleOp>(text, &context);
  }

  MLIRContext context;
};

/// `reads`: the operands that are read for the gradients of all; without it none.
constexpr llvm::StringLiteral kSlopes = R"(
  %0 = nn.exp %x {slope = 1} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = nn.relu %x {slope = 1} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = nn.softmax %x dim 1 {slope = 1} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = nn.log %x {slope = 0, reads = [0]} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %4 = nn.floor %x {slope = 3} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %5 = nn.add %x, %w {slope = 2} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %6 = nn.transpose %x [1, 0] {slope = 2} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %7 = nn.reduce sum %x dims [1] {slope = 2} : (tensor<4x4xf32>) -> tensor<4xf32>
  %8 = nn.reduce max %x dims [1] {slope = 0, reads = [0]} : (tensor<4x4xf32>) -> tensor<4xf32>
  %9 = nn.select %c, %x, %w {slope = 2, reads = [0]} : (tensor<4x4xi1>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %10 = nn.gather %x, %i dim 0 {slope = 2, reads = [1]} : (tensor<4x4xf32>, tensor<4xi64>) -> tensor<4x4xf32>
  %11 = nn.mul %x, %w {slope = 0, reads = [0, 1]} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %12 = nn.rotary_embedding %a, %t, %t rotated 4 {slope = 0, reads = [1, 2]} : (tensor<4x2x4x4xf32>, tensor<1x4x2xf32>, tensor<1x4x2xf32>) -> tensor<4x2x4x4xf32>
)";

TEST_F(TraitsTest, SlopesSayWhatGradientsRead) {
  OwningOpRef<ModuleOp> module = parse(kSlopes);
  ASSERT_TRUE(module);
  int seen = 0;
  module->walk([&](nn::SlopeOpInterface op) {
    auto slope = op->getAttrOfType<IntegerAttr>("slope");
    auto reads = op->getAttrOfType<ArrayAttr>("reads");
    ASSERT_TRUE(slope);
    EXPECT_EQ(int64_t(op.getSlope()), slope.getInt()) << op->getName().getStringRef().str();
    SmallVector<bool> wanted(op->getNumOperands(), true);
    for (unsigned i = 0; i < op->getNumOperands(); ++i) {
      bool isRead =
          reads && llvm::any_of(reads.getAsRange<IntegerAttr>(), [&](IntegerAttr at) { return at.getInt() == i; });
      EXPECT_EQ(op.isReadForGradient(i, wanted), isRead) << op->getName().getStringRef().str() << ' ' << i;
    }
    ++seen;
  });
  EXPECT_EQ(seen, 13);
}

// d(x w) = w dx + x dw; d(x / w) = dx / w - x / w^2 dw.
TEST_F(TraitsTest, FactorsAreReadForEachOther) {
  OwningOpRef<ModuleOp> module = parse(R"(
    %0 = nn.mul %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %1 = nn.div %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  )");
  ASSERT_TRUE(module);
  module->walk([](nn::MulOp mul) {
    EXPECT_FALSE(mul.isReadForGradient(0, {true, false}));
    EXPECT_TRUE(mul.isReadForGradient(1, {true, false}));
  });
  module->walk([](nn::DivOp div) {
    EXPECT_FALSE(div.isReadForGradient(0, {true, false}));
    EXPECT_TRUE(div.isReadForGradient(1, {true, false}));
    EXPECT_TRUE(div.isReadForGradient(0, {false, true}));
  });
}

// A bias is added; what constants hold is data.
TEST_F(TraitsTest, FactorsAndData) {
  OwningOpRef<ModuleOp> module = parse(R"(
    %b = nn.constant dense<1.0> : tensor<2xf32> -> tensor<2xf32>
    %0 = nn.conv %a, %k, %b strides [1, 1] pads_low [0, 0] pads_high [0, 0] dilations [1, 1] groups 1 : (tensor<4x2x4x4xf32>, tensor<2x2x1x1xf32>, tensor<2xf32>) -> tensor<4x2x4x4xf32>
    %1 = nn.einsum %x, %w, %x "ij,jk,kl->il" : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  )");
  ASSERT_TRUE(module);
  int found = 0;
  module->walk([&](nn::FormOpInterface op) {
    EXPECT_EQ(nn::isData(op), isa<nn::ConstantOp>(*op));
    EXPECT_EQ(nn::countFactors(op), isa<nn::ConvOp>(*op) ? 2u : isa<nn::EinsumOp>(*op) ? 3u : 0u);
    ++found;
  });
  EXPECT_EQ(found, 3);
  EXPECT_FALSE(nn::isData(nullptr));
}

} // namespace
