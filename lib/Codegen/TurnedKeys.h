//===- TurnedKeys.h - keys of a head, turned --------------------*- C++ -*-===//
//
// For products of queries and keys a vector is one component of neighboring keys: [keys / lanes, size, lanes].
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_CODEGEN_TURNEDKEYS_H
#define CLEAVE_LIB_CODEGEN_TURNEDKEYS_H

#include "Tile.h"

namespace cleave::codegen {

class TurnedKeys {
public:
  /// For heads of `operand`, [batch, heads, keys, size]; memory for one head is allocated.
  TurnedKeys(Emitter &e, const Operand &operand, llvm::ArrayRef<int64_t> shape, mlir::Type compute);

  /// Turns the head whose first element is at `place`.
  void turn(mlir::Value place);
  /// Fills lanes behind the last key with zeros, which `turn` leaves as they are.
  void clearRest();
  /// Component `component` of the keys from `key` on, a multiple of the lanes, and `vectors` vectors behind them.
  mlir::Value load(mlir::Value key, mlir::Value component, int64_t vectors) const;

private:
  mlir::Value place(mlir::Value key, mlir::Value component) const;
  void turnSquare(mlir::Value head, mlir::Value key, mlir::Value component);
  void copy(mlir::Value head, int64_t firstKey, int64_t lastKey, int64_t firstComponent);

  Emitter &e;
  const Operand &k;
  int64_t keys, size;
  mlir::Type compute;
  int64_t lanes;
  mlir::Value turned;
};

} // namespace cleave::codegen

#endif // CLEAVE_LIB_CODEGEN_TURNEDKEYS_H
