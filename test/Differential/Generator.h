//===- Generator.h - random small programs to partition ---------*- C++ -*-===//
//
// One seed gives one module: a mesh of 1 to 3 axes, a function of a few random ops, and random legal annotations (closed,
// open, partial, with priorities and sub-axes) on arguments, inner values and results; now and then it is called by
// another function. Written as text, so that what
// failed can be read, kept and reduced.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_TEST_DIFFERENTIAL_GENERATOR_H
#define CLEAVE_TEST_DIFFERENTIAL_GENERATOR_H

#include <cstdint>
#include <string>

namespace cleave::test {

/// The module of `seed`, as MLIR text. Equal seeds give equal text on every machine. If `isUneven`, the mesh divides few of its
/// extents, and all annotations are for uneven shards.
std::string generateModule(uint64_t seed, bool isUneven = false);

/// Likewise a module with one function and without annotations, in floats of `elementType` and with extents that are odd.
std::string generateRegion(uint64_t seed, const std::string &elementType);

} // namespace cleave::test

#endif // CLEAVE_TEST_DIFFERENTIAL_GENERATOR_H
