//===- MeshProblem.cpp - a model on a mesh, as a problem to decide --------===//
//
// A copy of the model goes as far as annotations, quietly: who searches looks at many meshes, and some of them have no program.
//
//===----------------------------------------------------------------------===//
#include "MeshProblem.h"

#include "cleave/Dialect/Spmd/Annotations/Annotations.h"
#include "cleave/Dialect/Spmd/IR/FreeAxes.h"
#include "cleave/Dialect/Spmd/IR/Names.h"
#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::spmd;

ModelNames cleave::listNames(ModuleOp module) {
  ModelNames names{{}, findModuleWeights(module)};
  module.walk([&](Operation *op) {
    for (Value value : op->getResults())
      llvm::append_range(names.tensors, getTensorNames(value));
    for (Region &region : op->getRegions())
      for (BlockArgument argument : region.getArguments())
        llvm::append_range(names.tensors, getTensorNames(argument));
  });
  return names;
}

Plan cleave::makeCellPlan(Plan given, const StageCell &stages, std::vector<MeshAxis> mesh) {
  given.mesh = std::move(mesh);
  if (!stages.isPipeline())
    return given;
  given.pipeline.emplace();
  given.pipeline->axis = "stage";
  given.pipeline->microbatches = stages.microbatches;
  given.mesh.insert(given.mesh.begin(), {given.pipeline->axis, stages.stages, {}});
  return given;
}

ShardOptions Compilation::State::searchBy(const Plan &plan) const {
  ShardOptions sharding = options.sharding;
  sharding.optimize = Optimize::Time;
  sharding.decidingCosts.reset();
  return withMachine(plan, std::move(sharding));
}

std::unique_ptr<MeshProblem> Compilation::State::makeProblem(const Plan &plan, const ShardOptions &sharding,
                                                             bool storesParameters, std::string *reason) {
  auto made = std::make_unique<MeshProblem>();
  made->options.costs = sharding.getCosts();
  made->options.keepParameters = sharding.keepPlan;
  made->options.memory = memory;
  made->module = advanceCopy(std::make_shared<Plan>(plan), sharding, Phase::Annotated, reason);
  if (!made->module)
    return nullptr;
  ScopedDiagnosticHandler quiet(context.get(), keepFirstError(reason));
  llvm::Expected<func::FuncOp> func = findEntry(*made->module);
  if (!func) {
    std::string text = llvm::toString(func.takeError());
    if (reason)
      *reason = std::move(text);
    return nullptr;
  }
  made->atoms = MeshAtoms::create(*made->module);
  if (!made->atoms)
    return nullptr;
  FailureOr<FreeAtoms> free = getFreeAtoms(*made->module, *made->atoms);
  if (failed(free))
    return nullptr;
  made->source = FunctionProblem::create(*func, *made->atoms, {/*holdsQueries=*/false, storesParameters, *free});
  return made->source ? std::move(made) : nullptr;
}
