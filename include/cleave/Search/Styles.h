//===- Styles.h - plans as people call them ---------------------*- C++ -*-===//
//
// A style says what an axis cuts, by what dims are to the model (DimClasses.h):
//
//   data        the batch of inputs
//   fsdp        the same, and each weight is stored in as many pieces
//   megatron    classes of weights by coloring (ClassColoring.h): columns of one product are rows of the next
//   sequence    megatron, and what a sum leaves is cut along its tokens, until the next product
//   context     tokens
//   expert      experts, and the batch where it divides
//   channels    megatron of convolutions
//   spatial     the first dim of an input under a window: rows of pictures
//
// Parts of the axis are laid one after the other, for what is left of a class may be another one: 8 heads of queries with 2 of keys on 4
// ranks are 2 heads of keys, each with 2 of 4 groups of queries.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SEARCH_STYLES_H
#define CLEAVE_SEARCH_STYLES_H

#include "cleave/Plan/Style.h"
#include "cleave/Search/ClassColoring.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"

namespace cleave::spmd {

/// By value, what the problem does not know.
struct StyledModel {
  /// A caller of the model gives it; it is a weight, and no constant; a plan can name it.
  std::vector<char> isGiven, isWeight, isNamed;
};

/// What an axis cuts of each input, and of some results.
class StyledPlan {
public:
  using DimAtoms = llvm::SmallVector<AtomList, 4>;

  /// `problem` must outlive this.
  StyledPlan(const Problem &problem, StyledModel model);

  /// Adds what these atoms cut. Fails where the model has nothing of the style, or what has to be cut does not divide.
  llvm::Error apply(Style style, llvm::ArrayRef<AtomId> atoms);

  /// Inputs that are cut and results that are to be, all dims of each.
  const llvm::MapVector<ValueId, DimAtoms> &getSplits() const { return splits; }
  llvm::ArrayRef<std::string> getRemarks() const { return remarks; }

private:
  using Eligible = llvm::function_ref<bool(const DimClasses &, DimClassId)>;

  llvm::Error splitColored(Eligible eligible, DimTag tag, llvm::ArrayRef<AtomId> atoms);
  llvm::Error splitBatch(llvm::ArrayRef<AtomId> atoms);
  llvm::Error splitTokens(llvm::ArrayRef<AtomId> atoms);
  llvm::Error splitExperts(llvm::ArrayRef<AtomId> atoms);
  llvm::Error splitPictures(llvm::ArrayRef<AtomId> atoms);
  llvm::Error splitChannels(llvm::ArrayRef<AtomId> atoms);
  llvm::Error splitWeights(llvm::ArrayRef<AtomId> atoms);
  std::optional<std::pair<ValueId, unsigned>> findScattered(const DimClasses &classes, OpId product) const;
  llvm::Error splitTokensBetween(llvm::ArrayRef<AtomId> atoms);
  void storeWeights(llvm::ArrayRef<AtomId> atoms);
  bool isRuled(ValueId value, DimTag tag) const;
  std::optional<unsigned> pickDim(const DimClasses &classes, const ClassColoring &coloring, ValueId value) const;
  void layAtom(const DimClasses &classes, const ClassColoring &coloring, DimTag tag, AtomId atom);
  void anchorResults(const DimClasses &classes, const ClassColoring &coloring, DimTag tag, AtomId atom);
  std::vector<int64_t> findLeastExtents(const DimClasses &classes) const;
  llvm::Error checkSplit(const DimClasses &whole, const ClassColoring &wanted, llvm::ArrayRef<int64_t> before,
                         DimTag tag, int64_t ranks) const;
  std::string nameOf(OpId op, DimTag tag, int64_t extent) const;
  DimAtoms &splitsOf(ValueId value);
  bool touchesParameter(OpId op) const;

  const Problem &problem;
  StyledModel model;
  /// By value: it is made of parameters alone; the ops that read it.
  std::vector<char> isOfWeights;
  std::vector<llvm::SmallVector<OpId, 1>> readers;
  /// Into how many each place is cut.
  std::vector<int64_t> pieces;
  /// How each op is cut by the atom that was laid first in the last style.
  ClassColoring last;
  llvm::MapVector<ValueId, DimAtoms> splits;
  std::vector<std::string> remarks;
};

} // namespace cleave::spmd

#endif // CLEAVE_SEARCH_STYLES_H
