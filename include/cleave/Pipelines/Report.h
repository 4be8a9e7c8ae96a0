//===- Report.h - what a partitioned program sends and stores ---*- C++ -*-===//
//
// Everything is counted from the partitioned file itself: what the report says is what the program does. The JSON form
// is fixed in docs/report.md.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PIPELINES_REPORT_H
#define CLEAVE_PIPELINES_REPORT_H

#include "cleave/Cost/Time.h"
#include "cleave/Sharding/Padding.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace mlir {
class ModuleOp;
namespace func {
class FuncOp;
} // namespace func
} // namespace mlir

namespace cleave::spmd {
struct Cluster;
} // namespace cleave::spmd

namespace cleave {

struct TensorReport {
  std::string name, type;
  std::vector<int64_t> shape, localShape;
  /// `[{data}, {}]`.
  std::string sharding;
  /// Of bytes that hold elements of 4 or 2 bits, where it is known: the type of these, and the shapes counted in them.
  std::string heldType = {};
  std::vector<int64_t> heldShape = {}, heldLocalShape = {};
};

/// What ranks send of one value: a command that sends several values has one for each.
struct CollectiveReport {
  std::string kind;
  std::vector<std::string> axes;
  int64_t groupSize = 1;
  std::string type;
  std::vector<int64_t> operandShape, resultShape;
  /// As often as it is done in a call: in a loop, for all iterations that it was counted for. Bytes and time are those of all.
  int64_t times = 1;
  int64_t wireBytes = 0;
  /// Ranks that one sends to, or gets from, at most, of what goes point to point; else 0.
  int64_t peers = 0;
  /// As predicted, where the cluster is known; values that go together share it by their bytes.
  double ns = 0;
  /// What is sent is a parameter, or made of parameters and constants alone.
  bool isOfWeights = false;
  /// Of a step: what is sent are gradients of parameters, on their way to an update.
  bool isOfGradients = false;
  std::string node, cause;
};

/// What one rank takes, as predicted.
struct TimeReport : cost::Time {
  std::string cluster;
  /// Of a pipeline, whose ranks wait for each other; nothing where they would for ever.
  std::optional<cost::RanksTime> ranks = std::nullopt;

