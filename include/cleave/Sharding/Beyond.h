//===- Beyond.h - what lies beyond the ends of a dim ------------*- C++ -*-===//
//
// Rules say it (ShardingRule.h), and moves of edges follow it (WindowMoves.h).
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SHARDING_BEYOND_H
#define CLEAVE_SHARDING_BEYOND_H

#include <cstdint>

namespace cleave::spmd {

/// What lies beyond the ends of a dim: something that no rank has, its nearest position, the dim once more, or the dim in a
/// mirror that stands on the last position.
enum class Beyond : uint8_t { Fill, Nearest, Wrap, Reflect };

} // namespace cleave::spmd

#endif // CLEAVE_SHARDING_BEYOND_H
