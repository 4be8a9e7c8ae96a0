//===- StageAnnotations.cpp - the stages of a model's nodes ---------------===//
//
// Ops have stages; a file has nodes. One node may have become several ops, one op may be what several nodes compute, and many
// nodes are in no op any more:
//
//   node       Shape  MatMul    Add       Softmax
//   ops        -      einsum 0  einsum 0  exp 0, reduce 1, div 1
//   its stage  0      0         0         0                           Shape is where it is needed first: by Softmax
//
// What that leaves unsaid, reduce and div, is said of single ops, in a property that other readers pass over.
//
//===----------------------------------------------------------------------===//
#include "cleave/Annotations/Annotate.h"
#include "cleave/Annotations/DevicePlan.h"
#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "cleave/Dialect/Pipe/Stages/StageGraph.h"
#include "cleave/Dialect/Spmd/IR/Names.h"
#include "cleave/Plan/FormatPlan.h"
#include "cleave/Support/Status.h"
#include <map>

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;
using pipe::PipeDialect;

namespace {
/// The stages of the ops that a node, or a tensor, is computed by, and how many of these are in each.
using Stages = std::map<int64_t, int64_t>;

/// By the names of nodes and of tensors.
struct OpStages {
  llvm::StringMap<Stages> nodes, tensors;

  explicit OpStages(func::FuncOp func);
  Stages find(const NodeProto &node) const;
};
} // namespace

/// An op of several nodes is each one's; collectives follow from how values lie, and are no node's work.
OpStages::OpStages(func::FuncOp func) {
  for (Operation &op : func.getBody().front()) {
    std::optional<int64_t> stage = pipe::getStage(&op);
    if (!stage || isa<spmd::SpmdDialect>(op.getDialect()))
      continue;
    for (const spmd::NodeInfo &info : spmd::getNodeInfos(&op)) {
      if (!info.node.empty())
        ++nodes[info.node][*stage];
      for (ArrayRef<StringRef> names : info.results)
        for (StringRef name : names)
          ++tensors[name][*stage];
    }
  }
}

/// What it makes tells a node from others of its name, and finds one that only passes on what another node has made.
Stages OpStages::find(const NodeProto &node) const {
  Stages own = nodes.lookup(node.name), made;
  for (StringRef output : node.output)
    for (auto [stage, count] : tensors.lookup(output))
      made[stage] += count;
  bool isOther = !made.empty() && llvm::none_of(made, [&](const auto &entry) { return own.count(entry.first); });
  return own.empty() || isOther ? made : own;
}

/// From the last node to the first: one without ops is where the first of those is that take what it makes.
static void placeOthers(const GraphProto &graph, std::vector<Stages> &stagesOf) {
  llvm::StringMap<int64_t> neededIn;
  for (size_t number = graph.node.size(); number-- > 0;) {
    Stages &own = stagesOf[number];
    if (own.empty())
      for (StringRef output : graph.node[number].output)
        if (auto needed = neededIn.find(output); needed != neededIn.end())
          own[needed->second] = 1;
    if (own.empty())
      continue;
    for (StringRef input : graph.node[number].input) {
      int64_t &first = neededIn.try_emplace(input, own.begin()->first).first->second;
      first = std::min(first, own.begin()->first);
    }
  }
}

/// From the first node to the last: one is where most of its ops are, if nothing that it takes is behind that.
static std::vector<int64_t> placeNodes(const GraphProto &graph, ArrayRef<Stages> stagesOf,
                                       std::vector<std::string> &told) {
  std::vector<int64_t> ofNode;
  llvm::StringMap<int64_t> madeIn;
  for (auto [node, own] : llvm::zip_equal(graph.node, stagesOf)) {
    int64_t after = -1, most = 0;
    for (StringRef input : node.input)
      if (auto made = madeIn.find(input); made != madeIn.end())
        after = std::max(after, made->second);
    int64_t stage = own.empty() ? -1 : after;
    for (auto [each, count] : own)
      if (each >= after && count > most) {
        stage = each;
        most = count;
      }
    if (own.size() > 1 || own.count(stage) != own.size())
      told.push_back((node.name.empty() && !node.output.empty() ? node.output.front() : node.name).str());
    ofNode.push_back(stage);
    for (StringRef output : node.output)
      if (stage >= 0 && !output.empty())
        madeIn[output] = stage;
  }
  return ofNode;
}

llvm::Expected<NodeStages> cleave::onnx::findNodeStages(const GraphProto &graph, ModuleOp module,
                                                        const spmd::PlanPipeline &pipeline,
                                                        std::vector<std::string> &told) {
  NodeStages stages;
  stages.mesh = module->getAttrOfType<spmd::MeshAttr>(PipeDialect::kMeshAttr);
  stages.axis = pipeline.axis;
  stages.property = spmd::formatPipeline(pipeline, pipe::getMicrobatches(module).value_or(1));
  auto boundaries = module->getAttrOfType<DictionaryAttr>(PipeDialect::kBoundariesAttr);
  assert(boundaries && "pipe-assign-stages has not run");
  for (auto stage : boundaries.getAs<ArrayAttr>("stages").getAsRange<DictionaryAttr>())
    stages.rankOf.push_back(stage.getAs<IntegerAttr>("rank").getInt());
  func::FuncOp func = *module.getOps<func::FuncOp>().begin();
  OpStages ops(func);
  std::vector<Stages> stagesOf;
  for (const NodeProto &node : graph.node)
    stagesOf.push_back(ops.find(node));
  placeOthers(graph, stagesOf);
  stages.ofNode = placeNodes(graph, stagesOf, told);
  pipe::StageGraph staged = pipe::makeStageGraph(func, pipe::DeviceRates());
  std::vector<int32_t> stageOf;
  for (Operation *op : staged.ops)
    stageOf.push_back(static_cast<int32_t>(*pipe::getStage(op)));
  stages.ops = pipe::findOthers(staged, nameStages(graph, stages.ofNode), stageOf);
  for (size_t stage = 0; stage < stages.rankOf.size(); ++stage)
    if (!llvm::is_contained(stages.ofNode, static_cast<int64_t>(stage)))
      return makeError("stages cannot be written: stage {0} has only parts of nodes", stage);
  return stages;
}
