//===- InPlaceTest.cpp - results where arguments lie ----------------------===//
//
// Which pairs are allowed, and that the kernel is right with them. Pairs that are refused are run too, where what comes out is
// then wrong: a refusal that nothing needs would be a buffer wasted.
//
//===----------------------------------------------------------------------===//
#include "Harness.h"

#include "mlir/Parser/Parser.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;

namespace {

class InPlaceTest : public KernelTest {
protected:
  /// Of @main of `text`: may result `pair.result` lie where argument `pair.argument` lies?
  bool ask(StringRef text, InPlace pair) {
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module) << errors << text.str();
    if (!module)
      return false;
    auto func = *module->getOps<func::FuncOp>().begin();
    return canBeInPlace(func.front(), pair.argument, pair.result);
  }
  std::string run(StringRef text, InPlace pair) {
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    return checkOn(text, drawInputs(*module->getOps<func::FuncOp>().begin(), 3), pair);
  }
  void expectAllowed(StringRef text, InPlace pair) {
    EXPECT_TRUE(ask(text, pair)) << text.str();
    EXPECT_EQ(run(text, pair), "") << text.str();
  }
  void expectRefused(StringRef text, InPlace pair) {
    EXPECT_FALSE(ask(text, pair)) << text.str();
    EXPECT_NE(run(text, pair), "") << text.str();
  }
};

TEST_F(InPlaceTest, MapsReadAtTheirPoint) {
  constexpr const char *chain =
      R"(func.func @main(%x: tensor<5x35xf32>, %r: tensor<35xf32>, %z: tensor<5x35xf32>) -> tensor<5x35xf32> {
    %0 = nn.add %x, %r : (tensor<5x35xf32>, tensor<35xf32>) -> tensor<5x35xf32>
    %1 = nn.gelu %0 : (tensor<5x35xf32>) -> tensor<5x35xf32>
    %y = nn.mul %1, %z : (tensor<5x35xf32>, tensor<5x35xf32>) -> tensor<5x35xf32>
    return %y : tensor<5x35xf32>
  })";
  expectAllowed(chain, {0, 0});
  expectAllowed(chain, {2, 0});
  EXPECT_FALSE(ask(chain, {1, 0})); // too small
}

TEST_F(InPlaceTest, TypesOfOneSizeMayShareBytes) {
  constexpr const char *cast = R"(func.func @main(%x: tensor<5x35xf32>) -> tensor<5x35xi32> {
    %y = nn.cast %x : (tensor<5x35xf32>) -> tensor<5x35xi32>
    return %y : tensor<5x35xi32>
  })";
  expectAllowed(cast, {0, 0});
  constexpr const char *wider = R"(func.func @main(%x: tensor<5x35xf32>) -> tensor<5x35xf64> {
    %y = nn.cast %x : (tensor<5x35xf32>) -> tensor<5x35xf64>
    return %y : tensor<5x35xf64>
  })";
  EXPECT_FALSE(ask(wider, {0, 0}));
}

TEST_F(InPlaceTest, ScattersUpdateWhatIsThere) {
  constexpr const char *places =
      R"(func.func @main(%x: tensor<7x4xf32>, %i: tensor<3x1xi64>, %u: tensor<3x4xf32>) -> tensor<7x4xf32> {
    %y = nn.scatter_nd set %x, %i, %u : (tensor<7x4xf32>, tensor<3x1xi64>, tensor<3x4xf32>) -> tensor<7x4xf32>
    return %y : tensor<7x4xf32>
  })";
  expectAllowed(places, {0, 0});
  expectAllowed(R"(func.func @main(%x: tensor<7x4xf16>, %i: tensor<3x4xi64>, %u: tensor<3x4xf16>) -> tensor<7x4xf16> {
    %y = nn.scatter_elements add %x, %i, %u dim 0 : (tensor<7x4xf16>, tensor<3x4xi64>, tensor<3x4xf16>) -> tensor<7x4xf16>
    return %y : tensor<7x4xf16>
  })",
                {0, 0});
  // Updates that read what others have updated.
  EXPECT_FALSE(ask(R"(func.func @main(%x: tensor<7x4xf32>, %i: tensor<7x1xi64>) -> tensor<7x4xf32> {
    %y = nn.scatter_nd set %x, %i, %x : (tensor<7x4xf32>, tensor<7x1xi64>, tensor<7x4xf32>) -> tensor<7x4xf32>
    return %y : tensor<7x4xf32>
  })",
                   {0, 0}));
}

