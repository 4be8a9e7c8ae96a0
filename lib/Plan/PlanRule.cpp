//===- PlanRule.cpp - what a rule asks of one tensor ----------------------===//
//
// A rule is written for many tensors: `...` stands for as many dims as a tensor has more than the rule names, and
// `where: divides` takes back what a tensor's size does not allow.
//
//===----------------------------------------------------------------------===//
#include "cleave/Plan/NamePattern.h"
#include "cleave/Plan/Plan.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace cleave::spmd;
using namespace llvm;

/// Both were compiled when the plan was read, so that neither can fail here.
NamePattern PlanRule::getPattern() const {
  NamePattern result = llvm::cantFail(NamePattern::create(pattern));
  for (const PlanPattern &other : except)
    result.exclude(llvm::cantFail(NamePattern::create(other.text)));
  return result;
}

bool PlanRule::dependsOnShape() const {
  return whereDivides || any_of(dims, [](const PlanDim &dim) { return dim.isRest; });
}

bool PlanRule::asksNothing() const {
  return replicated.empty() && !experts &&
         all_of(dims, [](const PlanDim &dim) { return dim.isOpen && dim.axes.empty(); });
}

std::optional<std::vector<PlanDim>> PlanRule::expand(size_t rank) const {
  auto rest = find_if(dims, [](const PlanDim &dim) { return dim.isRest; });
  size_t named = dims.size() - (rest != dims.end());
  if (rest == dims.end() ? rank != named : rank < named)
    return std::nullopt;
  std::vector<PlanDim> result(dims.begin(), rest);
  if (rest == dims.end())
    return result;
  PlanDim whole;
  whole.place = rest->place;
  result.insert(result.end(), rank - named, whole);
  result.insert(result.end(), std::next(rest), dims.end());
  return result;
}

/// A dim that propagation may split as it likes.
static PlanDim makeOpen(const PlanPlace &place) {
  PlanDim dim;
  dim.isOpen = true;
  dim.place = place;
  return dim;
}

/// A dim that does not divide is left open, not whole: propagation may still split it by another axis.
LogicalResult cleave::spmd::fitRule(const Plan &plan, const PlanRule &rule, const Twine &what, ArrayRef<int64_t> shape,
                                    PlanRule &fitted, std::vector<PlanNote> &left, PlanError &error,
                                    ArrayRef<Granule> granules) {
  fitted = rule;
  if (std::optional<std::vector<PlanDim>> dims = rule.expand(shape.size()))
    fitted.dims = std::move(*dims);
  if (rule.whereDivides)
    for (size_t index = 0; index < std::min(shape.size(), fitted.dims.size()); ++index) {
      PlanDim &dim = fitted.dims[index];
      std::string reason =
          describeUndivided(index, shape[index], plan.getSplits(dim), granules.empty() ? Granule() : granules[index]);
      if (reason.empty())
        continue;
      left.push_back({dim.place, (what + reason + ": propagation decides how that dim is cut").str()});
      dim = makeOpen(dim.place);
    }
  return checkRule(plan, fitted, what, shape, error, granules);
}

SmallVector<const PlanAxis *> PlanRule::getAxes() const {
  SmallVector<const PlanAxis *> axes;
  for (const PlanDim &dim : dims)
    for (const PlanAxis &axis : dim.axes)
      axes.push_back(&axis);
  if (experts)
    for (const PlanAxis &axis : experts->axes)
      axes.push_back(&axis);
  for (const PlanAxis &axis : replicated)
    axes.push_back(&axis);
  return axes;
}

std::vector<PlanNote> cleave::spmd::findIdle(const Plan &plan) {
  if (plan.mesh.empty())
    return {};
  if (plan.rules.empty() && !plan.pipeline && !plan.hasFree())
    return {{plan.mesh.front().place, "no rule says what to split: every device of the mesh does all the work"}};
  StringSet<> used;
  if (plan.pipeline)
    used.insert(plan.pipeline->axis);
  for (const PlanRule &rule : plan.rules)
    for (const PlanAxis *axis : rule.getAxes())
      used.insert(axis->name);
  std::vector<PlanNote> notes;
  for (const MeshAxis &axis : plan.mesh)
    if (axis.size > 1 && !used.contains(axis.name) && !plan.isFree(axis.name))
      notes.push_back({axis.place, "no rule uses axis \"" + axis.name + "\"=" + std::to_string(axis.size) +
                                       ": all devices along it do the same"});
  return notes;
}
