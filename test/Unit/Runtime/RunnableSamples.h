//===- RunnableSamples.h - programs that run, with their files --*- C++ -*-===//
//
// What the tests of the executor open in this process and those of `cleave-run` as files. What each gives is said by its
// maker, as a formula that a test can compute without it.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_TEST_UNIT_RUNTIME_RUNNABLESAMPLES_H
#define CLEAVE_TEST_UNIT_RUNTIME_RUNNABLESAMPLES_H

#include "Programs.h"

namespace cleave::runtime::test {

/// One rank: y = 2 (2 x + 1) + 2, of f32[4, 8]; nodes /a, /b, /c.
Builder makeChain();

/// Four ranks, data=2, model=2: y = x w + 3 and z = 2 x + 5, of x f32[8, 16] and w f32[16, 32]. The rows of w are cut over
/// `model` and lie in panels; the sums of x w meet on a stream of their own while z is computed. w is 2,048 bytes at 64 of
/// the file `weights.bin`.
Builder makeTensorParallel();
/// The bytes of `weights.bin`, and w in them.
std::string makeWeightsFile();
std::vector<float> makeW();

/// Two ranks, each with half of the columns: total = total + x, of f32[2, 8]; `total` is the state of `past`.
Builder makeAccumulator();

/// One rank: y = 2 x + 7, of f32[64, 1024].
Builder makeLarge();

/// One rank, which sleeps for 20 s.
Builder makeNap();

/// One rank, variants of one and of two rows: y = 2 x + rows, of f32[rows, 8].
Builder makeVariants();

/// A step of training, w += x, whose loss is the new w, and an entry `eval` whose loss is w as it is. A batch is one number.
Builder makeEntries();

/// Two ranks: rank 1 does at its command 0, of node /bad, what `entry` does with `what`, and rank 0 with -1; then all_reduce.
Builder makeFault(const char *entry, int64_t what);

/// Two stages of two ranks, two microbatches: y = 2 (2 x + 1) + 2 of f32[4, 8], columns and rows cut and put together on the
/// way.
Builder makeStages();

/// All of them by name, as files.
std::vector<std::pair<std::string, std::string>> makeRunnableFiles();

} // namespace cleave::runtime::test

#endif // CLEAVE_TEST_UNIT_RUNTIME_RUNNABLESAMPLES_H
