//===- ReduceTest.cpp - terms combined in order ---------------------------===//
//
// Every narrow float there is, and what NaN does: what random elements of the conformance suite do not have.
//
//===----------------------------------------------------------------------===//
#include "Reduce.h"
#include "Oracle.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace cleave::runtime;
using namespace cleave::runtime::test;

class NarrowFloats : public testing::TestWithParam<ElementType> {};

static bool isNan(ElementType type, uint64_t bits) { return std::isnan(decodeNarrow(type, bits)); }

/// Each value is itself again; each sum with another one is rounded to nearest, ties to even.
TEST_P(NarrowFloats, AreReadAndRounded) {
  ElementType type = GetParam();
  std::vector<uint16_t> all(65536), other(65536), sum(65536), same(65536);
  for (uint64_t bits = 0; bits < 65536; ++bits) {
    all[bits] = uint16_t(bits);
    // Of like exponent, so that many sums need rounding, and some overflow.
    other[bits] = uint16_t(bits ^ (scramble(1, bits) & 0x07ff));
  }
  const char *first = reinterpret_cast<const char *>(all.data()),
             *second = reinterpret_cast<const char *>(other.data());
  reduce(Reduction::Sum, type, {first}, reinterpret_cast<char *>(same.data()), 65536);
  reduce(Reduction::Sum, type, {first, second}, reinterpret_cast<char *>(sum.data()), 65536);
  for (uint64_t bits = 0; bits < 65536; ++bits) {
    if (isNan(type, bits)) {
      EXPECT_TRUE(isNan(type, same[bits])) << bits;
      continue;
    }
    EXPECT_EQ(same[bits], bits);
    // Sums are exact in f32, or nearly: bits that f32 cuts off lie far below a half of the narrow type's last place.
    long double exact = decodeNarrow(type, bits) + decodeNarrow(type, other[bits]);
    if (std::isnan(exact))
      EXPECT_TRUE(isNan(type, sum[bits])) << bits;
    else
      EXPECT_EQ(sum[bits], encodeNarrow(type, float(exact))) << bits << " + " << other[bits];
  }
}

INSTANTIATE_TEST_SUITE_P(Reduce, NarrowFloats, testing::Values(ElementType::F16, ElementType::BF16),
                         [](const auto &info) { return std::string(getWord(info.param)); });

TEST(Reduce, NanWinsOnEitherSide) {
  const float nan = NAN, one = 1;
  for (Reduction reduction : {Reduction::Max, Reduction::Min})
    for (auto [x, y] : {std::pair(&nan, &one), std::pair(&one, &nan)}) {
      float result = 0;
      reduce(reduction, ElementType::F32, {reinterpret_cast<const char *>(x), reinterpret_cast<const char *>(y)},
             reinterpret_cast<char *>(&result), 1);
      EXPECT_TRUE(std::isnan(result));
    }
}
