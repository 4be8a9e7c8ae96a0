//===- Evaluation.cpp - the entry that evaluates, beside a step -----------===//
//
//   canonical model ─▶ step ──────────────────────────▶ propagated ─▶ .. ─▶ entry `step`
//         │                                                 │ how arguments are sharded
//         └─ kept ─▶ step without training, its loss alone ─▶ propagated ─▶ .. ─▶ entry `eval`
//
// States are in the ranks as the step has them, and the forward is decided for that: who shards parameters gathers them here, too.
//
// Both are made of the canonical model, in which what the plan asks of tensors stands already. The step is made once more for it, and thrown
// away but for its loss: so arguments come in the same order, whatever the plan trains and however. Nothing that a plan expects of its
// program is asked of this one, and its phases are dumped into a folder of their own.
//
//===----------------------------------------------------------------------===//
#include "State.h"

#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Dialect/Spmd/IR/StepRoles.h"
#include "cleave/Plan/Plan.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace cleave;

/// Kept from before the step is made until it is assembled.
struct Compilation::State::Evaluation {
  OwningOpRef<ModuleOp> model;
  ShardState handed;
  /// Of the step, in its order.
  SmallVector<spmd::ShardingAttr> arguments;
  Attribute mesh;
  /// Of a pipeline: in which stage nodes are, on which rank each stage, and each argument that stays there.
  spmd::StageNames stages;
  SmallVector<int64_t> ranks;
  DenseMap<unsigned, int64_t> homes;
};

/// What a plan asks of the model has been placed by now.
void Compilation::State::keepForEvaluation() {
  evaluation = std::make_shared<Evaluation>();
  evaluation->model = module->clone();
  evaluation->handed = handed;
  evaluation->handed.plan = nullptr;
  evaluation->handed.decisions = nullptr;
  evaluation->handed.keepsGradients = false;
  evaluation->handed.evaluates = true;
}

/// Of the step: what evaluates is decided for it, and not looked at.
void Compilation::State::keepDecided() {
  llvm::Expected<func::FuncOp> step = findEntry(*module);
  if (!step || !evaluation || handed.evaluates)
    return llvm::consumeError(step.takeError());
  for (Type type : step->getArgumentTypes())
    evaluation->arguments.push_back(spmd::getSharding(type));
  evaluation->mesh = (*module)->getAttr(spmd::SpmdDialect::kMeshAttr);
}

/// What is forward in several stages has no stage by its name.
static void keepNames(Operation *op, int64_t stage, spmd::StageNames &names) {
  auto keep = [&](std::map<std::string, int64_t> &known, StringRef name) {
    if (auto [found, isNew] = known.try_emplace(name.str(), stage); !name.empty() && !isNew && found->second != stage)
      found->second = -1;
  };
  for (const spmd::NodeInfo &info : spmd::getNodeInfos(op)) {
    keep(names.nodes, info.node);
    for (ArrayRef<StringRef> results : info.results)
      for (StringRef tensor : results)
        keep(names.tensors, tensor);
  }
}

/// Of the step, while its stages are functions.
void Compilation::State::keepStages() {
  if (!evaluation || handed.evaluates)
    return;
  for (auto table : module->getOps<pipe::ScheduleOp>())
    evaluation->ranks.assign(table.getPlacement().begin(), table.getPlacement().begin() + table.getStages());
  for (func::FuncOp rank : pipe::getRankFunctions(*module))
    for (unsigned index = 0; index < rank.getNumArguments(); ++index)
      if (auto role = rank.getArgAttrOfType<StringAttr>(index, spmd::kRoleAttr); role && role != spmd::kBatchRole)
        evaluation->homes[*pipe::getArgIndex(rank, index)] = *pipe::getRank(rank);
  module->walk([&](pipe::MicrobatchesOp loop) {
    // The forward of all stages comes first.
    int64_t number = 0, count = static_cast<int64_t>(evaluation->ranks.size());
    for (func::CallOp call : loop.getBody().front().getOps<func::CallOp>())
      if (auto stage = number < count ? module->lookupSymbol<func::FuncOp>(call.getCallee()) : func::FuncOp())
        stage.walk([&, own = number++](Operation *op) { keepNames(op, own, evaluation->stages); });
  });
}

/// The plan of the step with the stages that it has got.
static std::shared_ptr<const spmd::Plan> fixStages(const spmd::Plan &plan, spmd::StageNames stages,
                                                   ArrayRef<int64_t> ranks) {
  auto fixed = std::make_shared<spmd::Plan>(plan);
  spmd::PlanPipeline &pipeline = *fixed->pipeline;
  pipeline.said = std::move(stages);
  pipeline.stages.assign(ranks.size(), {});
  for (auto [stage, rank] : llvm::zip_equal(pipeline.stages, ranks))
    stage.rank = rank;
  pipeline.chunks = static_cast<int64_t>(ranks.size()) / plan.findAxis(pipeline.axis)->size;
  pipeline.schedule = pipeline.placement = "";
  return fixed;
}

/// Each argument is where the step has it.
static void shardArguments(func::FuncOp func, ArrayRef<spmd::ShardingAttr> shardings) {
  auto loc = FileLineColLoc::get(func.getContext(), "step", 1, 1);
  for (auto [index, sharding] : llvm::enumerate(shardings))
    if (sharding)
      func.setArgAttr(index, spmd::SpmdDialect::kAnnotationAttr,
                      spmd::AnnotationAttr::get(func.getContext(), sharding, loc, loc));
}

/// The module is the step again in the end: reports are about that.
bool Compilation::addEvaluation(Assembler &assembler) {
  std::shared_ptr<State::Evaluation> made = std::exchange(state->evaluation, nullptr);
  if (!made)
    return true;
  OwningOpRef<ModuleOp> step = std::exchange(state->module, std::move(made->model));
  llvm::SaveAndRestore handed(state->handed, std::move(made->handed));
  std::string folder = state->options.dumpPhases.empty() ? "" : state->options.dumpPhases + "/" + kEvalEntry.str();
  llvm::SaveAndRestore dumped(state->options.dumpPhases, std::move(folder));
  bool isDone = advance(Phase::Differentiated);
  func::FuncOp func = isDone ? getEntry() : func::FuncOp();
  if (func) {
    (*state->module)->setAttr(spmd::SpmdDialect::kMeshAttr, made->mesh);
    shardArguments(func, made->arguments);
    for (auto [index, rank] : made->homes)
      func.setArgAttr(index, pipe::PipeDialect::kHomeAttr, Builder(func.getContext()).getI64IntegerAttr(rank));
    if (made->ranks.size() > 1)
      state->handed.pipeline = fixStages(*state->handed.pipeline, std::move(made->stages), made->ranks);
  }
  isDone = func && advance(Phase::Ordered) && state->addTo(assembler, kEvalEntry);
  state->module = std::move(step);
  return isDone;
}
