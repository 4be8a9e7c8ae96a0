//===- StageGraph.h - a function as a problem of stages ---------*- C++ -*-===//
//
// What `splitStages` decides on, out of a function: ops with modeled times, values with bytes, parameters. Times are
// max(flops / rate, bytes / rate), and a launch where there are flops; of a collective, its busiest rank's bytes on a link.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_PIPE_STAGES_STAGEGRAPH_H
#define CLEAVE_DIALECT_PIPE_STAGES_STAGEGRAPH_H

#include "cleave/Plan/Plan.h"
#include "cleave/Schedule/Place.h"
#include "cleave/Schedule/StageSplit.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"

namespace cleave::pipe {

/// What times are made of.
struct DeviceRates {
  /// Devices of which are alike; where those of ranks of the pipeline are not, what these do of what a device does in a time, and the bytes
  /// that they have (0: nobody said), stand here by rank.
  spmd::Cluster cluster;
  std::vector<double> speeds;
  std::vector<int64_t> memoryBytes;
  /// Between ranks of the pipeline.
  spmd::ClusterLink link = cluster.levels.front().link;
  /// Parts of a batch. Flops and values are those of one part, as if all of them were split; parameters are invariant.
  int64_t microbatches = 1;

  /// On the plan's cluster, or else the default; the pipeline's axis may be nobody's yet.
  static DeviceRates get(const spmd::Plan *plan);
  /// What a message takes beside its bytes.
  double getMessageNs() const { return cluster.beginNs + link.latencyNs; }
  double getMessageNs(int64_t bytes) const { return getMessageNs() + static_cast<double>(bytes) / link.bytesPerNs; }
};

/// The ops that have a stage, in program order, and what is to be known of them.
struct StageGraph {
  std::vector<mlir::Operation *> ops;
  schedule::SplitProblem problem;
  /// As in `problem.parameterBytes`; symbols.
  std::vector<std::string> parameterNames;
  /// Nodes of the model, in its order, where that is known.
  std::vector<std::string> nodes;
  /// Op -> `cluster` of `problem`, but for ops of one attention, products and softmax, which are in one, too: they become one kernel, and a
  /// boundary between them would send and store scores. Empty where there is no attention.
  std::vector<int32_t> attentionClusters;
  /// Of a step: the ops of the backward, with their times, which those of the ops that they are gradients of include.
  llvm::MapVector<mlir::Operation *, int64_t> backwardNs;
};

/// All ops of `func` but parameters, constants and the return, which belong to every stage. A value that is cheaper to
/// compute again, from arguments and constants alone, than to send has no bytes. Of a step the ops of the forward, with the time of their
/// gradients too: these are in the same stage.
/// Precondition: static shapes.
StageGraph makeStageGraph(mlir::func::FuncOp func, const DeviceRates &rates);

/// Of a step: the unit (StageUnits.h) of each op of the backward, where those of the forward have the stages `stageOf`, one per op of `graph`.
llvm::MapVector<mlir::Operation *, int64_t> findUnits(const StageGraph &graph, llvm::ArrayRef<int32_t> stageOf,
                                                      int64_t numStages);

/// What an op takes, for one of `rates.microbatches` parts of the batch, as in the graph.
double getOpNs(mlir::Operation &op, const DeviceRates &rates);

/// What is wrong with stages by hand, and where.
struct StageFault {
  /// Through whose body they would go, which is whole in one stage; null where something else is wrong.
  mlir::Operation *loop = nullptr;
  /// Of the line that says so; nowhere where the model says it itself.
  spmd::PlanPlace place;
};

/// Splits where it is best, through no attention unless the slowest stage gains 5 % by it; or by hand, if there are lines, a stage for each: ops of the nodes that a line names, and from
/// the first op of a node on. An op that no line names is where the last of its producers is, or behind the last start. Collectives
/// are no node's: they are where their operands are, or, if they make more of these or need no stage's, where they are needed first. Names
/// that a model gives go before lines; an op whose nodes have several stages is in the first that none of its operands is behind.
/// Error: those of `splitStages` and `describeStages`; a line that no node has; a node in the body of a loop that is to be, or
/// to start, another stage than the loop's: `fault` says where.
/// Precondition: as many lines as stages, or none.
llvm::Expected<schedule::StageSplit> findStageSplit(const StageGraph &graph, llvm::ArrayRef<spmd::PlanStage> lines,
                                                    const schedule::SplitOptions &options,
                                                    const spmd::StageNames &said = {}, StageFault *fault = nullptr);

/// The ops of which `said` has to say it by themselves, with their stages, for `findStageSplit` to put all where `wanted` has them.
/// Precondition: it says nothing of single ops; one stage per op of the graph.
std::map<std::string, int64_t> findOthers(const StageGraph &graph, const spmd::StageNames &said,
                                          llvm::ArrayRef<int32_t> wanted);

/// The single ops of which `said` says something that are none of the graph's.
std::vector<std::string> findUnknown(const StageGraph &graph, const spmd::StageNames &said);

/// Where a plan wants stages.
schedule::PlacementRequest getPlacementRequest(const spmd::PlanPipeline &pipeline);

/// The schedule by which a model runs: the one that its plan names, or without a name, or with `auto`, what needs no gradients; of a step that
/// trains one that has them.
llvm::StringRef getRunSchedule(llvm::StringRef name, schedule::Shape shape, const schedule::PlacementRequest &request,
                               bool trains = false);

/// Ops that use a parameter whose name `pattern` matches. Error: there are none.
llvm::Expected<std::vector<uint32_t>> findUsers(const StageGraph &graph, const spmd::PlanPattern &pattern);

} // namespace cleave::pipe

#endif // CLEAVE_DIALECT_PIPE_STAGES_STAGEGRAPH_H
