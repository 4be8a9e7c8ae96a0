//===- RandomPrograms.h - what random tests of pipelines begin with --*- C++ -*-===//
//
// The programs of the differential suite, without their annotations.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_TEST_UNIT_DIALECT_PIPE_RANDOMPROGRAMS_H
#define CLEAVE_TEST_UNIT_DIALECT_PIPE_RANDOMPROGRAMS_H

#include "cleave/Plan/Pipeline.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <random>

namespace cleave::pipe::testing {

/// One function of one block, of plain types. Null if it cannot be read.
mlir::OwningOpRef<mlir::ModuleOp> makeProgram(mlir::MLIRContext &context, uint64_t seed);

/// One argument or several, split along dims that `microbatches`, 2 to 4, divide; others are invariant.
spmd::PlanPipeline drawBatch(mlir::func::FuncOp func, std::mt19937_64 &random);

} // namespace cleave::pipe::testing

#endif // CLEAVE_TEST_UNIT_DIALECT_PIPE_RANDOMPROGRAMS_H
