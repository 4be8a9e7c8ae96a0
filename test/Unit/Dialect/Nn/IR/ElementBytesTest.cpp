//===- ElementBytesTest.cpp - elements of attributes, as bytes ------------===//
#include "cleave/Dialect/Nn/IR/ElementBytes.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace cleave;

// Bools are bits in an attribute, equal elements one.
TEST(ElementBytesTest, AreThoseInMemory) {
  MLIRContext context;
  auto type = RankedTensorType::get({3}, IntegerType::get(&context, 1));
  auto mixed = DenseElementsAttr::get(type, ArrayRef<bool>{true, false, true});
  std::optional<nn::ElementBytes> bytes = nn::readElements(mixed);
  ASSERT_TRUE(bytes);
  EXPECT_FALSE(bytes->isSplat);
  EXPECT_EQ(bytes->bytes, ArrayRef<char>({1, 0, 1}));
  EXPECT_EQ(nn::makeElements(type, bytes->bytes), mixed);
  auto same = DenseElementsAttr::get(type, true);
  bytes = nn::readElements(same);
  ASSERT_TRUE(bytes && bytes->isSplat);
  EXPECT_EQ(bytes->bytes, ArrayRef<char>({1}));
  EXPECT_EQ(nn::makeElements(type, {1, 1, 1}), same);
  auto words = RankedTensorType::get({2}, IntegerType::get(&context, 16));
  auto two = DenseElementsAttr::get(words, ArrayRef<int16_t>{1, 258});
  bytes = nn::readElements(two);
  ASSERT_TRUE(bytes);
  EXPECT_EQ(bytes->bytes, ArrayRef<char>({1, 0, 2, 1}));
  EXPECT_EQ(nn::makeElements(words, bytes->bytes), two);
}
