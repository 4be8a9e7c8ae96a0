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

/// A weight is a parameter of floats, and more than one.
StyledModel cleave::makeStyledModel(const MeshProblem &problem) {
  StyledModel model;
  const Problem &decided = problem.getProblem();
  for (auto [id, value] : llvm::enumerate(problem.source->getValues())) {
    bool isInput = decided.producer(id) == kNone, isParameter = decided.isParameter(id);
    auto type = dyn_cast<RankedTensorType>(value.getType());
    model.isGiven.push_back(isa<BlockArgument>(value) && isInput && !isParameter);
    model.isWeight.push_back(isInput && isParameter && type && isa<FloatType>(type.getElementType()) &&
                             type.getNumElements() > 1);
    SmallVector<StringRef, 1> names = getTensorNames(value);
    model.isNamed.push_back(!names.empty() && !names.front().empty());
  }
  return model;
}

/// The first name, where a value has several.
std::vector<TensorDims> cleave::listStyled(const MeshProblem &problem, const StyledPlan &styled,
                                           llvm::ArrayRef<MeshAxis> axes) {
  const Problem &decided = problem.getProblem();
  std::vector<TensorDims> tensors;
  for (const auto &[value, splits] : styled.getSplits()) {
    SmallVector<StringRef, 1> names = getTensorNames(problem.source->getValues()[value]);
    if (!names.empty() && !names.front().empty() && !decided.annotation(value))
      tensors.push_back({names.front().str(), makePlanDims(splits, decided.getMesh(), axes)});
  }
  return keepAgreed(tensors);
}

bool cleave::haveSameValues(const Problem &one, const Problem &other) {
  if (one.numOps() != other.numOps() || one.numValues() != other.numValues())
    return false;
  return llvm::all_of(llvm::seq<ValueId>(0, one.numValues()),
                      [&](ValueId value) { return one.shape(value) == other.shape(value); });
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
