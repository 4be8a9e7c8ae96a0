//===- Window.h - windows over planes ---------------------------*- C++ -*-===//
//
// A convolution's input, laid so that neighboring windows are neighboring elements whatever the stride: one plane for each
// phase of the stride, with its border of padding, and no end of a row in between:
//
//   row 0 of a plane   . x x x x .      windows of stride 1, kernel 3: number q (row-major, `pitch` a row) begins at q;
//   row 1              . x x x x .      tap (i, j) of it lies i * pitch + j further. Windows that hang over the end of a
//                                       row are computed and never looked at
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_CODEGEN_HOST_WINDOW_H
#define CLEAVE_LIB_CODEGEN_HOST_WINDOW_H

#include "../Tile.h"
#include "cleave/Dialect/Nn/IR/Ops/Convolution.h"

namespace cleave::codegen {

/// One spatial dim: how windows move along it.
struct WindowDim {
  int64_t extent = 1, windows = 1, kernel = 1, stride = 1, padLow = 0, padHigh = 0, dilation = 1;

  bool isPlain() const { return stride == 1 && padLow == 0 && padHigh == 0; }
  /// Positions of a phase that windows from the first to the last use.
  int64_t countPlaces(int64_t numWindows) const { return numWindows + (kernel - 1) * dilation / stride; }
};

/// Spatial dim `dim` (0 or 1, the last one) of an op on one or two of them.
template <typename OpT> WindowDim getWindow(OpT op, int64_t dim, int64_t kernel) {
  llvm::ArrayRef<int64_t> from = getShape(op.getInput()), to = getShape(op.getResult());
  int64_t s = dim - (4 - int64_t(from.size()));
  if (s < 0)
    return {};
  return {from[s + 2],         to[s + 2],           kernel, op.getStrides()[s], op.getPadsLow()[s],
          op.getPadsHigh()[s], op.getDilations()[s]};
}

/// Taps of a weight along a spatial dim; 1 along one that it lacks.
inline int64_t getKernel(nn::ConvOp op, int64_t dim) {
  llvm::ArrayRef<int64_t> weight = getShape(op.getWeight());
  int64_t at = dim + 2 - (4 - int64_t(weight.size()));
  return at < 2 ? 1 : weight[at];
}

/// The most rows of at most `most` that divide all, if there are about as many: a rest is code of its own.
int64_t chooseBand(int64_t rows, int64_t most);

/// Bands of rows of windows over the planes of some channels of an operand [batch, channels, rows.., columns].
class Planes {
public:
  /// \param bytes what the planes of a band may take, as an annotation.
  Planes(Emitter &e, mlir::Value input, WindowDim rows, WindowDim columns, int64_t channels, int64_t bytes);

  /// Rows of windows a band.
  int64_t getBand() const { return band; }
  int64_t getPitch() const { return pitch; }
  /// True if planes are the operand's own memory: nothing may be read behind them.
  bool isDirect() const { return direct; }
  /// Writes what padding holds, once: copies of rows leave it alone.
  void fill(double border);
  /// Brings a band of `numRows` from `firstRow` on into place.
  void lay(mlir::Value batch, mlir::Value firstChannel, mlir::Value firstRow, int64_t numRows);
  /// Where element 0 of channel `channel` (counted from the first) lies for a tap.
  mlir::Value locate(mlir::Value channel, mlir::Value row, mlir::Value column) const;
  mlir::Value load(mlir::Value place) const;

private:
  void layBorder(mlir::Value target);
  void layRow(mlir::Value source, mlir::Value target, int64_t phase);

  Emitter &e;
  Operand input;
  WindowDim rows, columns;
  int64_t channels, band, pitch, height; ///< rows of a phase's plane
  bool direct;
  mlir::Type compute;
  mlir::Value buffer, taps, origin;
  int64_t size = 0, rank; ///< of the buffer, of the operand
  double filled = 0;
};

} // namespace cleave::codegen

#endif // CLEAVE_LIB_CODEGEN_HOST_WINDOW_H
