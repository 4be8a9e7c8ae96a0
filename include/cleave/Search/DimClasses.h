//===- DimClasses.h - dims that are cut together ----------------*- C++ -*-===//
//
// What one axis of a mesh cuts at one op it cuts at the next without sending anything, if the dim goes on there: factors that are joined so
// are one class. What a class is to a model follows from where it stands, never from names:
//
//   x [batch, token, hidden]    w [hidden, wide]    w is a parameter
//
//   weight    wide, hidden: stands in the parameter of a product, and not in all of its operands
//   expert    stands in the parameter, the other operand and the result: a product for each
//   token     meets itself (attention), is summed over among values that are none of parameters, or is walked in order
//   picture   slides under a window
//   batch     none of these: nothing ever mixes its positions
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SEARCH_DIMCLASSES_H
#define CLEAVE_SEARCH_DIMCLASSES_H

#include "cleave/Solver/Problem.h"
#include "llvm/ADT/StringRef.h"

namespace cleave::spmd {

/// What a dim is to a model; of a class of which several are true the first of these.
enum class DimTag : uint8_t { Expert, Weight, Picture, Token, Batch };

constexpr DimTag kDimTags[] = {DimTag::Expert, DimTag::Weight, DimTag::Picture, DimTag::Token, DimTag::Batch};
/// What an axis is called that cuts such dims, in the order of the enum.
inline constexpr llvm::StringLiteral kTagAxes[] = {"expert", "model", "rows", "context", "data"};

using DimClassId = uint32_t;

class DimClasses {
public:
  /// `problem` must outlive this. Takes time that is linear in its operands.
  explicit DimClasses(const Problem &problem);

  /// The class of a factor of an op's rule.
  DimClassId ofFactor(OpId op, FactorId factor) const { return find(firstFactors[op] + factor); }
  DimTag getTag(DimClassId id) const { return tags[id]; }
  /// True of parameters, and of what is made of parameters alone.
  bool isOfParameters(ValueId value) const { return parameters[value]; }

private:
  using Element = uint32_t;

  Element find(Element element) const;
  void unite(Element a, Element b);
  void joinDims(const ShardingRule &from, Element fromFirst, const DimFactors &made, const ShardingRule &to,
                Element toFirst, const DimFactors &read);
  void joinUses();
  void tagAll();
  void tagOp(OpId op, std::vector<uint8_t> &marks) const;

  const Problem &problem;
  /// By op, where its factors begin; then by input, where its dims do.
  std::vector<Element> firstFactors, firstDims;
  mutable std::vector<Element> parents;
  std::vector<char> parameters;
  std::vector<DimTag> tags;
};

} // namespace cleave::spmd

#endif // CLEAVE_SEARCH_DIMCLASSES_H
