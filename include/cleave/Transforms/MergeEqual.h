//===- MergeEqual.h - equal ops merge, unused ones go -----------*- C++ -*-===//
#ifndef CLEAVE_TRANSFORMS_MERGEEQUAL_H
#define CLEAVE_TRANSFORMS_MERGEEQUAL_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"

namespace cleave {

/// Pure ops by what they compute: name, properties, operands and result types. Locations and notes (discardable
/// attributes) do not count.
class SeenOps {
public:
  /// The op seen first that computes what `op` does; `op` itself, which is then remembered, if there was none.
  mlir::Operation *getFirst(mlir::Operation *op);

  /// Room for as many ops: a table that grows is gone through each time.
  void reserve(size_t numOps) { entries.reserve(numOps); }

private:
  /// An op and the hash of what it computes: kept, so that a growing table need not look at all ops again.
  struct Entry {
    mlir::Operation *op;
    unsigned hash;
  };
  struct EntryInfo {
    static Entry getEmptyKey() { return {llvm::DenseMapInfo<mlir::Operation *>::getEmptyKey(), 0}; }
    static Entry getTombstoneKey() { return {llvm::DenseMapInfo<mlir::Operation *>::getTombstoneKey(), 0}; }
    static unsigned getHashValue(const Entry &entry) { return entry.hash; }
    static bool isEqual(const Entry &a, const Entry &b);
  };
  llvm::DenseSet<Entry, EntryInfo> entries;
};

/// Erases pure ops without users, whole chains of them, and every pure op whose like came before in its block: users
/// then read that one. Locations do not count, so the first one's names stay. Linear in ops; ops with regions are left
/// alone.
void mergeEqual(mlir::func::FuncOp func);
/// Likewise in one block.
void mergeEqual(mlir::Block &block);

} // namespace cleave

#endif // CLEAVE_TRANSFORMS_MERGEEQUAL_H
