//===- Operand.h - what the sides of a tile are made of ---------*- C++ -*-===//
#ifndef CLEAVE_LIB_CODEGEN_DEVICE_OPERAND_H
#define CLEAVE_LIB_CODEGEN_DEVICE_OPERAND_H

#include "../View.h"
#include "Tile.h"

namespace cleave::codegen {

/// The two operands of a product, side by side. What is only moved, or f16 or bf16 that is widened, is taken from memory as it
/// lies there; all else is pulled.
class DeviceOperands {
public:
  DeviceOperands(DeviceEmitter &e, mlir::Value first, mlir::Value second, mlir::Type result);

  /// What both are multiplied as: f16, bf16, or the type that results are computed in.
  mlir::Type getElement() const { return element; }
  /// f32, of which fewer bits are enough.
  bool isShort() const { return e.getTarget().mayShorten(element); }
  /// How far apart in memory neighbors along a dim are; 0 if it does not lie there.
  int64_t getStride(unsigned side, size_t dim) const;
  /// True if its elements lie one behind another, in its own order.
  bool isRowMajor(unsigned side) const;
  mlir::Value load(unsigned side, const Point &point);
  /// Where the lanes at a point lie, one behind the other.
  std::optional<TileSource::Location> locate(unsigned side, const Point &point);
  /// Likewise from a place in memory on. Precondition: isRowMajor.
  mlir::Value loadRowMajor(unsigned side, mlir::Value place);
  std::optional<TileSource::Location> locateRowMajor(unsigned side, mlir::Value place);

private:
  struct Operand {
    mlir::Value value, buffer; ///< null: it does not lie in memory
    View view;
    mlir::Type stored; ///< what lies there
  };
  /// Where lanes lie that need not be neighbors.
  std::optional<Index> find(const Operand &operand, const Point &point) const;

  DeviceEmitter &e;
  Operand operands[2];
  mlir::Type element;
};

/// How many sums to hand out at once, of `together` neighbors: 16 bytes of the smallest numbers that the kernel of `op` stores.
int64_t getStoreLanes(mlir::Operation *op, int64_t together);

} // namespace cleave::codegen

#endif // CLEAVE_LIB_CODEGEN_DEVICE_OPERAND_H
