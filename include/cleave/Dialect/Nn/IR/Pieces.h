//===- Pieces.h - what a parameter is made of -------------------*- C++ -*-===//
//
// A parameter is a range of a file or elements, or a stack: an array of such pieces, one for each entry of its first dim.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_NN_IR_PIECES_H
#define CLEAVE_DIALECT_NN_IR_PIECES_H

#include "cleave/Dialect/Nn/IR/Nn.h"

namespace cleave::nn {

inline bool isStack(ParamOp param) { return llvm::isa<mlir::ArrayAttr>(param.getValue()); }

/// The parts of a stack, or the value itself.
llvm::SmallVector<mlir::Attribute> getPieces(ParamOp param);
/// What each of them is: the type, without the first dim in a stack.
mlir::RankedTensorType getPieceType(ParamOp param);

} // namespace cleave::nn

#endif // CLEAVE_DIALECT_NN_IR_PIECES_H
