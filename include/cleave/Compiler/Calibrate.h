//===- Calibrate.h - what this machine takes --------------------*- C++ -*-===//
//
// Times of kernels and collectives on ranks that are threads of this process, measured with programs that Cleave compiles and with the
// communicator that these run on: what predictions are about. `fitCluster` (Sharding/FitCluster.h) makes a cluster of them.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_COMPILER_CALIBRATE_H
#define CLEAVE_COMPILER_CALIBRATE_H

#include "cleave/Sharding/FitCluster.h"
#include "llvm/Support/Error.h"

namespace cleave {

struct CalibrateOptions {
  /// How often each thing is measured, at least 1, all of them one after the other each time: the least counts.
  unsigned rounds = 9;
  /// That meet in collectives, at least 2.
  int ranks = 2;
  /// Of the largest operand of a collective; it and what it meets must fit into memory for each rank.
  int64_t mostBytes = int64_t(64) << 20;
};

/// Products of three sizes for each type; in f32 layers, attention and convolutions of two sizes as well; sums of 12 kB to 200 MB, chains of small kernels, and each kind of collective from 8 bytes on by
/// powers of 4. An error: the machine compiles or runs none of it.
llvm::Expected<spmd::MeasuredTimes> measureHost(const CalibrateOptions &options);

} // namespace cleave

#endif // CLEAVE_COMPILER_CALIBRATE_H
