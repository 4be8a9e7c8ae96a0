//===- RegionsTest.cpp - random regions -----------------------------------===//
//
// Random fused regions, as kernels and as the evaluator runs them. CLEAVE_REGIONS says how many, CLEAVE_REGION which one
// comes first.
//
//===----------------------------------------------------------------------===//
#include "../../Differential/Generator.h"
#include "Harness.h"

using namespace cleave::codegen;

namespace {

class RegionsTest : public KernelTest {};

TEST_F(RegionsTest, EqualTheEvaluator) {
  static constexpr const char *types[] = {"f32", "f32", "f64", "bf16", "f16"};
  uint64_t first = getNumber("CLEAVE_REGION", 1), count = getNumber("CLEAVE_REGIONS", 300);
  for (uint64_t seed = first; seed < first + count; ++seed) {
    errors.clear();
    std::string text = cleave::test::generateRegion(seed, types[seed % std::size(types)]);
    std::string fault = check(text, seed);
    EXPECT_EQ(fault, "") << "repeat with: CLEAVE_REGION=" << seed << " CLEAVE_REGIONS=1\n" << text;
  }
}

/// Every pair of an argument and a result of which the emitter says so, of fewer regions, since each pair is compiled.
TEST_F(RegionsTest, MayHaveResultsInPlaceOfArguments) {
  uint64_t first = getNumber("CLEAVE_REGION", 1), count = getNumber("CLEAVE_REGIONS", 300) / 8;
  int64_t pairs = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    errors.clear();
    std::string text = cleave::test::generateRegion(seed, "f32");
    EXPECT_EQ(checkInPlace(text, seed, pairs), "") << "repeat with: CLEAVE_REGION=" << seed << " CLEAVE_REGIONS=8\n"
                                                   << text;
  }
  EXPECT_GE(pairs, int64_t(count / 4));
}

} // namespace
