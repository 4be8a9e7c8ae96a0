//===- Flash.h - attention by tiles of keys ---------------------*- C++ -*-===//
//
// What the two ways to multiply have in common: a block has some queries of a head, and keys and values go through shared memory a
// tile at a time, with a running largest score. A lane has scores and sums of some rows (its *lines*), which it shares with its
// neighbors in the warp.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_CODEGEN_DEVICE_FLASH_H
#define CLEAVE_LIB_CODEGEN_DEVICE_FLASH_H

#include "../Attention.h"
#include "Templates.h"
#include "cleave/Dialect/Nn/IR/Ops/Attention.h"

namespace cleave::codegen {

class FlashKernel {
public:
  /// Queries, keys and values, of one type, which is what is multiplied.
  using Operands = std::array<mlir::Value, 3>;
  FlashKernel(DeviceEmitter &e, nn::AttentionOp op, Operands operands, TileSink sink);
  virtual ~FlashKernel() = default;
  /// Blocks have parts of the keys, and leave what they make of them there.
  void divide(AttentionParts own) { parts = own; }
  /// False where a block does not find room in shared memory.
  bool choose();
  void run();

  /// Queries of a warp, in both ways.
  static constexpr int64_t kRows = kQueriesOfBlock;

protected:
  struct Side {
    mlir::Value operand;
    int64_t rows = 0, columns = 0, padded = 0, pitch = 0; ///< of a head; of a row in shared memory
    mlir::Value memory = {};
  };

  /// How many rows a lane has, and how many neighboring lanes have a row.
  virtual int64_t countLines() const = 0;
  virtual int64_t countSharers() const = 0;
  /// Row `line` of this lane in its warp.
  virtual mlir::Value getLine(int64_t line) = 0;
  /// Elements of a row of `columns`, with what is multiplied behind them, and how far apart rows lie.
  virtual std::pair<int64_t, int64_t> padRow(int64_t columns, bool isValue) const = 0;
  /// Elements that a block wants in shared memory beside queries, keys and values.
  virtual int64_t countMore() const { return 0; }
  /// True if values have memory of their own; else they come where keys were.
  virtual bool isApart() const { return true; }
  /// Keys of a tile: the most that there are registers for.
  virtual int64_t getMostKeys() const = 0;
  /// Once, before anything else: places and memory are known.
  virtual void begin() = 0;
  /// Products of queries and keys of a tile, as many for each line, one line after the other.
  virtual Values multiplyKeys() = 0;
  /// Where in the tile the key of a line's score lies.
  virtual mlir::Value getKey(int64_t number) = 0;
  /// None so far, as many for each line, one line after the other; numbers or vectors.
  virtual Values makeSums() = 0;
  /// Adds values of the tile that begins at `first`, weighed, to sums.
  virtual void addValues(mlir::Value first, mlir::ValueRange weights, llvm::MutableArrayRef<mlir::Value> sums) = 0;
  virtual void storeLine(mlir::Value row, mlir::ValueRange sums) = 0;

  Side makeSide(mlir::Value operand, int64_t rows, bool isValue);
  void fill(const Side &side, mlir::Value headPlace, mlir::Value first, int64_t rows);
  /// Hands out the numbers of a row from `column` on, as far as row and columns are there.
  void storeAt(mlir::Value row, mlir::Value column, mlir::Value numbers, bool mayEnd);
  int64_t getBits() const { return ElementBuilder::getStoredType(element).getIntOrFloatBitWidth(); }

  DeviceEmitter &e;
  nn::AttentionOp op;
  Operands operands;
  TileSink sink;
  mlir::Type element, compute;
  int64_t heads, queries, keys, size, valueSize;
  int64_t warps = 1, height = 64; ///< of a block; keys of a tile
  Side query, key, value;
  Head head;
  mlir::Value kvHead, firstRow, warpRow; ///< of the block; of the warp in its block
  std::optional<AttentionParts> parts;
  mlir::Value part, firstKey, endKey; ///< of the block

private:
  int64_t countBytes() const;
  void place();
  void overParts(int64_t count, llvm::function_ref<void(mlir::Value)> body);
  void clear(const Side &side, int64_t rows);
  void finishScores(mlir::Value first, Values &scores);
  Values step(mlir::Value first, Values carried);
  void store(mlir::ValueRange carried);
  void storeLog(mlir::Value row, mlir::Value largest, mlir::Value sum);
  int64_t countParts() const { return parts ? llvm::divideCeil(keys, parts->size) : 1; }
  mlir::Value getPartPlace(mlir::Value row);
  bool mayEndInTile() const { return keys % height || (parts && parts->size % height); }
  mlir::Value getRow(int64_t line) { return e.places.add(e.places.add(firstRow, warpRow), getLine(line)); }
  mlir::Value larger(mlir::Value x, mlir::Value y) { return e.elements.extremum(true, x, y, false); }
  mlir::Value scale(mlir::Value sums, mlir::Value factor);
};

/// Products by mma.sync (Device/FlashWarps.cpp), of f16, bf16, or f32 where fewer bits are enough.
std::unique_ptr<FlashKernel> makeFlashOfWarps(DeviceEmitter &e, nn::AttentionOp op, FlashKernel::Operands operands,
                                              TileSink sink);
/// Products of f32, fused, lane by lane (Device/FlashLanes.cpp).
std::unique_ptr<FlashKernel> makeFlashOfLanes(DeviceEmitter &e, nn::AttentionOp op, FlashKernel::Operands operands,
                                              TileSink sink);

} // namespace cleave::codegen

#endif // CLEAVE_LIB_CODEGEN_DEVICE_FLASH_H
