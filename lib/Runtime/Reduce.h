//===- Reduce.h - terms combined in order -----------------------*- C++ -*-===//
#ifndef CLEAVE_LIB_RUNTIME_REDUCE_H
#define CLEAVE_LIB_RUNTIME_REDUCE_H

#include "cleave/Runtime/Operation.h"

namespace cleave::runtime {

/// `target[i] = sources[0][i] + sources[1][i] + ..` for `count` elements, combined from left to right: f16 and bf16 in
/// f32 and rounded once, integers modulo 2^bits; NaN wins a maximum and a minimum. `target` may be one of the sources.
/// Preconditions: at least one source; the reduction is legal.
void reduce(Reduction reduction, ElementType type, const std::vector<const char *> &sources, char *target,
            uint64_t count);

/// Rows of bytes: `row` of them, `stride` apart.
struct ByteRows {
  uint64_t row = 0, stride = 0;
};
/// The bytes of one part of a tiling.
ByteRows getRows(const Tiling &tiling, ElementType type);
/// Copies `total` bytes, row by row on both sides, which need not have rows of one length. The sides are apart, or the
/// same.
void copyRows(const char *source, ByteRows from, char *target, ByteRows to, uint64_t total);

} // namespace cleave::runtime

#endif // CLEAVE_LIB_RUNTIME_REDUCE_H
