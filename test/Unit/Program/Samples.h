//===- Samples.h - small programs with every feature ------------*- C++ -*-===//
//
// What the tests of the program file check, break and print. They are made by hand: every number can be followed.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_UNIT_PROGRAM_SAMPLES_H
#define CLEAVE_UNIT_PROGRAM_SAMPLES_H

#include "cleave/Program/Program.h"
#include <utility>

namespace cleave::program {

/// One rank: y = gelu(x) on an x86-64 host, in place where it can be.
Program makeSingle();
/// Four ranks, data=2, model=2: a matrix multiplication cut along its sum, an all_reduce on a stream of its own beside
/// another kernel, weights from a file and embedded ones, whose slices depend on the rank.
Program makeTensorParallel();
/// Two stages of two ranks, two microbatches, pieces from stage to stage.
Program makePipeline();
/// One CUDA device with objects for two architectures: convolution, attention, a cache that stays, two variants.
Program makeCuda();
/// Two ranks with every kind of collective, and an output in terms.
Program makeCollectives();

/// One rank: a step again and again, while a flag says so, and at most 8 times.
Program makeLoop();

/// All of them, by name.
std::vector<std::pair<const char *, Program>> makeSamples();

} // namespace cleave::program

#endif // CLEAVE_UNIT_PROGRAM_SAMPLES_H
