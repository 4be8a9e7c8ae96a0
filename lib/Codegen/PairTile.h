//===- PairTile.h - sums of products of bf16 --------------------*- C++ -*-===//
//
// As Tile.h, of numbers that lie in memory as bf16, two neighbours along the depth as one *pair* of 32 bits. Three ways, by what
// the processor has:
//
//   tiles     16 rows x 32 numbers times 32 numbers x 16 columns, one instruction (AMX)
//   pairs     sum + a.low * b.low + a.high * b.high, lane by lane, one instruction (AVX512_BF16)
//   widened   a pair is two numbers of f32: one shifted, one masked
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_CODEGEN_PAIRTILE_H
#define CLEAVE_LIB_CODEGEN_PAIRTILE_H

#include "Tile.h"

namespace cleave::codegen {

/// `lanes` pairs from `place`, an element of a buffer of 16 bits, on: integers of 32 bits.
mlir::Value loadPairs(Emitter &e, mlir::Value buffer, mlir::Value place);

/// As sumTile: `pair(row, k)` gives a pair, `pairs(v, k)` a vector of them.
Values sumPairs(Emitter &e, TileShape shape, llvm::ArrayRef<int64_t> depth, Values sums,
                llvm::function_ref<mlir::Value(int64_t, llvm::ArrayRef<mlir::Value>)> pair,
                llvm::function_ref<mlir::Value(int64_t, llvm::ArrayRef<mlir::Value>)> pairs);

/// What an instruction for tiles works on: 16 rows of 64 bytes.
constexpr int64_t kTileRows = 16, kTileDepth = 32;

/// Where a tile begins: `buffer` of 16 or 32 bits a place, and how many places its rows are apart.
struct TilePlace {
  mlir::Value buffer, place;
  int64_t apart;
};

/// Sums of `rows` (at most 16) x 16 a tile, in tiles of `shape`, walk `depth`, whose last extent counts steps of 32 numbers, and
/// go to `out(row tile, column tile)`. Rows of a column tile's operand are 16 pairs side by side.
void multiplyTiles(Emitter &e, int64_t rows, TileShape shape, llvm::ArrayRef<int64_t> depth,
                   llvm::function_ref<TilePlace(int64_t, llvm::ArrayRef<mlir::Value>)> numbers,
                   llvm::function_ref<TilePlace(int64_t, llvm::ArrayRef<mlir::Value>)> pairs,
                   llvm::function_ref<TilePlace(int64_t, int64_t)> out);

} // namespace cleave::codegen

#endif // CLEAVE_LIB_CODEGEN_PAIRTILE_H
