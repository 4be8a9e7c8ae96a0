//===- LaneTiles.h - products of tiles by lanes, in f32 ---------*- C++ -*-===//
//
// The lanes of a warp stand in four rows of eight. Of the warp's own rows, and those of a tile in shared memory, lane 8 g + c has
//
//   products   of own rows g, g + 4, .. (its *lines*) with the tile's rows c, c + 8, ..: of four of the depth it loads both, and
//              multiplies each with each, fused
//   sums       of four components of each 32, from 4 c on: of four of the tile's rows it loads factors and rows likewise
//
// Lanes of one row load the same own rows and factors, and the tile's rows side by side: no two of them want different words of one
// bank. Factors go through memory of the block.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_CODEGEN_DEVICE_LANETILES_H
#define CLEAVE_LIB_CODEGEN_DEVICE_LANETILES_H

#include "Templates.h"

namespace cleave::codegen {

struct LaneTiles {
  static constexpr int64_t kDown = 4, kAcross = 8, kWide = 4, kTogether = kAcross * kWide;

  /// Rows in shared memory, so many elements apart.
  struct Rows {
    mlir::Value memory;
    int64_t pitch = 0;
  };

  /// `warpRow`: the first row of the warp among those of its block; `height`: rows of a tile.
  LaneTiles(DeviceEmitter &e, mlir::Type compute, mlir::Value warpRow, int64_t lines, int64_t height);

  /// How far apart rows of factors are, a row of the tile's each.
  static int64_t getFactorPitch(int64_t height) { return height + kWide; }
  int64_t countEach() const { return height / kAcross; }
  int64_t countVectors(int64_t padded) const { return padded / kTogether; }
  /// Of own rows and those of the tile, as many for each line, one line after the other.
  Values multiply(Rows own, Rows tile, int64_t depth);
  /// Stores numbers as they come from `multiply`, for lanes of the same warp.
  void keep(mlir::Value factors, mlir::ValueRange numbers);
  /// A vector of each 32 components, for each line.
  Values makeSums(int64_t padded);
  /// Adds the tile's rows, each times its factor, to sums.
  void addRows(mlir::Value factors, Rows tile, int64_t padded, llvm::MutableArrayRef<mlir::Value> sums);

  mlir::Value down, across; ///< of the lane

private:
  mlir::Value loadFour(mlir::Value memory, mlir::Value at);
  Values loadLines(Rows rows, mlir::Value at);

  DeviceEmitter &e;
  mlir::Type compute;
  mlir::Value warpRow;
  int64_t lines, height;
};

} // namespace cleave::codegen

#endif // CLEAVE_LIB_CODEGEN_DEVICE_LANETILES_H
