//===- Clusters.h - which ops run as one kernel -----------------*- C++ -*-===//
//
// One walk over a block, in program order. An op joins the clusters that made its operands, which become one, where all
// of this holds; else it starts its own. Which forms may follow which in a kernel says a table (Sharding/Fusion.h):
//
//   order    nothing outside of the cluster has read from it yet. The kernel runs where its last op stands, so whoever
//            reads first closes it
//   space    what has readers outside has one iteration space. An op that reads element by element, in place, keeps it;
//            one that moves, repeats or drops elements may join only as the cluster's one reader, and then the space is
//            that of its result
//   rows     one kind of row: an op that walks rows joins if there are none yet, or the same ones. Behind it only what
//            pairs rows with rows, or with one element a row; never anything that would compute a row a second time
//   cost     where elements are read more often than once, computing them as often is cheaper than storing them
//
//   time     what combines microbatches (`spmd.combines`) joins what made its last operand: no microbatch waits for later ones
//   anchor   at most one contraction, convolution, attention, window or sum of rows (`isAnchor`). It comes first: nothing joins it but what
//            works element by element in the space of its result, its epilogue, and a transpose at the end. No rows
//
// What only moves elements on their way to anchors is in no cluster: these read through it (`isInlined`). An alias goes along with the cluster of its operand: it is free inside and outside. Values with several readers that
// are cheap are not put into a cluster at all; each reader computes them (`isInlined`). A concat of rows that ranks have exchanged in
// parts stays alone: memory is planned so that there is nothing to do.
//
//       %s = add %x, %r            cluster 0: add, layer_norm, cast; results %s (read again below) and %c,
//       %n = layer_norm %s         both with the rows of %s
//       %c = cast %n
//       %y = einsum %c, %w         closes it; cluster 1: einsum, add
//       %t = add %s, %y
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_EXEC_FUSION_CLUSTERS_H
#define CLEAVE_DIALECT_EXEC_FUSION_CLUSTERS_H

#include "cleave/Dialect/Exec/Fusion/FusionCosts.h"
#include "cleave/Dialect/Exec/IR/Exec.h"
#include "cleave/Sharding/Fusion.h"
#include "llvm/ADT/DenseSet.h"

namespace cleave::exec {

/// The rows that an op walks: of a tensor of `shape`, along `dims`.
struct Rows {
  llvm::SmallVector<int64_t> shape, dims;
  int64_t count = 0;
  bool isScan = false;

  /// Those of an op of Form::Row or Form::Scan; nothing for others.
  static std::optional<Rows> get(mlir::Operation *op);
  /// The same rows, for one op that follows another.
  bool operator==(const Rows &other) const;
  /// True if one kernel can walk both.
  bool mayShare(const Rows &other) const { return *this == other && !isScan && !other.isScan; }
  /// True if a tensor of this shape has one element a row, in the rows' order.
  bool hasOneARow(llvm::ArrayRef<int64_t> other) const;
  /// The shape with one element a row that broadcasts to `shape`.
  llvm::SmallVector<int64_t> getKeptShape() const;
};

/// True for ops that may share a kernel with others: one result, and a form that is computed from point to point or
/// along a row.
bool isFusable(mlir::Operation *op);

/// True for what a kernel is built around: a template of its own computes it, tile by tile, and what follows on the tile. A
/// contraction of floats, dim by dim of one size; a convolution, attention or window of floats; rows of floats that are added up in a table.
bool isAnchor(mlir::Operation *op);

/// True for movement that is a choice of start and step per dim: a transpose, slice or repetition. Whoever reads through
/// it computes nothing twice.
bool isView(mlir::Operation *op);

/// A constant of one number: each kernel that reads it has its own.
bool isNumber(mlir::Operation *op);

struct Cluster {
  /// In program order once all is done; aliases among them.
  llvm::SmallVector<mlir::Operation *, 4> ops;
  std::optional<Rows> rows;
  bool hasAnchor = false;
  /// Of its iteration space.
  int64_t elements = 0;
  /// Uses of its values by ops that are not in it.
  int64_t openUses = 0;
  bool isOpen = true;

  spmd::KernelKind getKind() const {
    return hasAnchor ? spmd::KernelKind::Tiles : rows ? spmd::KernelKind::Rows : spmd::KernelKind::Points;
  }
};

class Clusters {
public:
  Clusters(mlir::Block &block, const FusionCosts &costs);

  /// In the order of their last ops, those that hold more than aliases.
  llvm::SmallVector<const Cluster *> getAll() const;
  /// The cluster that `op` is in, or null.
  const Cluster *getCluster(mlir::Operation *op) const;
  /// True if there is no kernel that computes `op`; every reader does.
  bool isInlined(mlir::Operation *op) const { return inlined.contains(op); }

private:
  void findViews(mlir::Block &block);
  void findEpilogues(mlir::Block &block);
  void place(mlir::Operation *op);
  bool inlineIntoReaders(mlir::Operation *op);
  std::optional<Chain> getChain(mlir::Operation *op) const;
  void joinAlias(mlir::Operation *op);
  /// True if `op`, in the cluster `own`, may become one with the cluster `other` that it reads from.
  bool mayJoin(mlir::Operation *op, const Cluster &own, unsigned other) const;
  bool mayRead(mlir::Operation *op, mlir::OpOperand &operand, const Cluster &from, bool isOnlyReader) const;
  void merge(unsigned from, unsigned into);
  /// The open cluster that `value` is made in; nothing otherwise.
  std::optional<unsigned> find(mlir::Value value) const;
  void closeReadClusters(mlir::Operation *op);
  /// Counts the uses that `op` makes and gives once it is in `cluster`.
  void countUses(mlir::Operation *op, unsigned cluster);

  const FusionCosts costs;
  llvm::SmallVector<Cluster> clusters;
  llvm::DenseMap<mlir::Operation *, unsigned> clusterOf;
  llvm::DenseMap<mlir::Operation *, Chain> inlined;
  /// Movement that nothing but anchors reads.
  llvm::DenseSet<mlir::Operation *> views;
  /// Anchors, and what works element by element on their results.
  llvm::DenseSet<mlir::Operation *> epilogues;
  /// Position of each op in the block.
  llvm::DenseMap<mlir::Operation *, unsigned> positions;
};

/// The first op of each kernel that exec-fuse-kernels would make of the block as it is now, by these costs. Linear. What passes before it
/// do (attention that is recognized, masks that are written out) makes fewer of some and more of others.
llvm::DenseSet<mlir::Operation *> findKernelStarts(mlir::Block &block, const FusionCosts &costs);

} // namespace cleave::exec

#endif // CLEAVE_DIALECT_EXEC_FUSION_CLUSTERS_H
