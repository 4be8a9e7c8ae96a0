//===- PairTile.h - sums of products of bf16 --------------------*- C++ -*-===//
//
// As Tile.h, of numbers that lie in memory as bf16, two neighbors along the depth as one *pair* of 32 bits. Three ways, by what
// the processor has:
//
//   tiles     16 rows x 32 numbers times 32 numbers x 16 columns, one instruction (AMX)
//   pairs     sum + a.low * b.low + a.high * b.high, lane by lane, one instruction (AVX512_BF16)
//   widened   a pair is two numbers of f32: one shifted, one masked
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_CODEGEN_HOST_PAIRTILE_H
#define CLEAVE_LIB_CODEGEN_HOST_PAIRTILE_H

#include "../Tile.h"

namespace cleave::codegen {

/// `lanes` pairs from `place`, an element of a buffer of 16 bits, on: integers of 32 bits.
mlir::Value loadPairs(Emitter &e, mlir::Value buffer, mlir::Value place);

/// What an instruction for tiles works on: 16 rows of 64 bytes.
constexpr int64_t kTileRows = 16, kTileDepth = 32;

/// True if tiles go into a depth of so many numbers.
bool canTile(Emitter &e, int64_t depth);

/// A block of sums: rows of numbers of bf16 times vectors of pairs, in f32.
struct PairBlock {
  TileShape shape;
  /// How many rows there are in all: of 16 or more, a tile may compute up to 15 in front of the block a second time.
  int64_t allRows;
  /// Numbers to sum, of the last dim an even number; or, of one dim, `end` numbers, known when the kernel runs.
  llvm::SmallVector<int64_t> depth;
  mlir::Value end;
  /// A buffer of 16 bits. `number(row, k)` is a place in it, and rows lie `apart`.
  mlir::Value numbers;
  int64_t apart;
  llvm::function_ref<mlir::Value(int64_t, llvm::ArrayRef<mlir::Value>)> number;
  /// A buffer of 16 bits, or of 32: `vector(v, k)` is the place of as many pairs as there are lanes, side by side; those of the
  /// next two numbers follow.
  mlir::Value pairs;
  llvm::function_ref<mlir::Value(int64_t, llvm::ArrayRef<mlir::Value>)> vector;
  /// Sums go to a buffer of f32, row 0 to `place`.
  mlir::Value out, place;
  int64_t outApart;
};
void multiplyPairs(Emitter &e, const PairBlock &block);

/// f32 as bf16, for numbers that are to be multiplied: as 16 bits, denormals perhaps as zeros.
mlir::Value roundToHalves(Emitter &e, mlir::Value vector);

} // namespace cleave::codegen

#endif // CLEAVE_LIB_CODEGEN_HOST_PAIRTILE_H
