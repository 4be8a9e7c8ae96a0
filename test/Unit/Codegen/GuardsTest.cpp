//===- GuardsTest.cpp - what the guards report ----------------------------===//
//
// Kernels that do what none may, one byte each.
//
//===----------------------------------------------------------------------===//
#include "../../Codegen/Guards.h"
#include "gtest/gtest.h"

using namespace cleave::test;

namespace {

char *at(void **arguments, int operand) { return static_cast<char *>(arguments[operand]); }

void touch(const char *byte) {
  volatile char read = *static_cast<const volatile char *>(byte);
  (void)read;
}

/// Runs a kernel on 12 bytes that it reads and 8 that it writes, the latter with zeros behind the call.
std::string run(KernelFunction kernel, uint64_t alignment = 1) {
  alignas(64) char input[12] = "eleven char", output[8] = {};
  return runBetweenGuards(kernel, {{input, 12, false, alignment}, {output, 8, true, alignment}});
}

TEST(Guards, LetAKernelReadAndWriteItsOperands) {
  char input[12] = "eleven char", output[8] = {};
  GuardCounts before = getGuardCounts();
  auto kernel = [](void **arguments) { memcpy(arguments[1], at(arguments, 0) + 4, 8); };
  EXPECT_EQ(runBetweenGuards(kernel, {{input, 12, false, 4}, {output, 8, true, 4}}), "");
  EXPECT_STREQ(output, "en char");
  EXPECT_EQ(getGuardCounts().kernels, before.kernels + 1);
  EXPECT_EQ(getGuardCounts().operands, before.operands + 2);
}

TEST(Guards, FindReadsOutside) {
  EXPECT_EQ(run([](void **arguments) { touch(at(arguments, 0) + 12); }), "touches byte 1 behind the end of operand 0");
  EXPECT_EQ(run([](void **arguments) { touch(at(arguments, 0) - 1); }), "touches byte 1 in front of operand 0");
  EXPECT_EQ(run([](void **arguments) { touch(at(arguments, 1) + 107); }),
            "touches byte 100 behind the end of operand 1");
  EXPECT_EQ(run([](void **) { touch(reinterpret_cast<char *>(16)); }), "ends with SIGSEGV at 0x10");
}

TEST(Guards, FindWritesOutside) {
  EXPECT_EQ(run([](void **arguments) { at(arguments, 1)[8] = 0; }), "touches byte 1 behind the end of operand 1");
  EXPECT_EQ(run([](void **arguments) { at(arguments, 1)[-3] = 0; }), "writes byte 3 in front of operand 1");
  // Where an alignment keeps an operand away from its guard.
  EXPECT_EQ(run([](void **arguments) { at(arguments, 1)[8] = 0; }, 64), "writes byte 1 behind the end of operand 1");
  EXPECT_EQ(run([](void **arguments) { at(arguments, 0)[11] = '!'; }), "writes operand 0, which it may only read");
}

TEST(Guards, FindWhatDependsOnWhereOperandsLie) {
  auto kernel = [](void **arguments) {
    at(arguments, 1)[0] = char(reinterpret_cast<uintptr_t>(arguments[0]) % 4096 == 0);
  };
  EXPECT_EQ(run(kernel), "operand 1 gets other bytes where operands lie elsewhere");
}

TEST(Guards, KnowOperandsWithoutBytes) {
  char byte = 0;
  auto kernel = [](void **arguments) { touch(at(arguments, 0)); };
  EXPECT_EQ(runBetweenGuards(kernel, {{&byte, 0, false, 1}, {&byte, 1, true, 1}}),
            "touches byte 1 behind the end of operand 0");
}

/// 8 bytes of a kernel's own, of which `touch` gets the address, and the result is the first.
template <typename Fn> std::string runWithTemporary(Fn touch) {
  static Fn *current;
  current = &touch;
  return run([](void **arguments) {
    char *data = cleave_take_scratch(8);
    (*current)(data);
    at(arguments, 1)[0] = data[0];
    cleave_give_scratch(data);
  });
}

TEST(Guards, FindWhatIsTouchedAroundTemporaries) {
  GuardCounts before = getGuardCounts();
  EXPECT_EQ(runWithTemporary([](char *data) { memset(data, 0, 8); }), "");
  EXPECT_EQ(getGuardCounts().temporaries, before.temporaries + 1);
  EXPECT_EQ(runWithTemporary([](char *data) { touch(data + 8); }),
            "touches byte 1 behind the end of temporary 0 of 8 bytes");
  EXPECT_EQ(runWithTemporary([](char *data) {
              data[0] = 0;
              touch(data - 2);
            }),
            "touches byte 2 in front of temporary 0 of 8 bytes");
  // In the first run there is room in front, which a store is found in.
  EXPECT_EQ(runWithTemporary([](char *data) { memset(data - 1, 0, 8); }),
            "writes byte 1 in front of temporary 0 of 8 bytes");
}

TEST(Guards, FindWhatComesOfATemporaryThatNobodyWrote) {
  EXPECT_EQ(runWithTemporary([](char *data) { memset(data + 1, 0, 7); }),
            "operand 1 gets other bytes where operands lie elsewhere");
}

TEST(Guards, FindTemporariesThatAreKept) {
  EXPECT_EQ(run([](void **) {
              cleave_give_scratch(cleave_take_scratch(1));
              (void)cleave_take_scratch(24);
            }),
            "keeps temporary 1 of 24 bytes");
  EXPECT_EQ(run([](void **arguments) { cleave_give_scratch(at(arguments, 0)); }),
            "gives back a temporary that it has not");
}

/// A result in place of an argument, and one that begins inside of another operand.
TEST(Guards, KeepOperandsThatOverlapTogether) {
  char bytes[16] = "0123456789abcde", number = 7;
  auto kernel = [](void **arguments) {
    at(arguments, 0)[0] = at(arguments, 1)[0];
    at(arguments, 2)[0] = *at(arguments, 3);
  };
  EXPECT_EQ(runBetweenGuards(kernel, {{bytes, 8, true, 1}, {bytes + 4, 8, false, 1}, {bytes, 8, true, 1}}, {&number}),
            "");
  EXPECT_EQ(bytes[0], 7);
  EXPECT_EQ(bytes[15], 0);
  auto behind = [](void **arguments) { touch(at(arguments, 0) + 12); };
  EXPECT_EQ(runBetweenGuards(behind, {{bytes, 8, true, 1}, {bytes + 4, 8, false, 1}}),
            "touches byte 1 behind the end of operand 0");
}

} // namespace
