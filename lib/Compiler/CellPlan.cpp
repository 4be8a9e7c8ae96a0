//===- CellPlan.cpp - one mesh, and the plan of a decision ----------------===//
//
// What is decided becomes a plan in the words that a person would use.
//
//===----------------------------------------------------------------------===//
#include "CellPlan.h"

#include "cleave/Dialect/Spmd/IR/Names.h"
#include "cleave/Search/AxisNames.h"
#include "cleave/Search/PlanRules.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::spmd;

CellPlan::CellPlan(std::unique_ptr<MeshProblem> made, const ModelNames &names)
    : problem(std::move(made)), names(names), classes(std::make_unique<DimClasses>(problem->getProblem())) {
  // As people do: batches alone, weights alone, tokens alone.
  std::vector<SearchStyle> styles;
  for (DimTag tag : kDimTags)
    styles.push_back([classes = classes.get(), tag](OpId op, FactorId factor) {
      return classes->getTag(classes->ofFactor(op, factor)) == tag;
    });
  search = std::make_unique<CellSearch>(problem->getProblem(), problem->options, std::move(styles));
}

/// The names by which a plan addresses a value: of an input or a parameter there is one.
static StringRef getPlanName(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    if (auto func = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()))
      return getArgumentName(func, argument.getArgNumber());
  if (auto parameter = value.getDefiningOp<ParameterOpInterface>())
    return parameter.getParameterName();
  return "";
}

/// What the given plan asks for it says itself.
std::vector<PlanRule> CellPlan::makeRules(const Decision &decision, const AtomMesh &mesh,
                                          ArrayRef<MeshAxis> axes) const {
  const Problem &decided = problem->getProblem();
  std::vector<TensorDims> tensors;
  for (auto [id, value] : llvm::enumerate(problem->source->getValues())) {
    StringRef name = decided.producer(id) == kNone && !decided.annotation(id) ? getPlanName(value) : "";
    const State &state = decision.states[decision.valueStates[id]];
    if (!name.empty() && !state.isPartial())
      tensors.push_back({name.str(), makePlanDims(state.dims, mesh, axes)});
  }
  return makePlanRules(keepAgreed(tensors), names);
}

/// Atoms keep their numbers: axes are runs of them, so that states say the same over the new mesh. The axis of stages, which no problem
/// has, goes before the others.
Plan CellPlan::makePlan(const CellAnswer &answer, const Plan &given, std::optional<ArrayRef<unsigned>> borders) const {
  Plan plan = given;
  std::vector<MeshAxis> inner = given.getInnerAxes();
  if (borders) {
    plan.mesh.resize(plan.mesh.size() - inner.size());
    inner.clear();
    for (const NamedAxis &axis : nameAxes(problem->getProblem(), *classes, answer.getDecision(), *borders))
      inner.push_back({axis.name, axis.size, {}});
    llvm::append_range(plan.mesh, inner);
    if (plan.mesh.empty()) // One device has nothing to name.
      plan.mesh.push_back({"device", 1, {}});
  }
  SmallVector<int64_t> sizes;
  for (const MeshAxis &axis : inner)
    sizes.push_back(axis.size);
  AtomMesh mesh(sizes);
  assert(mesh.numAtoms() == problem->getProblem().getMesh().numAtoms() && "axes are runs of the same atoms");
  llvm::append_range(plan.rules, makeRules(answer.getDecision(), mesh, inner));
  return plan;
}
