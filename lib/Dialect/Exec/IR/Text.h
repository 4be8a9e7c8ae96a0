//===- Text.h - text of numbers, axes and pieces ----------------*- C++ -*-===//
//
// What the text forms of memory and commands are made of, as the declarative formats of the ops ask for it.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_DIALECT_EXEC_IR_TEXT_H
#define CLEAVE_LIB_DIALECT_EXEC_IR_TEXT_H

#include "cleave/Dialect/Exec/IR/Exec.h"

namespace cleave::exec {

/// `128`, `"model * 4"` or `128 + "model * 4"`.
mlir::ParseResult parseNumber(mlir::AsmParser &parser, NumberAttr &number);
void printNumber(mlir::AsmPrinter &printer, NumberAttr number);
void printNumber(mlir::AsmPrinter &printer, mlir::Operation *op, NumberAttr number);

/// `[0, "model * 4"]`.
mlir::ParseResult parseNumbers(mlir::AsmParser &parser, mlir::ArrayAttr &numbers);
void printNumbers(mlir::AsmPrinter &printer, mlir::Operation *op, mlir::ArrayAttr numbers);

/// `{"data", "model"}`.
mlir::ParseResult parseAxisList(mlir::AsmParser &parser, mlir::ArrayAttr &axes);
void printAxisList(mlir::AsmPrinter &printer, mlir::Operation *op, mlir::ArrayAttr axes);

/// `[0 -> 1 box [2, 4] from [0, 4] to [2, 0], ...]`, one a line.
mlir::ParseResult parsePieces(mlir::AsmParser &parser, mlir::DenseI64ArrayAttr &ends, mlir::DenseI64ArrayAttr &boxes);
void printPieces(mlir::AsmPrinter &printer, PiecesOp op, mlir::DenseI64ArrayAttr ends, mlir::DenseI64ArrayAttr boxes);

} // namespace cleave::exec

#endif // CLEAVE_LIB_DIALECT_EXEC_IR_TEXT_H
