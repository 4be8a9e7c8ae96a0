//===- StatusTest.cpp - error texts ---------------------------------------===//
#include "cleave/Support/Status.h"
#include "gtest/gtest.h"

using namespace cleave;

namespace {

TEST(Status, MessagesAreFormatted) {
  EXPECT_EQ(llvm::toString(makeError("dim {0} is {1}, want {2}", 0, -1, "more")), "dim 0 is -1, want more");
}

// Text of the file is an argument, so braces in it mean nothing.
TEST(Status, ContextComesFirstAndIsNotFormatted) {
  EXPECT_EQ(llvm::toString(addContext("array '{0}': ", makeError("bad {0}", "{1}"))), "array '{0}': bad {1}");
}

TEST(Status, QuotingKeepsPrintableText) { EXPECT_EQ(quote("a/ü/重"), "'a/ü/重'"); }

// No terminal must obey what a model's name says: C0 and C1 controls, stray bytes and split characters are spelled out.
TEST(Status, QuotingSpellsOutWhatIsNotPrintable) {
  EXPECT_EQ(quote(llvm::StringRef("a\0b\n\x1b[31m\x7f", 10)), "'a\\x00b\\x0a\\x1b[31m\\x7f'");
  EXPECT_EQ(quote("\xff\xc2\x9b \xe9\x87"), "'\\xff\\xc2\\x9b \\xe9\\x87'");
}

TEST(Status, QuotingSplitsLongText) {
  EXPECT_EQ(quote(std::string(200, 'x')), "'" + std::string(200, 'x') + "'");
  EXPECT_EQ(quote(std::string(201, 'x')), "'" + std::string(200, 'x') + "...'");
}

} // namespace
