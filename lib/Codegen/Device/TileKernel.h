//===- TileKernel.h - how a tile goes along the depth -----------*- C++ -*-===//
#ifndef CLEAVE_LIB_CODEGEN_DEVICE_TILEKERNEL_H
#define CLEAVE_LIB_CODEGEN_DEVICE_TILEKERNEL_H

#include "Tile.h"

namespace cleave::codegen {

/// Who makes what of a block: `rows` x `columns` sums, of `depth` at a time. Those of `rowsEach` x `columnsEach` are a
/// thread's, or a warp's where it multiplies as one; groups of threads make the same sums of other parts of the depth.
struct Blocking {
  int64_t rows, columns, depth, rowsEach, columnsEach, groups;
};

/// A kernel, but for how sums are made of what lies in shared memory.
class TileKernel {
public:
  TileKernel(DeviceEmitter &e, TileSource &source, Blocking blocking);
  virtual ~TileKernel() = default;
  void run();

protected:
  /// Threads that share one part of the sums.
  virtual int64_t getTeam() const = 0;
  /// Once, before anything else: threads and memory are known.
  virtual void begin() = 0;
  virtual Values makeSums() = 0;
  /// Adds a part of the depth that lies at `stages` in the memory of both sides.
  virtual void multiply(std::array<mlir::Value, 2> stages, Values &sums) = 0;
  /// Sums leave in passes of so many rows of each team.
  virtual int64_t getRowsEachPass() const = 0;
  /// Which of the block's rows a row of a pass is.
  virtual mlir::Value getRow(int64_t pass, mlir::Value row) = 0;
  /// Stores this thread's sums of a pass to `memory`, whose rows are `pitch` long; row `first` is the pass's first.
  virtual void put(int64_t pass, mlir::ValueRange sums, mlir::Value memory, int64_t pitch, mlir::Value first) = 0;

  struct Part {
    int64_t extent = 0, wide = 1, pitch = 0, size = 0; ///< rows or columns of the block; elements of a stage
    bool isCopied = false;                             ///< by cp.async
    mlir::Value memory, first;                         ///< first row or column of the block
  };

  DeviceEmitter &e;
  TileSource &source;
  Blocking blocking;
  mlir::Type compute;
  Part parts[2];
  /// Of this thread: the number of its group, and of its team along rows and columns.
  mlir::Value group, teamRow, teamColumn;

private:
  void place();
  void layMemory();
  int64_t countPieces(const Part &part) const { return part.extent * blocking.depth / part.wide; }
  std::pair<mlir::Value, mlir::Value> findPiece(unsigned side, int64_t number, mlir::Value &isThere);
  mlir::Value getStored(unsigned side, mlir::Value inOuter, mlir::Value inDepth, mlir::Value stage);
  mlir::Value toOuter(unsigned side, mlir::Value inOuter);
  mlir::Value toDepth(unsigned side, mlir::Value step, mlir::Value inDepth);
  bool canCopy(unsigned side);
  void copy(unsigned side, mlir::Value step, mlir::Value stage);
  Values fetch(mlir::Value step);
  void putPieces(mlir::ValueRange pieces, mlir::Value stage);
  Values walkDepth();
  void storePass(int64_t pass, mlir::Value memory);
  void storeSums(mlir::ValueRange sums);
  bool copies() const { return parts[0].isCopied || parts[1].isCopied; }

  int64_t stages = 2;
  mlir::Value bytes;
};

} // namespace cleave::codegen

#endif // CLEAVE_LIB_CODEGEN_DEVICE_TILEKERNEL_H
