//===- ChoicesReport.h - what a step may make again -------------*- C++ -*-===//
#ifndef CLEAVE_LIB_PIPELINES_CHOICESREPORT_H
#define CLEAVE_LIB_PIPELINES_CHOICESREPORT_H

#include "cleave/Pipelines/Report.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace cleave {

/// Of a step whose choice was looked for; else nothing.
std::vector<RecomputeReport> readChoices(mlir::func::FuncOp func);

/// The key `recompute`, where there are some.
void writeChoices(llvm::json::OStream &json, llvm::ArrayRef<RecomputeReport> choices);
void printChoices(llvm::raw_ostream &os, llvm::ArrayRef<RecomputeReport> choices);

} // namespace cleave

#endif // CLEAVE_LIB_PIPELINES_CHOICESREPORT_H
