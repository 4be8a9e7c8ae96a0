//===- RuleMatch.cpp - does an op agree with its shardings? ---------------===//
//
// Two steps. First every dim's atoms are dealt out to its factors, major to minor: a factor takes atoms until it is
// full, then the next one begins (so a minor factor is split only under a full major), and all tensors that have a factor
// must agree. Then, atom by atom: which factors it splits and which tensors are partial over it must be one choice.
//
//   dim of 24 = factors [k=4, j=6], atoms 2 2 2 3    ->    k: 2 2    j: 2 3
//
//===----------------------------------------------------------------------===//
#include "cleave/Sharding/RuleMatch.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVectorExtras.h"

#include <cassert>

using namespace cleave::spmd;
using namespace llvm;

namespace {
class Matcher {
public:
  Matcher(const AtomMesh &mesh, const ShardingRule &rule, std::string &error) : mesh(mesh), rule(rule), error(error) {
    match.splits.resize(rule.factorSizes.size());
    isKnown.resize(rule.factorSizes.size());
  }

  std::optional<RuleMatch> run(ArrayRef<const State *> operands, ArrayRef<const State *> results);

private:
  bool fail(const Twine &message) {
    error = message.str();
    return false;
  }
  /// Reads off one tensor what splits its factors; `what` names it in errors.
  bool dealOut(const TensorFactors &factors, const State &state, const Twine &what);
  bool dealOutDim(const DimFactors &factors, ArrayRef<AtomId> atoms, const Twine &what);
  /// True if the atoms split the first factor of a dim alone, and do not divide it.
  bool isRegrouped(FactorId factor, ArrayRef<AtomId> atoms) const;
  /// A factor that stands in several tensors is split alike in all of them.
  bool setSplit(FactorId factor, const AtomList &atoms, const Twine &what);
  /// The one choice that says of `atom` what all tensors together say of it: which factors it splits, which operands are
  /// partial over it, and whether the results are.
  bool findChoice(AtomId atom, ArrayRef<const State *> operands, ArrayRef<const State *> results);

  const AtomMesh &mesh;
  const ShardingRule &rule;
  std::string &error;
  RuleMatch match;
  SmallVector<bool, 6> isKnown;
};
} // namespace

bool Matcher::setSplit(FactorId factor, const AtomList &atoms, const Twine &what) {
  if (isKnown[factor] && match.splits[factor] != atoms)
    return fail(what + " shards a dim differently than another operand or result does");
  isKnown[factor] = true;
  match.splits[factor] = atoms;
  return true;
}

/// By the prime sizes of the atoms, major to minor.
bool Matcher::isRegrouped(FactorId factor, ArrayRef<AtomId> atoms) const {
  auto sizes = map_to_vector(atoms, [&](AtomId atom) { return int64_t(mesh.size(atom)); });
  return rule.findRegroup(factor) && Regroup::isNeeded(rule.factorSizes[factor], sizes);
}

bool Matcher::dealOutDim(const DimFactors &factors, ArrayRef<AtomId> atoms, const Twine &what) {
  // Of a factor that has its dim to itself, the last pieces may be padded.
  if (factors.size() == 1 &&
      (atoms.empty() || (rule.allowsUneven(factors.front()) && !rule.findRegroup(factors.front()))))
    return setSplit(factors.front(), AtomList(atoms), what);
  if (!factors.empty() && isRegrouped(factors.front(), atoms)) {
    for (FactorId factor : ArrayRef(factors).drop_front())
      if (!setSplit(factor, {}, what))
        return false;
    return setSplit(factors.front(), AtomList(atoms), what);
  }
  for (FactorId factor : factors) {
    AtomList mine;
    // Major factors first: a minor one is split only once those before it are used up, or its pieces would not lie in one
    // shard.
    for (int64_t room = rule.factorSizes[factor]; !atoms.empty() && room % mesh.size(atoms.front()) == 0;
         atoms = atoms.drop_front()) {
      room /= mesh.size(atoms.front());
      mine.push_back(atoms.front());
    }
    bool isFull = mesh.product(mine) == rule.factorSizes[factor];
    if (!setSplit(factor, mine, what))
      return false;
    if (!isFull && !atoms.empty())
      return fail(what + " splits a dim into pieces that the op cannot take");
  }
  return atoms.empty() || fail(what + " splits a dim that the op needs whole");
}

bool Matcher::dealOut(const TensorFactors &factors, const State &state, const Twine &what) {
  for (auto [dimFactors, atoms] : zip_equal(factors, state.dims))
    if (!dealOutDim(dimFactors, atoms, what))
      return false;
  return true;
}