  /// A call, from its first op to its last; of a rank that nobody waits for what it takes.
  double getCallNs() const { return ranks ? ranks->callNs : getNs(); }
  /// A call among others, each of which begins while the one before is still in later stages.
  double getSpanNs() const { return ranks ? ranks->spanNs : getNs(); }
};

/// What devices of the cluster have.
struct MemoryReport {
  int64_t deviceBytes = 0;
  /// What to tell where a rank takes more, with what would help; empty where it does not.
  std::string excess;
};

/// Of what a step makes again instead of keeping it, one choice.
struct RecomputeReport {
  /// Of a step, of what of it is made again, and what no choice that keeps as little could save of that; as predicted.
  double ns = 0, againNs = 0, leastNs = 0;
  /// Of a rank at its peak, and what of it is kept from the forward.
  int64_t bytes = 0, keptBytes = 0;
  bool isTaken = false;
};

/// What the bytes of a step are for, as `memory_by_role` of docs/report.md names it.
inline constexpr llvm::StringLiteral kMemoryRoleWords[] = {"parameters", "optimizer",     "gradients", "kept",
                                                           "working",    "communication", "batch"};

/// What of a step waits for the backward in the memory of the devices' hosts: of the rank of which most does.
struct OffloadReport {
  int64_t values = 0, bytes = 0;
  /// Values that a plan names and that stay, as there is no time to go and come back.
  int64_t stayed = 0;
  /// Of the rank's arena in the host's memory; 0 until memory is planned.
  int64_t hostBytes = 0;
  /// What kernels wait for copies, as predicted, where memory is planned.
  double exposedNs = 0;
  /// Of a rank at its peak, if nothing were copied, and as it is; where the program is for devices.
  std::optional<int64_t> peakBefore, peakAfter;
};

/// Which links axes have, where the plan left that to the machine.
struct DeviceAssignmentReport {
  std::vector<std::string> axes; ///< `model over nvlink`
  std::vector<int64_t> devices;  ///< of each rank
  int64_t tried = 0;
  double ns = 0, nextNs = 0; ///< of a rank, and as the next best would be
};

struct ReplicationReport {
  std::string op, node;
  std::vector<std::string> axes;
  std::string reason;
};

struct CollectiveTotal {
  int64_t count = 0, wireBytes = 0;
};

/// What values that come and go take of a rank's memory, once that is planned.
struct ArenaReport {
  int64_t bytes = 0;
  int64_t bound = 0; ///< needed at one time at the most: no plan takes less
};

/// What a program does for one set of shapes.
struct VariantReport {
  std::vector<std::pair<std::string, int64_t>> dims;
  int64_t commands = 0, liveBytes = 0;
};

/// A program file: of commands and bytes, those of the variant that has most.
struct ProgramReport {
  int64_t kernels = 0, commands = 0;
  ArenaReport arena;
  std::vector<VariantReport> variants;
  double compileSeconds = 0; ///< from the model to the file
  std::string precision;     ///< what floats lie in memory as: f32 (as the model says), bf16
};

/// A library of the devices that a program ran on: commands that it computed, and that kernels did in its stead.
struct LibraryReport {
  std::string name;
  int64_t calls = 0, fallbacks = 0;
  std::string reason; ///< why the first of the latter
  int64_t workspaceBytes = 0;
};

/// Collectives of these devices: those whose operands lie in a window of NCCL's, and those whose do not.
struct WindowReport {
  int64_t collectives = 0, without = 0;
  std::string reason; ///< why the first of the latter
};

/// Padding of uneven shards, by what holds it.
struct PaddingReport {
  spmd::Padding parameters, inputs, outputs, values;
};

/// Weights of a step of training, by their whole names.
struct TrainReport {
  int64_t trained = 0;
  std::vector<std::string> frozen; ///< floats that stay as they are
};

struct Report {
  std::string model;
  std::vector<std::pair<std::string, int64_t>> mesh;
  int64_t ranks = 1;
  int64_t parameterBytes = 0, parameterBytesPerRank = 0, peakBytesPerRank = 0;
  std::optional<ArenaReport> arena; ///< of a program whose memory is planned
  /// Of a step of training what the peak is for, in the words of docs/report.md, to which it adds up.
  std::vector<std::pair<std::string, int64_t>> memoryByRole;
  std::optional<TrainReport> train;
  double flops = 0, flopsPerRank = 0;
  PaddingReport padding;
  std::vector<TensorReport> inputs, outputs;
  std::vector<CollectiveReport> collectives;
  /// By kind.
  std::map<std::string, CollectiveTotal> totals;
  std::vector<ReplicationReport> replicated;
  /// Where the cluster is known.
  std::optional<TimeReport> time;
  /// Where the cluster says.
  std::optional<MemoryReport> memory;
  /// By time, each with less memory than the one before; where the plan leaves it to that.
  std::vector<RecomputeReport> recompute;
  std::optional<OffloadReport> offload;
  /// Where one was chosen; the caller fills it in.
  std::optional<DeviceAssignmentReport> placement;
  /// Where one was made; the caller fills it in.
  std::optional<ProgramReport> program;
  /// Stages, their times as modeled, and the schedule; in the words of docs/report.md.
  std::optional<llvm::json::Object> pipeline;
  /// Of devices; the caller fills them in.
  std::vector<LibraryReport> libraries;
  std::optional<WindowReport> windows;
  /// Seconds of each phase, in order; the caller fills them in.
  std::vector<std::pair<std::string, double>> seconds;

  /// Sum of the totals.
  int64_t getWireBytes() const;
};

/// Counts a partitioned function; predicts times where there is a cluster, on which its mesh fits.
/// Precondition: the module passes `spmd-verify-phase{phase=partitioned}`.
Report makeReport(mlir::func::FuncOp func, llvm::StringRef model, const spmd::Cluster *cluster = nullptr);

/// Counts the functions of the ranks of a pipeline. Precondition: there is one.
Report makePipelineReport(llvm::ArrayRef<mlir::func::FuncOp> ranks, llvm::StringRef model,
                          const spmd::Cluster *cluster = nullptr);

/// Nothing before memory is planned.
std::optional<ArenaReport> countArena(mlir::ModuleOp module);

/// Keys in the order of docs/report.md, the axes of the mesh major to minor.
void writeJson(llvm::raw_ostream &os, const Report &report);

/// A short table: collectives by kind and axes, bytes, memory, compute.
void printReport(llvm::raw_ostream &os, const Report &report);

/// `2.05 kB`; powers of 1000.
std::string formatBytes(int64_t bytes);
/// `12.3 us`.
std::string formatTime(double ns);

} // namespace cleave

#endif // CLEAVE_PIPELINES_REPORT_H
