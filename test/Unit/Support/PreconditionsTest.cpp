//===- PreconditionsTest.cpp - sanitizer builds assert preconditions ------===//
//
// Presets say what builds assert by what they do not define (NDEBUG) and do (_GLIBCXX_ASSERTIONS): nobody would see it go.
//
//===----------------------------------------------------------------------===//
#include "cleave/Support/Liveness.h"

#include <gtest/gtest.h>
#include <optional>
#include <vector>

#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)

TEST(PreconditionsTest, OursAreAsserted) {
  cleave::Liveness liveness;
  cleave::Liveness::Buffer buffer = liveness.define(/*step=*/3, /*bytes=*/8);
  EXPECT_DEATH(liveness.use(buffer, /*step=*/2), "used before it is defined");
}

TEST(PreconditionsTest, ThoseOfTheStandardLibraryAreAsserted) {
  std::optional<int> nothing;
  EXPECT_DEATH(EXPECT_EQ(*nothing, 0), "_M_is_engaged");
  std::vector<int> list(1);
  EXPECT_DEATH(EXPECT_EQ(list[list.size()], 0), "__n < this->size");
}

#endif
