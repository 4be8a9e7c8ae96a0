//===- Pipeline.h - what a plan says of pipelines ---------------*- C++ -*-===//
//
// The section `pipeline:` of a plan: which mesh axis is the pipeline, into how many microbatches a batch is split, where
// stages begin, and which schedule runs them. Read with the plan, which has a place for every error.
//
//   pipeline:
//     axis: stage
//     microbatches: 8
//     stages: [{nodes: "*/embeddings/*"}, {first: "*/layer.3/*"}]
//     schedule: 1f1b
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PLAN_PIPELINE_H
#define CLEAVE_PLAN_PIPELINE_H

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cleave::spmd {

/// Where something of a plan was written: a file, or the option's name (`--shard`). Lines and columns count from 1.
struct PlanPlace {
  std::string file;
  unsigned line = 0, column = 0;
};

/// A pattern of names, as written.
struct PlanPattern {
  std::string text;
  PlanPlace place;
};

/// One line of `stages`, in order.
struct PlanStage {
  enum class Kind {
    Nodes,  ///< all nodes that match are in it
    First,  ///< it starts at the first node that matches
    Module, ///< all nodes of modules that match are in it, and of modules in these
  };
  Kind kind = Kind::Nodes;
  PlanPattern pattern;
  /// The rank it is on, where the plan says so.
  std::optional<int64_t> rank;
};

/// Stages of a model that says of its nodes itself where they are: by the name of a node, and by the tensors that it makes, for
/// nodes need no names, and two may have one (-1 where these are in several stages).
struct StageNames {
  std::map<std::string, int64_t> nodes, tensors;
  /// Single ops, of which these say it otherwise or nothing: by what a node is called and what the op is, `linear nn.add`; the second of
  /// several is `linear nn.add#1`.
  std::map<std::string, int64_t> ops;

  bool isEmpty() const { return nodes.empty() && tensors.empty(); }
};

/// The keys of a stage by its kind.
inline constexpr const char *kStageWords[] = {"nodes", "first", "module"};

enum class PlanBalance { Throughput, Latency };
enum class PlanRecompute { Never, Always, ExceptLast, ByStage };

/// Which values of the forward are computed again behind the loss, instead of being kept until then.
enum class PlanPolicy { None, Cheap, Blocks, Auto };
inline constexpr const char *kRecomputeWords[] = {"none", "cheap", "blocks", "auto"};

struct PlanPipeline {
  /// Every microbatch sees all of the input.
  static constexpr int64_t kNoBatch = -1;

  std::string axis;
  PlanPlace place, axisPlace;
  /// One of both is there.
  std::optional<int64_t> microbatches, microbatchSize;
  /// Stages per rank; 1 where the plan does not say it (`countChunks`).
  int64_t chunks = 1;
  /// Input -> its batch dim, or `kNoBatch`; without an entry the dim whose name contains "batch", or dim 0.
  std::vector<std::pair<PlanPattern, int64_t>> batch;
  /// By hand; empty: where it is best.
  std::vector<PlanStage> stages;
  /// Where it is there, `stages` say ranks alone.
  StageNames said;
  /// Nodes that use a parameter of one pattern run on one rank.
  std::vector<PlanPattern> together;
  /// A name, `auto`, or a table's path; empty: what the model is for decides, `forward` or `circular` without gradients.
  std::string schedule, placement;
  /// Bytes per device; 0: no limit.
  int64_t memoryLimit = 0;
  PlanBalance balance = PlanBalance::Throughput;
  PlanRecompute recompute = PlanRecompute::Never;
  /// Of `ByStage`: a policy for each stage, none of them `Auto`.
  std::vector<PlanPolicy> recomputeOfStages;
  PlanPlace recomputePlace;
  /// A stage may be updated as soon as its gradients are there, while its rank still waits for other stages.
  bool updatesEarly = true;
  /// Values for later stages pass every rank between.
  bool relays = false;
  /// Microbatches may differ by one sample.
  bool uneven = false;

  /// The schedule is a table's path.
  bool hasScheduleFile() const;
  /// Stages per rank: `chunks`, or the two of a placement that comes back.
  int64_t countChunks() const { return chunks == 1 && (placement == "v" || placement == "wave") ? 2 : chunks; }
};

/// The stages of single ops as the text of a mapping, which `parseStageOps` reads.
std::string formatStageOps(const std::map<std::string, int64_t> &ops);

/// Bytes of `40GB`, `512MiB`, `1000`: units of 1000 and 1024. Nothing if the text is no such size.
std::optional<int64_t> parseBytes(const std::string &text);

} // namespace cleave::spmd

#endif // CLEAVE_PLAN_PIPELINE_H
