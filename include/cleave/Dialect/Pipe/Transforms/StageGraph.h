//===- StageGraph.h - a function as a problem of stages ---------*- C++ -*-===//
//
// What `splitStages` decides on, out of a function: ops with modelled times, values with bytes, parameters. Times are
// max(flops / rate, bytes / rate), and a launch where there are flops; of a collective, its busiest rank's bytes on a link.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_PIPE_TRANSFORMS_STAGEGRAPH_H
#define CLEAVE_DIALECT_PIPE_TRANSFORMS_STAGEGRAPH_H

#include "cleave/Schedule/StageSplit.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace cleave::pipe {

/// What a device does in a nanosecond. The defaults are 70 % of what an H100 SXM is specified for: 67 Tflop/s in f32,
/// 3.35 TB/s of memory (NVIDIA H100 data sheet, 2023), 450 GB/s of NVLink each way.
struct DeviceRates {
  double flopsPerNs = 47000, bytesPerNs = 2300, launchNs = 2000;
  double linkBytesPerNs = 300, linkNs = 5000;
  /// Parts of a batch. Flops and values are those of one part, as if all of them were cut; parameters are whole.
  int64_t microbatches = 1;
};

/// The ops that have a stage, in program order, and what is to be known of them.
struct StageGraph {
  std::vector<mlir::Operation *> ops;
  schedule::SplitProblem problem;
};

/// All ops of `func` but parameters, constants and the return, which belong to every stage. A value that is cheaper to
/// compute again, from arguments and constants alone, than to send has no bytes.
/// Precondition: static shapes.
StageGraph makeStageGraph(mlir::func::FuncOp func, const DeviceRates &rates);

} // namespace cleave::pipe

#endif // CLEAVE_DIALECT_PIPE_TRANSFORMS_STAGEGRAPH_H
