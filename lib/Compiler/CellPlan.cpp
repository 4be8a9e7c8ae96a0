//===- CellPlan.cpp - one mesh, and the plan of a decision ----------------===//
//
// The annotated program of a mesh becomes a problem with all axes free and the storage of weights open. What is decided of it becomes a
// plan, in the words that a person would use.
//
//===----------------------------------------------------------------------===//
#include "CellPlan.h"

#include "cleave/Dialect/Spmd/Annotations/Annotations.h"
#include "cleave/Dialect/Spmd/IR/FreeAxes.h"
#include "cleave/Dialect/Spmd/IR/Names.h"
#include "cleave/Search/AxisNames.h"
#include "cleave/Search/PlanRules.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::spmd;

std::unique_ptr<CellPlan> CellPlan::create(OwningOpRef<ModuleOp> module, SolverOptions options) {
  auto cell = std::make_unique<CellPlan>();
  cell->module = std::move(module);
  llvm::Expected<func::FuncOp> func = findEntry(*cell->module);
  if (!func) {
    llvm::consumeError(func.takeError());
    return nullptr;
  }
  cell->atoms = MeshAtoms::create(*cell->module);
  if (!cell->atoms)
    return nullptr;
  FailureOr<AtomList> free = getFreeAtoms(*cell->module, *cell->atoms);
  if (failed(free))
    return nullptr;
  cell->source =
      FunctionProblem::create(*func, *cell->atoms, {/*holdsQueries=*/false, /*storesParameters=*/true, *free});
  if (!cell->source)
    return nullptr;
  cell->classes = std::make_unique<DimClasses>(cell->source->getProblem());
  // As people do: batches alone, weights alone, tokens alone.
  std::vector<SearchStyle> styles;
  for (DimTag tag : kDimTags)
    styles.push_back([classes = cell->classes.get(), tag](OpId op, FactorId factor) {
      return classes->getTag(classes->ofFactor(op, factor)) == tag;
    });
  cell->search = std::make_unique<CellSearch>(cell->source->getProblem(), std::move(options), std::move(styles));
  return cell;
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

/// A part of an axis is a digit of it, as plans write sub-axes; a dim that is cut by nothing is closed.
static std::vector<PlanDim> makeDims(const State &state, const AtomMesh &mesh, ArrayRef<MeshAxis> axes) {
  std::vector<PlanDim> dims;
  for (const AtomList &list : state.dims) {
    PlanDim &dim = dims.emplace_back();
    for (const SubAxis &part : mesh.subAxesOf(list)) {
      bool isWhole = part.size == mesh.axisSize(part.axis);
      dim.axes.push_back({axes[part.axis].name, isWhole ? 1 : part.preSize, isWhole ? 0 : part.size, {}});
    }
  }
  return dims;
}

/// Parts of one parameter may be stored in different ways, which no rule can say: those are left to whoever takes the plan. What the given
/// plan asks for it says itself.
std::vector<PlanRule> CellPlan::makeRules(const Decision &decision, const AtomMesh &mesh,
                                          ArrayRef<MeshAxis> axes) const {
  const Problem &problem = source->getProblem();
  llvm::MapVector<StringRef, std::optional<std::vector<PlanDim>>> found;
  std::vector<StringRef> names;
  for (auto [id, value] : llvm::enumerate(source->getValues())) {
    llvm::append_range(names, getTensorNames(value));
    StringRef name = problem.producer(id) == kNone && !problem.annotation(id) ? getPlanName(value) : "";
    const State &state = decision.states[decision.valueStates[id]];
    if (name.empty() || state.isPartial())
      continue;
    std::vector<PlanDim> dims = makeDims(state, mesh, axes);
    PlanRule mine, other;
    mine.dims = dims;
    auto [entry, isNew] = found.try_emplace(name, std::move(dims));
    if (isNew || !entry->second)
      continue;
    other.dims = *entry->second;
    if (mine.formatDims() != other.formatDims())
      entry->second.reset();
  }
  std::vector<TensorDims> tensors;
  for (auto &[name, dims] : found)
    if (dims && llvm::any_of(*dims, [](const PlanDim &dim) { return !dim.axes.empty(); }))
      tensors.push_back({name.str(), std::move(*dims)});
  return makePlanRules(tensors, names);
}

/// Atoms keep their numbers: axes are runs of them, so that states say the same over the new mesh. The axis of stages, which no problem
/// has, goes before the others.
Plan CellPlan::makePlan(const CellAnswer &answer, const Plan &given, std::optional<ArrayRef<unsigned>> borders) const {
  const Problem &problem = source->getProblem();
  Plan plan = given;
  std::vector<MeshAxis> inner = given.getInnerAxes();
  if (borders) {
    plan.mesh.resize(plan.mesh.size() - inner.size());
    inner.clear();
    for (const NamedAxis &axis : nameAxes(problem, *classes, answer.getDecision(), *borders))
      inner.push_back({axis.name, axis.size, {}});
    llvm::append_range(plan.mesh, inner);
  }
  SmallVector<int64_t> sizes;
  for (const MeshAxis &axis : inner)
    sizes.push_back(axis.size);
  AtomMesh mesh(sizes);
  assert(mesh.numAtoms() == problem.getMesh().numAtoms() && "axes are runs of the same atoms");
  llvm::append_range(plan.rules, makeRules(answer.getDecision(), mesh, inner));
  return plan;
}
