//===- RankTable.h - numbers that differ between ranks ----------*- C++ -*-===//
//
// Ranks run one program; where a shard begins, which piece of a tensor is a rank's own, comes from a table:
//
//   column          rank 0  1  2  3        of the mesh data=2, model=2
//   "data * 4"           0  0  4  4        4 times the index along data
//   "model * 64"         0 64  0 64
//
// A column is made where it is first asked for, and called after what is in it.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_DIALECT_EXEC_MEMORY_RANKTABLE_H
#define CLEAVE_LIB_DIALECT_EXEC_MEMORY_RANKTABLE_H

#include "cleave/Dialect/Exec/IR/Exec.h"
#include <map>

namespace cleave::exec {

class RankTable {
public:
  /// Precondition: a module without a table.
  explicit RankTable(mlir::ModuleOp module) : module(module), mesh(spmd::getMesh(module)) {}

  NumberAttr get(int64_t base);
  /// `factor` times the rank's row-major index along `axes`.
  NumberAttr get(llvm::ArrayRef<spmd::AxisAttr> axes, int64_t factor);
  NumberAttr add(NumberAttr a, NumberAttr b);
  /// The lesser of two numbers on each rank.
  NumberAttr atMost(NumberAttr a, NumberAttr most);
  /// What of `size` positions from `start` on lies below `end`.
  NumberAttr countBelow(NumberAttr end, NumberAttr start, int64_t size);
  NumberAttr add(NumberAttr a, int64_t b) {
    return NumberAttr::get(module.getContext(), a.getBase() + b, a.getColumn());
  }

  /// Leaves the table with the module.
  void store();

private:
  using Column = llvm::SmallVector<int64_t>;

  /// The column `name`, made of what `compute` says of each rank; a number without column where all ranks have the same.
  NumberAttr getComputed(llvm::Twine name, llvm::function_ref<int64_t(int64_t rank)> compute);
  int64_t evaluate(NumberAttr number, int64_t rank) const;
  static std::string format(NumberAttr number);

  mlir::ModuleOp module;
  spmd::MeshAttr mesh; ///< null: there is one rank
  std::map<std::string, Column, std::less<>> columns;
};

} // namespace cleave::exec

#endif // CLEAVE_LIB_DIALECT_EXEC_MEMORY_RANKTABLE_H
