//===- Tile.h - sums of products in blocks of a device ----------*- C++ -*-===//
//
// What contractions and convolutions have in common on devices. Two *sides* meet in a product: rows of the one, columns of the
// other, and the depth of both, each counted by one number. A block of threads makes a block of rows x columns:
//
//   for each step of the depth
//     a part of both sides     -> shared memory, while the part before is multiplied
//     shared memory            -> registers, products added to sums in registers
//   sums -> shared memory, some rows at a time -> the source, as wide as it stores
//
// A source says what sides are made of, and takes sums; the tile decides who does what.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_CODEGEN_DEVICE_TILE_H
#define CLEAVE_LIB_CODEGEN_DEVICE_TILE_H

#include "Emitter.h"

namespace cleave::codegen {

class TileSource {
public:
  /// Rows or columns of a product.
  struct Side {
    int64_t count = 1;
    bool alongDepth = true; ///< neighbors in memory are neighbors in depth, else rows or columns are
    int64_t together = 1;   ///< so many neighbors, from a multiple of it on, may be asked for at once
  };
  /// An element in memory.
  struct Location {
    mlir::Value buffer, place;
    mlir::Value isThere; ///< i1: else 0 is in its place; none: always
  };

  virtual ~TileSource() = default;
  /// Says which of the products is computed from here on.
  virtual void enter(mlir::Value batch) = 0;
  /// As many elements as there are lanes, side by side as the side lies.
  virtual mlir::Value load(unsigned side, mlir::Value outer, mlir::Value depth) = 0;
  /// Where these are, if they lie in memory as they are; then they are copied without passing through registers.
  virtual std::optional<Location> locate(unsigned side, mlir::Value outer, mlir::Value depth) { return std::nullopt; }
  /// Takes sums of a row, as many neighboring columns as there are lanes.
  virtual void store(mlir::Value row, mlir::Value column, mlir::Value sums) = 0;

  int64_t batches = 1, depth = 1;
  Side sides[2];          ///< rows, columns
  mlir::Type element;     ///< of both sides; products of f16 and bf16 are mma.sync's
  bool isShort = false;   ///< f32, of which fewer bits are enough
  int64_t storeLanes = 1; ///< divides the columns
};

void runTile(DeviceEmitter &e, TileSource &source);

} // namespace cleave::codegen

#endif // CLEAVE_LIB_CODEGEN_DEVICE_TILE_H
