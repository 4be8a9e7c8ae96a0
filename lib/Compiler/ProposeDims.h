//===- ProposeDims.h - sizes for dims that have none ------------*- C++ -*-===//
#ifndef CLEAVE_LIB_COMPILER_PROPOSEDIMS_H
#define CLEAVE_LIB_COMPILER_PROPOSEDIMS_H

#include "cleave/Import/Onnx/Import.h"

namespace cleave {

/// A symbol that is not free: `total` is `past` and `seq`, or `past` and 1 more, or just another one.
struct DimRelation {
  std::string dim;
  std::vector<std::string> terms;
  int64_t more = 0;

  /// `'total' is 'past' + 1`, `'rows' is 'batch'`.
  std::string format() const;
  /// Just another symbol.
  bool isEqual() const { return terms.size() == 1 && more == 0; }
  /// `past + 1`
  std::string formatSum() const;
  /// What `sizes` make of it; nothing where one of its terms has none.
  std::optional<int64_t> evaluate(const std::map<std::string, int64_t> &sizes) const;
};

/// Symbols of the inputs of a model, what must hold between them, and sizes that hold it.
struct DimProposal {
  std::vector<DimRelation> relations;
  /// As `--dim` has them, of symbols that are not given; empty where none were found with which the model can be imported.
  std::vector<std::pair<std::string, int64_t>> sizes;
};

/// What must hold is found by trying: the model is imported with sizes of which no two are alike, then with one symbol as a sum of others,
/// then with two. Trials are counted by nodes, so that large models are not tried long. `batch`: a size for batches. Sizes that are proposed
/// have all places that the model looks up without asking an input; the model is not run.
DimProposal proposeDims(mlir::MLIRContext *context, onnx::ModelFile &model, const onnx::ImportOptions &given,
                        int64_t batch);

/// The largest size of `dim`, of those below the given one, with which the model can be imported; all other sizes are those of `given`. Nothing
/// where it is not the size of this dim that the model refuses, or that would take too many trials. Precondition: the given sizes are refused.
std::optional<int64_t> findMost(mlir::MLIRContext *context, onnx::ModelFile &model, const onnx::ImportOptions &given,
                                llvm::StringRef dim);

} // namespace cleave

#endif // CLEAVE_LIB_COMPILER_PROPOSEDIMS_H
