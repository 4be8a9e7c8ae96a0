//===- DeviceStages.cpp - pipeline stages of a model's nodes --------------===//
//
// ONNX gives a node the number of its stage and says no more: which devices a stage has follows from where its tensors lie.
//
//   stage    0    1    2    3
//   devices  0 1  2 3  0 1  2 3      two ranks of the pipeline, 0 and 1, with two devices and two stages each
//
// Nodes may be annotated in part (constants and what computes shapes often are not): one without a stage is where the last of
// what it takes is.
//
//===----------------------------------------------------------------------===//
#include "DeviceStages.h"
#include "cleave/Onnx/NodeOrder.h"

#include "cleave/Annotations/DevicePlan.h"
#include "cleave/Annotations/Properties.h"
#include "cleave/Support/Status.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace llvm;
using namespace cleave;
using namespace cleave::onnx;

const NodeDeviceConfigurationProto *cleave::onnx::findTold(const NodeProto &node, StringRef configuration) {
  for (const NodeDeviceConfigurationProto &told : node.deviceConfigurations)
    if (told.configurationId == configuration)
      return &told;
  return nullptr;
}

namespace {
class StageReader {
public:
  StageReader(const GraphProto &graph, StringRef configuration, ArrayRef<int64_t> rankOf, DeviceStages &stages,
              StageProblem &problem)
      : graph(graph), configuration(configuration), rankOf(rankOf), numDevices(rankOf.size()), stages(stages),
        problem(problem) {}

  bool readNumbers();
  bool checkEdges();
  bool findDevices();

private:
  bool fail(const NodeProto *node, const Twine &message) {
    problem = {node, message.str()};
    return false;
  }
  void takeDevices(const ShardingSpecProto &spec, std::vector<int64_t> &own) const;
  bool takeDefault();
  bool checkShares();

  const GraphProto &graph;
  StringRef configuration;
  ArrayRef<int64_t> rankOf;
  int64_t numDevices;
  DeviceStages &stages;
  StageProblem &problem;
  /// Per stage, ascending; empty where no tensor says it.
  std::vector<std::vector<int64_t>> held;
};
} // namespace

/// A number may be anything, so it is bounded before a list is made of it: no model has more stages than nodes.
bool StageReader::readNumbers() {
  int64_t most = static_cast<int64_t>(graph.node.size());
  std::vector<bool> isThere;
  for (const NodeProto &node : graph.node) {
    const NodeDeviceConfigurationProto *told = findTold(node, configuration);
    int64_t stage = told ? told->pipelineStage.value_or(-1) : -1;
    stages.ofNode.push_back(stage);
    if (!told || !told->pipelineStage)
      continue;
    if (stage < 0 || stage >= most)
      return fail(&node, "pipeline stage " + Twine(stage) + ", expected 0 to " + Twine(most - 1) +
                             ", one less than there are nodes");
    isThere.resize(std::max<size_t>(isThere.size(), stage + 1));
    isThere[stage] = true;
  }
  if (auto gap = find(isThere, false); gap != isThere.end())
    return fail(nullptr, "no node is in pipeline stage " + Twine(gap - isThere.begin()) + ", and stages go up to " +
                             Twine(isThere.size() - 1));
  stages.count = std::max<int64_t>(1, static_cast<int64_t>(isThere.size()));
  return true;
}

/// One walk for all edges, each node behind what it takes: `visit` gets a node's number, an input, and the stage that makes it.
template <typename VisitFn>
static bool walkEdges(const GraphProto &graph, std::vector<int64_t> &ofNode, VisitFn visit) {
  StringMap<int64_t> madeIn;
  for (unsigned number : NodeOrder(graph.node, [](StringRef) { return false; }).sort()) {
    const NodeProto &node = graph.node[number];
    for (StringRef input : node.input)
      if (auto made = madeIn.find(input); !input.empty() && made != madeIn.end() && !visit(number, input, made->second))
        return false;
    for (StringRef output : node.output)
      madeIn[output] = ofNode[number];
  }
  return true;
}

