//===- ProgramDialect.h - the dialect whose ops are split -------*- C++ -*-===//
//
// Passes of spmd split ops of a dialect that stands above them. What an op must say of itself is an op interface; what has no op to be
// asked, making one and looking at a value's readers, the dialect is asked for:
//
//   const ProgramDialect &program = ProgramDialect::get(context);
//   Value flat = program.reshape(builder, loc, value, {12});
//
// Values are local ones, without sharding. Dialects that are loaded with spmd must have one that implements this (Registration.cpp).
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_SPMD_IR_PROGRAMDIALECT_H
#define CLEAVE_DIALECT_SPMD_IR_PROGRAMDIALECT_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/DialectInterface.h"
#include <optional>

namespace cleave::spmd {

/// Bytes as the tensor of 4 or 2 bits that they hold: as many dims, the last one larger.
struct PackedTensor {
  /// `tensor<64x96xi4>`.
  mlir::RankedTensorType type;
  /// How many elements share a byte.
  int64_t perByte = 1;
  /// For each dim how many elements share a scale; 1 where each has its own, or none has.
  llvm::SmallVector<int64_t> blocks;
};

class ProgramDialect : public mlir::DialectInterface::Base<ProgramDialect> {
public:
  using Shape = llvm::ArrayRef<int64_t>;

  ProgramDialect(mlir::Dialect *dialect) : Base(dialect) {}

  /// That of the context.
  static const ProgramDialect &get(mlir::MLIRContext *context);

  //===--- Ops that move elements; the operand comes back where there is nothing to move ---===//

  /// As many elements in other dims.
  virtual mlir::Value reshape(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, Shape shape) const = 0;
  /// Dim `from` at `to` of the result, the others in their order.
  virtual mlir::Value moveDim(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, int64_t from,
                              int64_t to) const = 0;
  /// `sizes[d]` elements from `starts[d]` on.
  virtual mlir::Value slice(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, Shape starts,
                            Shape sizes) const = 0;
  /// One behind the other along `dim`; at least one value.
  virtual mlir::Value concat(mlir::OpBuilder &builder, mlir::Location loc, mlir::ValueRange values,
                             int64_t dim) const = 0;
  /// With extents `shape`: per dim cut off at the end, or filled up there with what does not matter.
  virtual mlir::Value fit(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, Shape shape) const = 0;

  //===--- What ops do with values -----------------------------------------===//

  /// True if kernels that `reader` is in can read its operands wherever their elements are.
  virtual bool readsAnywhere(mlir::Operation *reader) const = 0;
  /// Of bytes that ops take apart into elements of 4 or 2 bits: what these are. Nothing for other values, and where ops disagree.
  virtual std::optional<PackedTensor> getPacked(mlir::Value bytes) const = 0;
};

} // namespace cleave::spmd

#endif // CLEAVE_DIALECT_SPMD_IR_PROGRAMDIALECT_H
