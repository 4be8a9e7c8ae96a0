//===- FitCluster.h - a machine's figures from measured times ---*- C++ -*-===//
//
// `cleave bench --calibrate` measures kernels and collectives; this makes of their times the figures of a cluster: those
// by which the formulas of predictions (CostModel.h, Cluster.h) are off least. Each time is a sum of known terms,
//
//   product        flops / rate                    collective     begin + messages * latency + bytes / bandwidth
//   copy           bytes / bandwidth               message        latency + bytes / bandwidth, and begin
//
// whose factors are fitted so that the sum of |predicted / measured - 1| is least: a time that was disturbed by another job
// moves nothing, and times of all sizes count alike.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SHARDING_FITCLUSTER_H
#define CLEAVE_SHARDING_FITCLUSTER_H

#include "cleave/Program/Collective.h"
#include "cleave/Sharding/Cluster.h"

namespace cleave::spmd {

/// Something that took so long, and what it is made of.
struct Sample {
  std::vector<double> terms;
  double ns = 0;
};

/// One factor for each term, none negative, such that the sum of |sum of factor * term / ns - 1| over all samples is the least
/// there is; of equally good ones the first. Exact: some best answer meets as many samples as it has factors that are not 0, so all
/// such sets are tried. Preconditions: all have equally many terms, three at most, none negative; times are above 0.
std::vector<double> fitLeastDeviation(llvm::ArrayRef<Sample> samples);

/// A kernel that was timed by itself, without its launch.
struct KernelTime {
  std::string type; ///< of its elements
  double flops = 0, bytes = 0, ns = 0;
};

/// A collective of `ranks` ranks of which the busiest sends `bytes`; point to point to so many peers.
struct CollectiveTime {
  std::string kind; ///< `all_reduce`, `exchange`
  int64_t ranks = 2, bytes = 0, peers = 1;
  double ns = 0;
};

/// All that was measured.
struct MeasuredTimes {
  std::vector<KernelTime> products; ///< of which the flops take longest
  std::vector<KernelTime> copies;   ///< of which memory does: a few flops for each element, of several sizes
  double launchNs = 0;
  std::vector<CollectiveTime> collectives;
};

/// How far a fit is off what was measured.
struct Deviation {
  std::string what;          ///< `f32 products`
  std::vector<double> all;   ///< predicted / measured - 1, in the order of the samples
  std::vector<double> ns;    ///< what was measured
  std::vector<double> sizes; ///< flops or bytes
  bool isPart = false;       ///< of another fit: it shows where that one is off

  /// The mean of their absolute values.
  double getMean() const;
};

struct FittedCluster {
  /// Any number of devices, one link between any two.
  Cluster cluster;
  std::vector<Deviation> deviations;
};

/// Collectives that send more are measured and told, and not fitted: a machine whose ranks share memory copies them at another rate, and the
/// formulas have one.
inline constexpr int64_t kLargestFitted = int64_t(1) << 20;

/// Of a fit that is off by more in the mean nothing should be predicted.
inline constexpr double kLargestDeviation = 0.25;

/// Rates by type from products. From copies the rates in and out of the cache, and how large that is: as large as the largest copy
/// for which one rate each on both sides is off least. Precondition: there are products of f32, two copies of different sizes, and
/// collectives of at most `kLargestFitted` bytes.
FittedCluster fitCluster(const MeasuredTimes &times);

} // namespace cleave::spmd

#endif // CLEAVE_SHARDING_FITCLUSTER_H
