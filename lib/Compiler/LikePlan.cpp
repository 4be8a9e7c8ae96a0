//===- LikePlan.cpp - a plan of a style that people know ------------------===//
//
// The model goes as far as annotations, so that what is given already is known; styles say which inputs and results each axis splits; rules
// say that of them by their names, equal layers in one.
//
//===----------------------------------------------------------------------===//
#include "cleave/Compiler/LikePlan.h"

#include "State.h"

#include "cleave/Compiler/ModelStructure.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Plan/FormatPlan.h"
#include "cleave/Search/PlanRules.h"
#include "cleave/Search/Styles.h"
#include "cleave/Support/Status.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::spmd;

/// The mesh of the styles: that of the plan, or one axis of so many devices. `like`: who asks.
static llvm::Error completeMesh(Plan &plan, ArrayRef<Style> styles, int64_t devices, StringRef like) {
  if (plan.pipeline)
    return makeError("--like is about one stage: the plan that is given has a pipeline");
  if (!plan.mesh.empty() && devices > 0)
    return makeError("--devices {0} and --mesh {1}: give one", devices, formatMesh(plan.mesh));
  if (plan.mesh.empty() && devices == 0)
    return makeError("{0} of how many devices? {1}--mesh {2}=4", like,
                     llvm::StringRef(like).starts_with("--") ? "--devices 4, or " : "",
                     kStyleAxes[static_cast<int>(styles.front())]);
  if (plan.mesh.empty() && styles.size() > 1)
    return makeError("{0} is about several axes: name them, as in --mesh data=2,model=4", like);
  if (plan.mesh.empty())
    plan.mesh.push_back({kStyleAxes[static_cast<int>(styles.front())].str(), devices, {}});
  if (styles.size() > 1 && styles.size() != plan.mesh.size())
    return makeError("{0} styles for {1} axes: give one for each axis of --mesh {2}, or one for all", styles.size(),
                     plan.mesh.size(), formatMesh(plan.mesh));
  return llvm::Error::success();
}

/// What each axis splits in its style; one style splits along all axes together.
static llvm::Error applyStyles(StyledPlan &styled, const AtomMesh &mesh, ArrayRef<Style> styles) {
  AtomList all;
  for (unsigned axis = 0; axis < mesh.numAxes(); ++axis)
    llvm::append_range(all, mesh.atomsOf(axis));
  if (styles.size() == 1)
    return styled.apply(styles.front(), all);
  for (auto [axis, style] : llvm::enumerate(styles))
    if (llvm::Error error = styled.apply(style, mesh.atomsOf(axis)))
      return error;
  return llvm::Error::success();
}

/// The plan becomes that of the compilation, as if it had been given: no axis is free that was not, and `--optimize` decides what rules leave
/// open. What is wrong with a style that stands in a plan is told there.
bool Compilation::takeLikePlan() {
  Plan plan = state->plan ? *state->plan : Plan();
  bool isOption = !state->options.like.empty();
  std::string like = (isOption ? "--like " : "like: ") + (isOption ? state->options.like : formatStyles(plan.like));
  auto fail = [&](llvm::Error error) {
    if (isOption)
      return state->fail(std::move(error), Blame::Options);
    const PlanPlace &place = plan.likePlace;
    emitError(FileLineColLoc::get(state->context.get(), place.file, place.line, place.column))
        << llvm::toString(std::move(error));
    return false;
  };
  if (isOption && !plan.like.empty())
    return fail(makeError("{0}: the plan that is given says 'like: {1}'", like, formatStyles(plan.like)));
  llvm::Expected<std::vector<Style>> styles = isOption ? parseStyles(state->options.like) : std::move(plan.like);
  if (!styles)
    return fail(styles.takeError());
  // A step has the mesh of the plan that it was made by.
  bool isSplit = !state->handed.training && (*state->module)->hasAttr(SpmdDialect::kMeshAttr);
  if (cleave::getPhase(*state->module) >= Phase::Annotated || isSplit)
    return fail(makeError("{0} is {1} already: {2} comes too late", state->options.model,
                          toString(cleave::getPhase(*state->module)), isOption ? "--like" : "'like'"));
  if (llvm::Error error = completeMesh(plan, *styles, state->options.devices, like))
    return fail(std::move(error));
  plan.like.clear();
  auto structure = ModelStructure::create(*this, std::make_shared<Plan>(plan));
  if (!structure)
    return false;
  const Problem &problem = structure->getProblem();
  StyledPlan styled(problem, structure->getModel());
  if (llvm::Error error = applyStyles(styled, problem.getMesh(), *styles))
    return fail(makeError("{0}: {1}", like, llvm::toString(std::move(error))));
  for (const std::string &remark : styled.getRemarks())
    emitRemark(FileLineColLoc::get(state->context.get(), state->options.model, 0, 0)) << remark;
  std::vector<TensorDims> tensors = structure->listTensors(styled, plan.mesh);
  llvm::append_range(plan.rules, makePlanRules(tensors, structure->getNames()));
  LikePlan made{std::make_shared<Plan>(plan), formatStyles(*styles), formatMesh(plan.mesh), tensors.size()};
  state->takePlan(made.plan);
  state->likePlan = std::make_unique<LikePlan>(std::move(made));
  return true;
}

llvm::Error cleave::checkStyles(StringRef like) { return parseStyles(like).takeError(); }

const LikePlan *Compilation::getLikePlan() const { return state->likePlan.get(); }

/// Sizes of dims come along: of another batch another axis may divide.
std::string cleave::formatLikePlan(const Compilation &compilation, const LikePlan &like) {
  Plan file = *like.plan;
  for (const auto &[name, size] : compilation.getOptions().dims)
    file.dims.try_emplace(name, size);
  return formatPlanFile(file, compilation.getOptions().sharding.attention, {});
}
