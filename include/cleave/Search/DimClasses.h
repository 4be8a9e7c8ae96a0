//===- DimClasses.h - dims that are cut together ----------------*- C++ -*-===//
//
// What one axis of a mesh cuts at one op it cuts at the next without sending anything, if the dim goes on there: factors that are joined so
// are one class. What a class is to a model follows from where it stands, never from names:
//
//   x [batch, token, hidden]    w [hidden, wide]    w is a parameter
//
//   weight    wide, hidden: stands in the parameter of a product, and not in all of its operands
//   expert    stands in the parameter, the other operand and the result: a product for each (channels of a depthwise convolution are weights)
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
/// A factor of an op, or a dim of an input.
using DimPlace = uint32_t;

/// True of ops that look up rows of their first operand: rows that are cut are found by one rank each, and the others add zeros.
bool isLookup(const ShardingRule &rule);
/// True if a factor is in any dim, alone or with others.
bool standsIn(const TensorFactors &dims, FactorId factor);

/// By value: it is one of those, or made of one.
std::vector<char> findDependents(const Problem &problem, std::vector<char> isOne);

class DimClasses {
public:
  /// `problem` must outlive this. Takes time that is linear in its operands.
  explicit DimClasses(const Problem &problem) : DimClasses(problem, {}) {}
  /// Of what is left where factors and dims are cut already: `pieces` has for each place into how many. A factor that is cut into single
  /// positions is none any more, so that what the next axis cuts of [2 kv, 4 groups] is the groups. Empty: nothing is cut.
  DimClasses(const Problem &problem, std::vector<int64_t> pieces);

  /// The class of a factor of an op's rule.
  DimClassId ofFactor(OpId op, FactorId factor) const { return find(placeOf(op, factor)); }
  /// The class of a dim of an input.
  DimClassId ofDim(ValueId input, unsigned dim) const { return find(placeOfDim(input, dim)); }
  /// Places are numbered: the factors of all ops, then the dims of all inputs.
  size_t numPlaces() const { return parents.size(); }
  DimPlace placeOf(OpId op, FactorId factor) const { return firstFactors[op] + factor; }
  DimPlace placeOfDim(ValueId input, unsigned dim) const { return firstDims[input] + dim; }
  DimClassId ofPlace(DimPlace place) const { return find(place); }
  /// Positions of a place that are left.
  int64_t getExtent(DimPlace place) const { return extents[place]; }
  DimTag getTag(DimClassId id) const { return tags[id]; }
  /// True of parameters, and of what is made of parameters alone.
  bool isOfParameters(ValueId value) const { return parameters[value]; }

private:
  using Element = DimPlace;

  Element find(Element element) const;
  void unite(Element a, Element b);
  void joinDims(Element fromFirst, const DimFactors &made, Element toFirst, const DimFactors &read);
  void numberPlaces(llvm::ArrayRef<int64_t> pieces);
  void joinUses();
  void tagAll();
  void tagOp(OpId op, std::vector<uint8_t> &marks) const;

  const Problem &problem;
  /// By op, where its factors begin; then by input, where its dims do.
  std::vector<Element> firstFactors, firstDims;
  mutable std::vector<Element> parents;
  std::vector<int64_t> extents;
  std::vector<char> parameters;
  std::vector<DimTag> tags;
};

/// By value: it is of parameters (`isOfParameters`), or a matrix that is picked for each token out of those of all experts, [expert, in, out].
/// That is a weight still, as a row of a table is not.
std::vector<char> findWeights(const Problem &problem, const DimClasses &classes);

} // namespace cleave::spmd

#endif // CLEAVE_SEARCH_DIMCLASSES_H
