//===- OffloadReport.h - what waits in the host's memory --------*- C++ -*-===//
#ifndef CLEAVE_LIB_PIPELINES_OFFLOADREPORT_H
#define CLEAVE_LIB_PIPELINES_OFFLOADREPORT_H

#include "cleave/Pipelines/Report.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"

namespace cleave {

/// Of a step, or a rank of one, of which values wait in the memory of its device's host; else nothing.
std::optional<OffloadReport> readOffload(mlir::func::FuncOp func, const mlir::SymbolTable &symbols);

/// The key `offload`, where there is something to say.
void writeOffload(llvm::json::OStream &json, const std::optional<OffloadReport> &offload);
void printOffload(llvm::raw_ostream &os, const std::optional<OffloadReport> &offload);

} // namespace cleave

#endif // CLEAVE_LIB_PIPELINES_OFFLOADREPORT_H
