//===- MachineReport.h - a program beside its machine -----------*- C++ -*-===//
#ifndef CLEAVE_LIB_PIPELINES_MACHINEREPORT_H
#define CLEAVE_LIB_PIPELINES_MACHINEREPORT_H

#include "cleave/Pipelines/Report.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace cleave {

/// Fills in `memory`. Precondition: what a rank takes is counted.
void compareMemory(mlir::func::FuncOp func, const spmd::Cluster &cluster, Report &report);

/// The keys `memory` and `placement`, where they are known.
void writeMachine(llvm::json::OStream &json, const Report &report);
void printPlacement(llvm::raw_ostream &os, const DeviceAssignmentReport &placement);

} // namespace cleave

#endif // CLEAVE_LIB_PIPELINES_MACHINEREPORT_H
