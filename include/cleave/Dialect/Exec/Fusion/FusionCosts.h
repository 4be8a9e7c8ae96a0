//===- FusionCosts.h - what fusion saves, in bytes --------------*- C++ -*-===//
//
// A kernel of elementwise ops is as fast as the memory that it reads and writes, so everything is counted in bytes: those
// moved, those that could have been moved while an op computes, and those that could have been moved while a kernel starts. All three
// follow from the device: a core with vector units computes an element in 0.1 to 0.3 ns (0.3: Gelu), moves a byte in 0.1 ns, and
// starts a kernel in one or two microseconds; a GPU starts one as slowly, and meanwhile moves 300 times as much.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_EXEC_FUSION_FUSIONCOSTS_H
#define CLEAVE_DIALECT_EXEC_FUSION_FUSIONCOSTS_H

#include "cleave/Sharding/Cluster.h"
#include "mlir/IR/Value.h"

namespace cleave::exec {

/// What an elementwise op takes for an element, as flops of a product: the 0.2 ns of a core of 50 Gflop/s.
inline constexpr double kFlopsPerElement = 10;

/// Ops of a kernel: it takes time to compile that grows with them, and values in registers are few.
inline constexpr size_t kMostOps = 48;
/// As many operands of a concat.
inline constexpr size_t kMostConcatenated = 64;
/// Each op behind an anchor stands in its code once for each vector of a tile.
inline constexpr size_t kMostOpsWithAnchor = 16;
/// Ops that readers compute again for each element: each reader has the code of all of them.
inline constexpr int64_t kMostRepeatedOps = kMostOps;

int64_t countElements(mlir::Value value);

/// Of the space that `op`, which has one result, walks: of its rows, or of its result.
int64_t countReadElements(mlir::Operation *op);

/// What computing a value again, for each element that a reader wants of it, costs.
struct Chain {
  int64_t bytes = 0; ///< of the stored values that it begins with
  int64_t ops = 0;   ///< for each element
};

/// The costs of one device.
class FusionCosts {
public:
  explicit FusionCosts(const spmd::ClusterDevice &device);

  /// True if each reader had better compute what it reads of `value` by itself than that the value is stored for all. A reader
  /// of r elements reads the share min(1, r / elements(value)):
  ///
  ///     sum over readers (share * bytes + r * ops * opBytes)  <  bytes + bytes(value) + loads
  ///
  /// On the right, if a reader reads all, it stores the value, and the others load their shares of it; if none does, a
  /// kernel of its own stores it (launchBytes), and all load theirs. Precondition: there are several readers.
  bool isCheaperInReaders(const Chain &chain, mlir::Value value) const;

  /// True if the only reader of `value` had better compute it in its own kernel, `elements` times instead of once for each
  /// element, than that it is stored and loaded, which takes a launch more:
  ///
  ///     (elements - elements(value)) * ops * opBytes  <=  2 * bytes(value) + launchBytes
  bool isCheaperInReader(int64_t ops, mlir::Value value, int64_t elements) const;

private:
  /// Bytes that could be moved while an op computes an element, and while a kernel starts.
  double opBytes, launchBytes;
};

} // namespace cleave::exec

#endif // CLEAVE_DIALECT_EXEC_FUSION_FUSIONCOSTS_H