/// Gives a node that says no stage that of the last of what it takes.
static void followInputs(const GraphProto &graph, std::vector<int64_t> &ofNode) {
  std::vector<bool> isTold;
  for (int64_t stage : ofNode)
    isTold.push_back(stage >= 0);
  walkEdges(graph, ofNode, [&](size_t number, StringRef, int64_t made) {
    if (!isTold[number])
      ofNode[number] = std::max(ofNode[number], made);
    return true;
  });
}

/// A value from nowhere is an error of the import.
bool StageReader::checkEdges() {
  followInputs(graph, stages.ofNode);
  return walkEdges(graph, stages.ofNode, [&](size_t number, StringRef input, int64_t made) {
    int64_t stage = stages.ofNode[number];
    return made <= stage ||
           fail(&graph.node[number], "it is in pipeline stage " + Twine(stage) + " and takes " + quote(input) +
                                         " of stage " + Twine(made) + ", which is later");
  });
}

/// All devices that hold a shard of a tensor, in order; those that are none are told of where shards are placed.
void StageReader::takeDevices(const ShardingSpecProto &spec, std::vector<int64_t> &own) const {
  llvm::DenseMap<int64_t, ArrayRef<int64_t>> groups;
  for (const DeviceGroup &group : spec.indexToDeviceGroupMap)
    groups.try_emplace(group.key, group.value);
  for (const int64_t &key : spec.device) {
    auto group = groups.find(key);
    for (int64_t device : group == groups.end() ? ArrayRef(key) : group->second)
      if (device >= 0 && device < numDevices)
        own.push_back(rankOf[device]);
  }
  sort(own);
  own.erase(std::unique(own.begin(), own.end()), own.end());
}

/// One stage behind the other, for stages of which nothing is said.
bool StageReader::takeDefault() {
  if (numDevices % stages.count != 0)
    return fail(nullptr, Twine(stages.count) + " pipeline stages have " + Twine(numDevices) +
                             " devices, which they do not divide");
  int64_t here = numDevices / stages.count;
  for (auto [stage, own] : enumerate(held)) {
    auto all = to_vector(seq<int64_t>(stage * here, (stage + 1) * here));
    if (!own.empty() && ArrayRef(own) != ArrayRef(all))
      return fail(nullptr, "no tensor says which devices some pipeline stages have, and stage " + Twine(stage) +
                               " has others than " + Twine(stage * here) + " to " + Twine((stage + 1) * here - 1));
    own.assign(all.begin(), all.end());
  }
  return true;
}

/// Stages of one rank share all of its devices, and others share none with them.
bool StageReader::checkShares() {
  std::map<int64_t, size_t> firstOf; // device -> a stage that has it
  for (auto [stage, own] : enumerate(held)) {
    if (own.size() != held.front().size())
      return fail(nullptr, "pipeline stage " + Twine(stage) + " has " + Twine(own.size()) +
                               " devices, and stage 0 has " + Twine(held.front().size()));
    for (int64_t device : own) {
      auto [first, isNew] = firstOf.try_emplace(device, stage);
      if (!isNew && held[first->second] != own)
        return fail(nullptr, "device " + Twine(device) + " is one of pipeline stages " + Twine(first->second) +
                                 " and " + Twine(stage) + ", whose devices are not the same");
    }
  }
  if (static_cast<int64_t>(firstOf.size()) != numDevices)
    return fail(nullptr, "pipeline stages have " + Twine(firstOf.size()) + " of " + Twine(numDevices) +
                             " devices, which is not supported");
  return true;
}

