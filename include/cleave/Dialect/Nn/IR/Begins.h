//===- Begins.h - states that begin as weights ------------------*- C++ -*-===//
//
// A state begins as zeros, or as a parameter of the model, of which it may be a part (of a fused weight), and cast to another
// float (the f32 master of a bf16 weight):
//
//   %w: tensor<4x2xf32> {nn.begins = @w}
//   %k: tensor<768x768xf32> {nn.begins = {param = @qkv, starts = array<i64: 0, 768>, sizes = array<i64: 768, 768>}}
//
// In a checkpoint a state is called as the argument, and is all of that tensor, or as its origin says: which tensor it is of, where
// it begins there, and what shape all of it has. States of one origin are one tensor, in the type of the widest.
//
//   %m: tensor<768x768xf32> {nn.name = "m(k)", nn.origin = {name = "m(qkv)", starts = array<i64: 0, 768>, shape = array<i64: 768, 2304>}}
//   %a: tensor<4x2xf32> {nn.name = "master(w)", nn.origin = "w"}
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_NN_IR_BEGINS_H
#define CLEAVE_DIALECT_NN_IR_BEGINS_H

#include "cleave/Dialect/Nn/IR/Pieces.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace cleave::nn {

/// Of an argument; where memory is planned, of the op that says where it lies.
inline constexpr llvm::StringLiteral kBeginsAttr = "nn.begins", kOriginAttr = "nn.origin";

/// The attribute of a state that begins as what `load` reads.
mlir::Attribute makeBegins(LoadOp load);

/// The parameter that the attribute names; null where it is none.
mlir::FlatSymbolRefAttr getBeginsParam(mlir::Attribute begins);

/// The box of `param` that a state of the type `whole`, which may be sharded, begins as. An error at `op` where the attribute is none,
/// `param` is null, or the box is not in it, has another shape, or elements that are not cast to the state's.
mlir::FailureOr<LoadedBox> getBeginning(mlir::Operation *op, mlir::Attribute begins, ParamOp param,
                                        mlir::RankedTensorType whole);

struct Origin {
  llvm::StringRef name;
  llvm::SmallVector<int64_t> starts, shape;
};
/// What the attribute says of a state of the type `whole`. An error at `op` where it is no origin, or the state is not in it.
mlir::FailureOr<Origin> readOrigin(mlir::Operation *op, mlir::Attribute origin, mlir::RankedTensorType whole);

/// The two attributes of the arguments of `func`, whose types are those of whole tensors.
llvm::LogicalResult verifyBeginnings(mlir::func::FuncOp func);

} // namespace cleave::nn

#endif // CLEAVE_DIALECT_NN_IR_BEGINS_H
