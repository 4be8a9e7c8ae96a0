//===- Lifetimes.h - whose bytes are where, when ----------------*- C++ -*-===//
//
// A rank's commands are walked once, with the bytes of each buffer as segments: which tensor is in them, which command
// put it there, and who has read it since.
//
//   bytes     0          64           192        256
//   tensor    | %x       | %y         | none     |
//   written   | on 0     | on 1       |          |
//
// A command must find the tensors that it reads (M3), and streams must know of what they touch (E2): each has a clock, which
// events pass on.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_DIALECT_EXEC_MEMORY_LIFETIMES_H
#define CLEAVE_LIB_DIALECT_EXEC_MEMORY_LIFETIMES_H

#include "Ranges.h"

#include <map>

namespace cleave::exec {

class Lifetimes {
public:
  /// Of one rank. Precondition: streams are below `streams`.
  Lifetimes(const Ranges &ranges, int64_t rank, unsigned streams);

  /// Walks a block. Errors are emitted on commands, with the rank.
  llvm::LogicalResult check(mlir::Block &block);

private:
  /// Per stream how many of its commands are known to be done.
  using Clock = llvm::SmallVector<int64_t, 2>;
  struct Segment {
    int64_t end;
    mlir::Value tensor; ///< null: there before the first command
    mlir::Operation *writer;
    unsigned stream;
    int64_t time;
    Clock readers;
  };
  using Segments = std::map<int64_t, Segment>;

  llvm::LogicalResult checkCommand(CommandOpInterface op);
  llvm::LogicalResult checkShared(CommandOpInterface op);
  void standStill();
  bool mayShare(CommandOpInterface op, unsigned read, unsigned write);
  llvm::LogicalResult read(mlir::Operation *op, mlir::Value view, unsigned stream);
  llvm::LogicalResult write(mlir::Operation *op, mlir::Value view, unsigned stream);
  llvm::LogicalResult checkKnown(mlir::Operation *op, const Segment &segment, unsigned stream, bool isWrite);
  static void split(Segments &segments, int64_t at);

  const Ranges &ranges;
  int64_t rank;
  std::vector<Segments> buffers;
  llvm::SmallVector<Clock, 2> clocks;
  llvm::DenseMap<int64_t, Clock> events;
};

} // namespace cleave::exec

#endif // CLEAVE_LIB_DIALECT_EXEC_MEMORY_LIFETIMES_H