bool StageReader::findDevices() {
  held.resize(stages.count);
  for (auto [node, stage] : zip_equal(graph.node, stages.ofNode))
    if (const NodeDeviceConfigurationProto *told = findTold(node, configuration); told && told->pipelineStage)
      for (const ShardingSpecProto &spec : told->shardingSpec)
        if (held[stage].empty())
          takeDevices(spec, held[stage]);
  if (any_of(held, [](const auto &own) { return own.empty(); }) && !takeDefault())
    return false;
  if (!checkShares())
    return false;
  stages.devices = held;
  sort(stages.devices);
  stages.devices.erase(std::unique(stages.devices.begin(), stages.devices.end()), stages.devices.end());
  for (const std::vector<int64_t> &own : held)
    stages.rankOf.push_back(lower_bound(stages.devices, own) - stages.devices.begin());
  return true;
}

bool cleave::onnx::readStages(const GraphProto &graph, StringRef configuration, ArrayRef<int64_t> rankOf,
                              DeviceStages &stages, StageProblem &problem) {
  StageReader reader(graph, configuration, rankOf, stages, problem);
  if (!reader.readNumbers())
    return false;
  return !stages.isSplit() || (reader.checkEdges() && reader.findDevices());
}

/// Two nodes of one name are told apart by what they make.
spmd::StageNames cleave::onnx::nameStages(const GraphProto &graph, std::vector<int64_t> ofNode) {
  followInputs(graph, ofNode);
  spmd::StageNames names;
  for (auto [node, stage] : zip_equal(graph.node, ofNode)) {
    if (stage < 0)
      continue;
    auto [known, isNew] = names.nodes.try_emplace(node.name.str(), stage);
    if (!isNew && known->second != stage)
      known->second = -1;
    for (StringRef output : node.output)
      if (!output.empty())
        names.tensors[output.str()] = stage;
  }
  names.nodes.erase("");
  return names;
}

/// What `cleave.pipeline` says. A file of a schedule is no part of a model, and who reads it may have another of that name, or none.
static bool readPipeline(StringRef text, StringRef file, spmd::PlanPipeline &pipeline, StageProblem &problem) {
  auto fail = [&](const Twine &message) {
    problem.message = ("property '" + kPipelineProperty + "'" + message).str();
    return false;
  };
  spmd::Plan named;
  spmd::PlanError error;
  if (failed(parsePlan(("pipeline: " + text).str(), file, named, error)) || !named.pipeline)
    return fail(": " + error.message);
  if (!named.pipeline->stages.empty())
    return fail(" names stages, which are those of nodes");
  if (named.pipeline->hasScheduleFile())
    return fail(" names a file, " + quote(named.pipeline->schedule) + ", where a schedule's name is expected");
  pipeline = *named.pipeline;
  return true;
}

bool cleave::onnx::makePipeline(const ModelProto &model, const DeviceStages &stages, const spmd::PlanPlace &place,
                                spmd::PlanPipeline &pipeline, StageProblem &problem) {
  pipeline.axis = "stage";
  pipeline.microbatches = 1;
  std::map<std::string, int64_t> ops;
  for (const StringStringEntryProto &property : model.metadataProps) {
    if (property.key == kPipelineProperty && !readPipeline(property.value, place.file, pipeline, problem))
      return false;
    spmd::PlanError error;
    if (property.key == kStagesProperty &&
        failed(parseStageOps(property.value, place.file, stages.count, ops, error))) {
      problem.message = ("property '" + kStagesProperty + "': " + error.message).str();
      return false;
    }
  }
  pipeline.place = pipeline.axisPlace = place;
  pipeline.said = nameStages(model.graph, stages.ofNode);
  pipeline.said.ops = std::move(ops);
  bool isInOrder = stages.count == static_cast<int64_t>(stages.devices.size()) && is_sorted(stages.rankOf);
  for (size_t rank : stages.rankOf) {
    spmd::PlanStage &line = pipeline.stages.emplace_back();
    line.pattern.place = place;
    if (!isInOrder)
      line.rank = static_cast<int64_t>(rank);
  }
  return true;
}
