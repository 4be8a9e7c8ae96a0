//===- GeneratedOps.h - what generated op classes call ----------*- C++ -*-===//
//
// The definitions that TableGen writes are a file a family in the build tree (dialects/Nn/Family.cpp.in), as they are most of what there is
// to compile. What it writes for whole classes of ops calls the two headers below; what it writes for the text of some, the two functions.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_DIALECT_NN_IR_GENERATEDOPS_H
#define CLEAVE_LIB_DIALECT_NN_IR_GENERATEDOPS_H

#include "../ShardingRules/Rules.h"
#include "TypeInference.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

namespace cleave::nn {

/// `[1.000000e+00, 2.2000000000000002]`: as many digits as it takes to read the same bits again. The printer of the attribute itself
/// stops at six.
void printReals(mlir::OpAsmPrinter &printer, mlir::Operation *op, mlir::DenseF64ArrayAttr numbers);
mlir::ParseResult parseReals(mlir::OpAsmParser &parser, mlir::DenseF64ArrayAttr &numbers);

/// Registers the ops of a family.
#define CLEAVE_NN_FAMILY(family) void addOpsOf##family(NnDialect &dialect);
#include "cleave/Dialect/Nn/IR/NnFamilies.inc"

} // namespace cleave::nn

#endif // CLEAVE_LIB_DIALECT_NN_IR_GENERATEDOPS_H
