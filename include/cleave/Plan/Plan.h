//===- Plan.h - what a user asks for ----------------------------*- C++ -*-===//
//
// A plan says on which mesh a model runs and how some of its tensors are split. It comes from a YAML file
//
//   mesh: {data: 2, model: 2}
//   shard:
//     - {tensor: input_ids, dims: [data, _]}
//     - {node: "*/query/MatMul", operand: 1, dims: [_, model]}
//
// and from the options `--mesh data=2,model=2` and `--shard 'input_ids=[data, _]'`. Everything here keeps the place it was read from, and
// every error has one. The format is fixed in docs/plan-file.md. No IR.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PLAN_PLAN_H
#define CLEAVE_PLAN_PLAN_H

#include "cleave/Plan/Expect.h"
#include "cleave/Plan/Pipeline.h"
#include "cleave/Plan/Rule.h"
#include "cleave/Plan/Style.h"
#include "cleave/Plan/Train.h"
#include "cleave/Sharding/AttentionMethod.h"
#include "cleave/Sharding/Cluster.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/LogicalResult.h"
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace cleave::spmd {

/// One entry of `state`: inputs that the next call finds as an output has left them. A `*` stands for any text, the same
/// on both sides.
struct PlanState {
  PlanPattern input, output;
};

struct MeshAxis {
  std::string name;
  int64_t size = 1;
  PlanPlace place;
};

/// An axis that splits a dim: its text, and how many ranks are along it.
using SplitAxis = std::pair<std::string, int64_t>;

struct Plan {
  /// Major to minor; empty if the plan names no mesh.
  std::vector<MeshAxis> mesh;
  /// Device of each rank; empty: rank r is device r.
  std::vector<int64_t> devices;
  /// `devices: auto`: whoever runs the plan lays the ranks on the cluster as takes least time.
  bool areDevicesAuto = false;
  PlanPlace devicesPlace, likePlace;
  /// Values of symbolic dimensions, and where they were written.
  std::map<std::string, int64_t> dims;
  std::map<std::string, PlanPlace> dimPlaces;
  std::vector<PlanRule> rules;
  /// Styles whose rules are added to these by the structure of the model: one for all axes, or one for each.
  std::vector<Style> like;
  /// All rules are uneven, and so is what free axes split.
  bool uneven = false;
  std::vector<PlanState> states;
  std::vector<PlanBound> bounds;
  /// Axes that may split whatever they can where no rule says otherwise: what takes least time. All of the mesh, or those listed.
  bool areAllFree = false;
  std::vector<PlanAxis> free;
  /// Decided by time: `free` is there, and may be empty.
  bool isByTime = false;
  /// How attention reaches keys of other ranks where its queries are split.
  AttentionMethod attention = AttentionMethod::Auto;
  std::optional<PlanPipeline> pipeline;
  /// How the model is trained, where it is asked for (`--train`).
  std::optional<PlanTrain> train;
  /// What the program is for; nothing: any machine (the default cluster where one is needed).
  std::optional<Cluster> cluster;
  PlanPlace clusterPlace;
  std::string clusterFile; ///< that the plan names, or a name that is known; empty: neither

  const MeshAxis *findAxis(llvm::StringRef name) const;
  /// Axes that values are split along: all but that of the pipeline.
  std::vector<MeshAxis> getInnerAxes() const;
  bool hasFree() const { return areAllFree || !free.empty(); }
  /// Whether the axis is free; that of the pipeline never is.
  bool isFree(llvm::StringRef axis) const;
  /// Number of ranks along an axis or sub-axis; 1 for an unknown one.
  int64_t getExtent(const PlanAxis &axis) const;
  /// The axes that split a dim.
  llvm::SmallVector<SplitAxis> getSplits(const PlanDim &dim) const;
};

/// Reads the text of a plan file. On failure `error` says why and where; the plan is then unspecified. See `checkPlan` for axes.
llvm::LogicalResult parsePlan(llvm::StringRef text, llvm::StringRef file, Plan &plan, PlanError &error);

/// A file that cannot be read is an error at line 0.
llvm::LogicalResult readPlanFile(llvm::StringRef path, Plan &plan, PlanError &error);
/// Where a plan comes from: a file, and what options add to it. Each may be empty.
struct PlanSource {
  std::string file, mesh;         ///< the mesh as typed: replaces the file's
  std::vector<std::string> shard; ///< rules as typed, behind the file's
  std::vector<std::string> state; ///< states as typed, behind the file's
  bool free = false;              ///< all axes are
  bool uneven = false;            ///< all rules are, and free axes
  std::string cluster = {};       ///< a name or a file: replaces the file's
  std::string train = {};         ///< a section `train`: replaces the file's
  bool fillsTrain = false;        ///< what such a section lacks is filled in (`PlanTrain::isPartial`)

  bool isEmpty() const {
    return file.empty() && mesh.empty() && shard.empty() && state.empty() && cluster.empty() && train.empty() &&
           !free && !uneven;
  }
};

/// Reads a whole plan, and checks it where it names a mesh; without one see `checkPlan`.
llvm::LogicalResult readPlan(const PlanSource &source, Plan &plan, PlanError &error);

/// `{"linear nn.add": 1}`: the stages, of `stages` many, of single ops. Fails where that is no such mapping.
llvm::LogicalResult parseStageOps(llvm::StringRef text, llvm::StringRef file, int64_t stages,
                                  std::map<std::string, int64_t> &ops, PlanError &error);

/// `data=2,model=4`: replaces the mesh of `plan`. An empty text leaves it alone.
llvm::LogicalResult parseMeshOption(llvm::StringRef text, Plan &plan, PlanError &error);

/// `PATTERN=[data, _]`: appends one rule. `node:PATTERN#1` is operand 1 of nodes, `#r0` result 0, `module:PATTERN` the weight of modules.
llvm::LogicalResult parseShardOption(llvm::StringRef text, Plan &plan, PlanError &error);

/// `past.*=present.*`: appends one state.
llvm::LogicalResult parseStateOption(llvm::StringRef text, Plan &plan, PlanError &error);

/// The two patterns of a state, by themselves.
llvm::Error checkState(const PlanState &state);

/// Which input, by number, is the next call's value of which output.
struct StatePair {
  size_t input, output;
  const PlanState *state;
};

/// Looks up the states of a plan. Fails where a pattern finds nothing, a tensor has no partner, or has two.
llvm::LogicalResult pairStates(const Plan &plan, llvm::ArrayRef<llvm::StringRef> inputs,
                               llvm::ArrayRef<llvm::StringRef> outputs, std::vector<StatePair> &pairs,
                               PlanError &error);

/// Checks what a plan says by itself, once all its parts are read: a legal mesh, known axes, sub-axes that divide, no
/// axis twice in one tensor, devices that are a permutation.
llvm::LogicalResult checkPlan(const Plan &plan, PlanError &error);

/// Elements of a dim that no split takes apart: those that share a byte, and those that share a scale.
struct Granule {
  int64_t perByte = 1, block = 1;
};

/// ` has size 6 in dim 1, which axis "model"=4 does not divide`; empty if all of `axes` together divide `extent`, into
/// shards of whole granules.
std::string describeUndivided(unsigned dim, int64_t extent, llvm::ArrayRef<SplitAxis> axes, Granule granule = {});

/// What `rule` asks of a tensor of this shape, as a rule that does not depend on it. What was taken back, because axes
/// do not divide a dim, is in `left`. Fails like `checkRule`.
llvm::LogicalResult fitRule(const Plan &plan, const PlanRule &rule, const llvm::Twine &what,
                            llvm::ArrayRef<int64_t> shape, PlanRule &fitted, std::vector<PlanNote> &left,
                            PlanError &error, llvm::ArrayRef<Granule> granules = {});

/// Axes of the mesh that a user may have forgotten: those that no rule uses, or all where there is no rule.
std::vector<PlanNote> findIdle(const Plan &plan);

/// Checks a rule against a tensor that it picks: as many entries as dims, shards that divide. `what` names the tensor
/// in the error, `granules`, where given, has one for each of its dims. Precondition: the plan has been checked.
llvm::LogicalResult checkRule(const Plan &plan, const PlanRule &rule, const llvm::Twine &what,
                              llvm::ArrayRef<int64_t> shape, PlanError &error, llvm::ArrayRef<Granule> granules = {});

} // namespace cleave::spmd

#endif // CLEAVE_PLAN_PLAN_H