/// Both lists hold the same numbers, in any order. Precondition: no number twice in one.
static bool haveSame(ArrayRef<int32_t> lhs, ArrayRef<int32_t> rhs) {
  assert(SmallDenseSet<int32_t>(lhs.begin(), lhs.end()).size() == lhs.size() && "a number twice");
  assert(SmallDenseSet<int32_t>(rhs.begin(), rhs.end()).size() == rhs.size() && "a number twice");
  return lhs.size() == rhs.size() && all_of(lhs, [&](int32_t number) { return is_contained(rhs, number); });
}

bool Matcher::findChoice(AtomId atom, ArrayRef<const State *> operands, ArrayRef<const State *> results) {
  SmallVector<FactorId> factors;
  for (auto [factor, atoms] : enumerate(match.splits))
    if (is_contained(atoms, atom))
      factors.push_back(factor);
  SmallVector<int32_t> partialOperands;
  std::optional<ReductionKind> kind;
  bool oneKind = true;
  auto note = [&](const State &state) {
    oneKind &= !kind || *kind == state.kind;
    kind = state.kind;
  };
  for (auto [index, state] : enumerate(operands))
    if (state->isPartialOver(atom)) {
      partialOperands.push_back(index);
      note(*state);
    }
  unsigned partialResults = 0;
  for (const State *state : results)
    if (state->isPartialOver(atom)) {
      ++partialResults;
      note(*state);
    }
  // Choice 0 is "none": the atom does nothing here.
  if (factors.empty() && !kind)
    return true;
  auto isMine = [&](const Choice &choice) {
    return haveSame(choice.factors, factors) && haveSame(choice.partialOperands, partialOperands) &&
           choice.partial == kind && partialResults == (choice.partial ? results.size() : 0);
  };
  const Choice *choice = oneKind ? find_if(rule.choices, isMine) : rule.choices.end();
  if (choice == rule.choices.end())
    return fail("no choice of the op's sharding rule gives these shardings of operands and results over one axis");
  match.choices[atom] = choice - rule.choices.begin();
  return true;
}

std::optional<RuleMatch> Matcher::run(ArrayRef<const State *> operands, ArrayRef<const State *> results) {
  for (auto [index, state] : enumerate(operands))
    if (!dealOut(rule.operands[index], *state, "operand " + Twine(index)))
      return std::nullopt;
  for (auto [index, state] : enumerate(results))
    if (!dealOut(rule.results[index], *state, "result " + Twine(index)))
      return std::nullopt;
  // Intervals move on from rank to rank as the pieces of the result do.
  for (const InnerCost &cost : rule.inner)
    for (const SlidingDim &slide : cost.slides)
      if (slide.input >= 0 && !match.splits[slide.result].empty() &&
          match.splits[slide.input] != match.splits[slide.result] &&
          !areApart(rule, slide, match.splits[slide.input], match.splits[slide.result])) {
        fail("a dim of the result is split otherwise than that of the operand that it is made of");
        return std::nullopt;
      }
  unsigned regrouped = 0;
  for (const Regroup &regroup : rule.regroups)
    regrouped += isRegrouped(regroup.factor, match.splits[regroup.factor]);
  if (regrouped > 1) {
    fail("several dims are split into pieces that do not line up");
    return std::nullopt;
  }
  match.choices.assign(mesh.numAtoms(), 0);
  for (unsigned atom = 0; atom < mesh.numAtoms(); ++atom)
    if (!findChoice(atom, operands, results))
      return std::nullopt;
  return std::move(match);
}

bool cleave::spmd::areApart(const ShardingRule &rule, const SlidingDim &slide, const AtomList &input,
                            const AtomList &result) {
  return rule.findSingleSplit(slide.result) >= 0 &&
         none_of(result, [&](AtomId atom) { return is_contained(input, atom); });
}

std::optional<RuleMatch> cleave::spmd::matchRule(const AtomMesh &mesh, const ShardingRule &rule,
                                                 ArrayRef<const State *> operands, ArrayRef<const State *> results,
                                                 std::string &error) {
  [[maybe_unused]] auto fits = [](const TensorFactors &factors, const State *state) {
    return factors.size() == state->rank();
  };
  assert(llvm::all_of_zip(rule.operands, operands, fits) && operands.size() == rule.operands.size() &&
         llvm::all_of_zip(rule.results, results, fits) && results.size() == rule.results.size() &&
         "one state per tensor of the rule, with its rank");
  return Matcher(mesh, rule, error).run(operands, results);
}
