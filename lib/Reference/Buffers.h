//===- Buffers.h - the memory of all ranks ----------------------*- C++ -*-===//
//
// Bytes, as a planned program has them: what a view sees is whatever was written there last.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_REFERENCE_BUFFERS_H
#define CLEAVE_LIB_REFERENCE_BUFFERS_H

#include "Ranks.h"
#include "cleave/Dialect/Exec/IR/Exec.h"

namespace cleave::reference {

class Buffers {
public:
  /// Every byte is 0xff at first: a float that was never written is NaN.
  Buffers(mlir::ModuleOp module, int64_t numRanks);

  int64_t getNumRanks() const { return ranks.size(); }
  /// What `view` (of an exec.view) sees, row-major; of one rank or all.
  Tensor read(mlir::Value view, int64_t rank) const;
  PerRank read(mlir::Value view) const;
  void write(mlir::Value view, int64_t rank, const Tensor &tensor);

private:
  using Bytes = std::vector<char>;
  /// Where the first element lies.
  std::pair<unsigned, int64_t> find(exec::ViewOp view, int64_t rank) const;

  llvm::DenseMap<mlir::StringAttr, unsigned> numbers;
  std::vector<std::vector<Bytes>> ranks; ///< by rank, then buffer
};

} // namespace cleave::reference

#endif // CLEAVE_LIB_REFERENCE_BUFFERS_H
