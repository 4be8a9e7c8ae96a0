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

#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
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
  }
  isDone = func && advance(Phase::Ordered) && state->addTo(assembler, kEvalEntry);
  state->module = std::move(step);
  return isDone;
}