TEST_F(InPlaceTest, MapsThatReadElsewhereAreRefused) {
  expectRefused(R"(func.func @main(%x: tensor<35x35xf32>) -> tensor<35x35xf32> {
    %t = nn.transpose %x [1, 0] : (tensor<35x35xf32>) -> tensor<35x35xf32>
    %y = nn.add %x, %t : (tensor<35x35xf32>, tensor<35x35xf32>) -> tensor<35x35xf32>
    return %y : tensor<35x35xf32>
  })",
                {0, 0});
  expectRefused(R"(func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {
    %y = nn.rotate %x dim 0 by 7 : (tensor<64xf32>) -> tensor<64xf32>
    return %y : tensor<64xf32>
  })",
                {0, 0});
}

/// As around what is computed with channels last.
TEST_F(InPlaceTest, TransposesMayUndoEachOther) {
  auto join = [](StringRef there, StringRef back) {
    return (R"(func.func @main(%x: tensor<7x7x7xf32>, %z: tensor<7x7x7xf32>) -> tensor<7x7x7xf32> {
    %0 = nn.transpose %x [)" +
            there + R"(] : (tensor<7x7x7xf32>) -> tensor<7x7x7xf32>
    %1 = nn.transpose %z [2, 0, 1] : (tensor<7x7x7xf32>) -> tensor<7x7x7xf32>
    %2 = nn.add %0, %1 : (tensor<7x7x7xf32>, tensor<7x7x7xf32>) -> tensor<7x7x7xf32>
    %y = nn.transpose %2 [)" +
            back + R"(] : (tensor<7x7x7xf32>) -> tensor<7x7x7xf32>
    return %y : tensor<7x7x7xf32>
  })")
        .str();
  };
  expectAllowed(join("2, 0, 1", "1, 2, 0"), {0, 0});
  expectAllowed(join("2, 0, 1", "1, 2, 0"), {1, 0});
  expectRefused(join("2, 0, 1", "2, 0, 1"), {0, 0});
  expectRefused(join("1, 2, 0", "1, 2, 0"), {0, 0});
}

/// The first shape's results are stored before the second's are computed.
TEST_F(InPlaceTest, LaterMapsMustNotReadWhatIsOverwritten) {
  constexpr const char *two = R"(func.func @main(%x: tensor<5x35xf32>) -> (tensor<5x35xf32>, tensor<35x5xf32>) {
    %0 = nn.exp %x : (tensor<5x35xf32>) -> tensor<5x35xf32>
    %1 = nn.transpose %x [1, 0] : (tensor<5x35xf32>) -> tensor<35x5xf32>
    return %0, %1 : tensor<5x35xf32>, tensor<35x5xf32>
  })";
  expectRefused(two, {0, 0});
  EXPECT_FALSE(ask(two, {0, 1}));
  expectAllowed(R"(func.func @main(%x: tensor<5x35xf32>) -> (tensor<35x5xf32>, tensor<5x35xf32>) {
    %0 = nn.exp %x : (tensor<5x35xf32>) -> tensor<5x35xf32>
    %1 = nn.transpose %x [1, 0] : (tensor<5x35xf32>) -> tensor<35x5xf32>
    return %1, %0 : tensor<35x5xf32>, tensor<5x35xf32>
  })",
                {0, 1});
}

TEST_F(InPlaceTest, RowsReadTheirOwnRow) {
  for (const char *shape : {"6x35", "6x500"}) {
    std::string softmax = R"(func.func @main(%x: tensor<SHAPExf32>, %z: tensor<SHAPExf32>) -> tensor<SHAPExf32> {
      %0 = nn.softmax %x dim 1 : (tensor<SHAPExf32>) -> tensor<SHAPExf32>
      %y = nn.add %0, %z : (tensor<SHAPExf32>, tensor<SHAPExf32>) -> tensor<SHAPExf32>
      return %y : tensor<SHAPExf32>
    })";
    for (size_t at; (at = softmax.find("SHAPE")) != std::string::npos;)
      softmax.replace(at, 5, shape);
    expectAllowed(softmax, {0, 0});
    expectAllowed(softmax, {1, 0});
    for (size_t at; (at = softmax.find("dim 1")) != std::string::npos;)
      softmax.replace(at, 5, "dim 0");
    expectAllowed(softmax, {0, 0});
  }
}

/// Each row adds the sum of another.
TEST_F(InPlaceTest, RowsThatReadOtherRowsAreRefused) {
  expectRefused(R"(func.func @main(%x: tensor<16x16xf32>) -> tensor<16x16xf32> {
    %s = nn.reduce sum %x dims [1] keep_dims : (tensor<16x16xf32>) -> tensor<16x1xf32>
    %t = nn.transpose %s [1, 0] : (tensor<16x1xf32>) -> tensor<1x16xf32>
    %y = nn.add %x, %t : (tensor<16x16xf32>, tensor<1x16xf32>) -> tensor<16x16xf32>
    return %y : tensor<16x16xf32>
  })",
                {0, 0});
}

