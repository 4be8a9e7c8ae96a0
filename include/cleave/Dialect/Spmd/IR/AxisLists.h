//===- AxisLists.h - text form of axes and axis lists -----------*- C++ -*-===//
//
// `"model"`, `"model":(1)2`, `{"data", "model"}` and `[{"data"}, {}]`, shared by attributes and ops.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_SPMD_IR_AXISLISTS_H
#define CLEAVE_DIALECT_SPMD_IR_AXISLISTS_H

#include "cleave/Dialect/Spmd/IR/Spmd.h"

namespace cleave::spmd {

/// Parses `"name"` or `"name":(pre)size`.
mlir::FailureOr<AxisAttr> parseAxis(mlir::AsmParser &parser);
/// Parses an axis and the colon after it: `"name":` or `"name":(pre)size:`.
mlir::FailureOr<AxisAttr> parseAxisAndColon(mlir::AsmParser &parser);
void printAxis(mlir::AsmPrinter &printer, AxisAttr axis);

/// Parses and prints `{axis, ...}`.
mlir::ParseResult parseAxisSet(mlir::AsmParser &parser, llvm::SmallVectorImpl<AxisAttr> &axes);
void printAxisSet(mlir::AsmPrinter &printer, llvm::ArrayRef<AxisAttr> axes);

/// The two axes share a digit of one mesh axis. Precondition: both are axes of `mesh`.
bool overlaps(AxisAttr lhs, AxisAttr rhs, MeshAttr mesh);

/// Checks S2, S3 and S4 for axes that are used together.
llvm::LogicalResult verifyAxes(llvm::function_ref<mlir::InFlightDiagnostic()> emitError, MeshAttr mesh,
                               llvm::ArrayRef<AxisAttr> axes);

/// S6: partial results of `elementType` can be combined by `kind`.
bool isLegalReduction(ReductionKind kind, mlir::Type elementType);

} // namespace cleave::spmd

#endif // CLEAVE_DIALECT_SPMD_IR_AXISLISTS_H
