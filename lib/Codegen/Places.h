//===- Places.h - arithmetic on positions in tensors ------------*- C++ -*-===//
//
// Positions are values of type index, folded where they are known. A point has one `Index` per dim of a tensor: where
// the first of some neighboring elements (*lanes*) lies, and how far apart they are.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_CODEGEN_PLACES_H
#define CLEAVE_LIB_CODEGEN_PLACES_H

#include "mlir/IR/Builders.h"
#include <map>

namespace cleave::codegen {

/// How near a line is wanted, as memref.prefetch says it.
constexpr unsigned kSecondCache = 2, kFirstCache = 3;

/// Lane l lies at `base + l * lane`.
struct Index {
  mlir::Value base;
  int64_t lane = 0;
};
using Point = llvm::SmallVector<Index, 4>;

class PlaceBuilder {
public:
  PlaceBuilder(mlir::OpBuilder &builder, mlir::Location location) : b(builder), loc(location) {}
  /// Numbers are made once, at the start of `block`.
  void startAt(mlir::Block *block) { entry = block; }

  mlir::Value number(int64_t value);
  static std::optional<int64_t> getKnown(mlir::Value value);
  /// The same number, of which LLVM does not know where it comes from: of loops in loops in loops, each of whose indices is in every
  /// address, it would try all ways to split these sums.
  mlir::Value hide(mlir::Value x);
  mlir::Value add(mlir::Value x, mlir::Value y);
  mlir::Value add(mlir::Value x, int64_t y);
  mlir::Value mul(mlir::Value x, int64_t y);
  /// Precondition: `x` is not negative, `y` positive.
  mlir::Value div(mlir::Value x, int64_t y);
  mlir::Value rem(mlir::Value x, int64_t y);
  mlir::Value isLess(mlir::Value x, mlir::Value y);
  mlir::Value isLess(mlir::Value x, int64_t y);
  mlir::Value clamp(mlir::Value x, int64_t low, int64_t high);
  mlir::Value select(mlir::Value condition, mlir::Value x, mlir::Value y);

  /// A number that divides `value`, whatever it is when the kernel runs: what proves that lanes stay together.
  static int64_t getDivisor(mlir::Value value);
  /// Row-major, in both directions.
  mlir::Value linearize(llvm::ArrayRef<mlir::Value> at, llvm::ArrayRef<int64_t> shape);
  llvm::SmallVector<mlir::Value> delinearize(mlir::Value linear, llvm::ArrayRef<int64_t> shape);
  /// Where the lanes of a point of a tensor of `shape` lie in row-major order.
  Index linearize(const Point &point, llvm::ArrayRef<int64_t> shape);
  /// Says where a point of a tensor of `shape` lies, for a point that was made from that.
  void know(const Point &point, llvm::ArrayRef<int64_t> shape, mlir::Value linear);

private:
  struct Known {
    Point point;
    llvm::SmallVector<int64_t> shape;
    mlir::Value linear;
  };
  std::optional<Known> known;
  mlir::OpBuilder &b;
  mlir::Location loc;
  mlir::Block *entry = nullptr;
  std::map<int64_t, mlir::Value> numbers; ///< any number may be a key
};

inline bool isUniform(const Point &point) {
  return llvm::all_of(point, [](const Index &index) { return index.lane == 0; });
}

} // namespace cleave::codegen

#endif // CLEAVE_LIB_CODEGEN_PLACES_H
