//===- AxisNames.cpp - what found axes are called -------------------------===//
//
// An atom is called by the class of what it cuts in ops with floating-point operations, these weighed; neighbors that are called alike are
// one axis.
//
//===----------------------------------------------------------------------===//
#include "cleave/Search/AxisNames.h"
#include "llvm/ADT/STLExtras.h"

#include <array>
#include <map>

using namespace cleave::spmd;
using namespace llvm;

/// What the atom cuts of most flops; of a program without flops, or an atom that cuts none, of most ops.
static DimTag findTag(const Problem &problem, const DimClasses &classes, const Decision &decision, AtomId atom) {
  std::array<double, std::size(kDimTags)> flops{}, ops{};
  for (OpId op = 0; op < problem.numOps(); ++op) {
    const ShardingRule &rule = problem.rule(problem.ruleOf(op));
    if (problem.isConstraint(op))
      continue;
    const Choice &choice = rule.choices[decision.choices[size_t(op) * problem.getMesh().numAtoms() + atom]];
    if (choice.factors.empty())
      continue;
    auto tag = static_cast<size_t>(classes.getTag(classes.ofFactor(op, choice.factors.front())));
    flops[tag] += rule.flops;
    ops[tag] += 1;
  }
  auto &counts = any_of(flops, [](double count) { return count > 0; }) ? flops : ops;
  if (all_of(counts, [](double count) { return count == 0; }))
    return DimTag::Batch;
  return static_cast<DimTag>(std::max_element(counts.begin(), counts.end()) - counts.begin());
}

/// Where an axis of the same name has been, the next has a number.
std::vector<NamedAxis> cleave::spmd::nameAxes(const Problem &problem, const DimClasses &classes,
                                              const Decision &decision, ArrayRef<unsigned> borders) {
  const AtomMesh &mesh = problem.getMesh();
  std::vector<NamedAxis> axes;
  std::map<std::string, unsigned> used;
  std::optional<DimTag> last;
  for (unsigned axis = 0; axis < mesh.numAxes(); ++axis) {
    if (llvm::is_contained(borders, axis))
      last.reset();
    for (AtomId atom : mesh.atomsOf(axis)) {
      DimTag tag = findTag(problem, classes, decision, atom);
      if (last != tag) {
        std::string name = kTagAxes[static_cast<int>(tag)].str();
        if (unsigned before = used[name]++)
          name += std::to_string(before + 1);
        axes.push_back({std::move(name), 1});
      }
      axes.back().size *= mesh.size(atom);
      last = tag;
    }
  }
  return axes;
}
