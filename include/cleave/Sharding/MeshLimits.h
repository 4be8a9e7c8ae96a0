//===- MeshLimits.h - how large a mesh may be -------------------*- C++ -*-===//
#ifndef CLEAVE_SHARDING_MESHLIMITS_H
#define CLEAVE_SHARDING_MESHLIMITS_H

#include <cstdint>

namespace cleave::spmd {

/// Ranks are listed, group by group: some seconds for as many, minutes for the next power of 2 that somebody may type. No machine has
/// more devices.
constexpr int64_t kMostRanks = 1 << 22;
constexpr char kTooManyRanks[] = "mesh has more than 2^22 ranks";
/// Axes of size 1 cost as much as others.
constexpr unsigned kMostAxes = 64;

} // namespace cleave::spmd

#endif // CLEAVE_SHARDING_MESHLIMITS_H
