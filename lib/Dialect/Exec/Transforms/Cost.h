//===- Cost.h - what is cheaper, by bytes moved and launches ----*- C++ -*-===//
//
// A kernel of elementwise ops is as fast as the memory that it reads and writes, so everything is counted in bytes: those
// moved, those that could have been moved while an op computes, and those that could have been moved while a kernel starts.
// The numbers are from measurements of one core with vector units: an elementwise op takes 0.1 to 0.3 ns an element (0.3: Gelu),
// memory 0.1 ns a byte; a kernel starts in one or two microseconds, on a device too.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_DIALECT_EXEC_TRANSFORMS_COST_H
#define CLEAVE_LIB_DIALECT_EXEC_TRANSFORMS_COST_H

#include "mlir/IR/Value.h"

namespace cleave::exec {

/// Bytes that could be moved while an op computes an element.
inline constexpr int64_t kOpBytes = 2;
/// Bytes that could be moved while a kernel starts.
inline constexpr int64_t kLaunchBytes = 16384;
/// Ops of a kernel: it takes time to compile that grows with them, and values in registers are few.
inline constexpr size_t kMostOps = 48;
/// Each op behind an anchor stands in its code once for each vector of a tile.
inline constexpr size_t kMostOpsWithAnchor = 16;

int64_t countElements(mlir::Value value);
/// A bool is a byte.
int64_t countBytes(mlir::Value value);

/// Of the space that `op`, which has one result, walks: of its rows, or of its result.
int64_t countReadElements(mlir::Operation *op);

/// What computing a value again, for each element that a reader wants of it, costs.
struct Chain {
  int64_t bytes = 0; ///< of the stored values that it begins with
  int64_t ops = 0;   ///< for each element
};

/// True if each reader had better compute what it reads of `value` by itself than that the value is stored for all. A reader
/// of r elements reads the share min(1, r / elements(value)):
///
///     sum over readers (share * bytes + r * ops * kOpBytes)  <  bytes + bytes(value) + loads
///
/// On the right, if a reader reads all, it stores the value, and the others load their shares of it; if none does, a
/// kernel of its own stores it (kLaunchBytes), and all load theirs. Precondition: there are several readers.
bool isCheaperInReaders(const Chain &chain, mlir::Value value);

/// True if the only reader of `value` had better compute it in its own kernel, `elements` times instead of once for each
/// element, than that it is stored and loaded, which takes a launch more:
///
///     (elements - elements(value)) * ops * kOpBytes  <=  2 * bytes(value) + kLaunchBytes
bool isCheaperInReader(int64_t ops, mlir::Value value, int64_t elements);

} // namespace cleave::exec

#endif // CLEAVE_LIB_DIALECT_EXEC_TRANSFORMS_COST_H
