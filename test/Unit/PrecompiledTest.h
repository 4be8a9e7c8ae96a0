//===- PrecompiledTest.h - GoogleTest -------------------------------------===//
//
// Precompiled once for the tests that see no MLIR; nothing includes it by hand.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_TEST_UNIT_PRECOMPILEDTEST_H
#define CLEAVE_TEST_UNIT_PRECOMPILEDTEST_H

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#endif // CLEAVE_TEST_UNIT_PRECOMPILEDTEST_H