/// The number of a row is read by the row's elements, and written behind them.
TEST_F(InPlaceTest, NumbersOfRowsAreStoredLast) {
  expectAllowed(R"(func.func @main(%x: tensor<6x35xf32>, %c: tensor<6x1xf32>) -> (tensor<6x1xf32>, tensor<6x35xf32>) {
    %s = nn.reduce sum %x dims [1] keep_dims : (tensor<6x35xf32>) -> tensor<6x1xf32>
    %0 = nn.add %s, %c : (tensor<6x1xf32>, tensor<6x1xf32>) -> tensor<6x1xf32>
    %1 = nn.mul %x, %c : (tensor<6x35xf32>, tensor<6x1xf32>) -> tensor<6x35xf32>
    return %0, %1 : tensor<6x1xf32>, tensor<6x35xf32>
  })",
                {1, 0});
}

/// What goes to memory first has read all that it needs.
TEST_F(InPlaceTest, WhatIsFilledFirstMayReadAnywhere) {
  constexpr const char *scan = R"(func.func @main(%x: tensor<6x35xf32>) -> tensor<6x35xf32> {
    %s = nn.cumsum %x dim 1 reverse : (tensor<6x35xf32>) -> tensor<6x35xf32>
    %y = nn.add %s, %x : (tensor<6x35xf32>, tensor<6x35xf32>) -> tensor<6x35xf32>
    return %y : tensor<6x35xf32>
  })";
  expectAllowed(scan, {0, 0});
}

/// A product of matrices reads whole rows of its operand for each element.
TEST_F(InPlaceTest, ContractionsDoNotOverwriteTheirOperands) {
  constexpr const char *product =
      R"(func.func @main(%x: tensor<160x160xf32>, %w: tensor<160x160xf32>, %r: tensor<160x160xf32>) -> tensor<160x160xf32> {
    %p = nn.einsum %x, %w "mk,kn->mn" : (tensor<160x160xf32>, tensor<160x160xf32>) -> tensor<160x160xf32>
    %y = nn.add %p, %r : (tensor<160x160xf32>, tensor<160x160xf32>) -> tensor<160x160xf32>
    return %y : tensor<160x160xf32>
  })";
  expectRefused(product, {0, 0});
  expectRefused(product, {1, 0});
  expectAllowed(product, {2, 0});
}

/// The second result is stored somewhere else at the same time.
TEST_F(InPlaceTest, MovedResultsOfAContractionHaveOtherPoints) {
  constexpr const char *both =
      R"(func.func @main(%x: tensor<160x16xf32>, %w: tensor<16x160xf32>, %r: tensor<160x160xf32>) -> (tensor<160x160xf32>, tensor<160x160xf32>) {
    %p = nn.einsum %x, %w "mk,kn->mn" : (tensor<160x16xf32>, tensor<16x160xf32>) -> tensor<160x160xf32>
    %y = nn.add %p, %r : (tensor<160x160xf32>, tensor<160x160xf32>) -> tensor<160x160xf32>
    %t = nn.transpose %p [1, 0] : (tensor<160x160xf32>) -> tensor<160x160xf32>
    %z = nn.add %t, %r : (tensor<160x160xf32>, tensor<160x160xf32>) -> tensor<160x160xf32>
    return %y, %z : tensor<160x160xf32>, tensor<160x160xf32>
  })";
  expectRefused(both, {2, 0});
  expectRefused(both, {2, 1});
  constexpr const char *there =
      R"(func.func @main(%x: tensor<160x16xf32>, %w: tensor<16x160xf32>, %r: tensor<160x160xf32>) -> tensor<160x160xf32> {
    %p = nn.einsum %x, %w "mk,kn->mn" : (tensor<160x16xf32>, tensor<16x160xf32>) -> tensor<160x160xf32>
    %s = nn.transpose %r [1, 0] : (tensor<160x160xf32>) -> tensor<160x160xf32>
    %z = nn.add %p, %s : (tensor<160x160xf32>, tensor<160x160xf32>) -> tensor<160x160xf32>
    %y = nn.transpose %z [1, 0] : (tensor<160x160xf32>) -> tensor<160x160xf32>
    return %y : tensor<160x160xf32>
  })";
  expectAllowed(there, {2, 0});
}

} // namespace
