//===- Costs.h - the cost model that a module was decided by ----*- C++ -*-===//
//
// Reshards are planned by the costs that shardings were decided by, or what is sent is not what was decided. So propagation
// writes its cost model into the module (`spmd.costs`), from which reshard insertion and partitioning read it, in the same
// process or from a stored file:
//
//   spmd.costs = {any_link = [1024, 0], links = [[1024, 0], [9216, 500]], per_collective = 3000, per_ns = 0.3, ..}
//
// Only what differs from the default cost model is written; a module that was decided by that has no attribute.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_SPMD_IR_COSTS_H
#define CLEAVE_DIALECT_SPMD_IR_COSTS_H

#include "cleave/Sharding/CostModel.h"
#include "mlir/IR/BuiltinOps.h"

namespace cleave::spmd {

/// Sets `spmd.costs` of `module`, or removes it where `costs` are the default ones.
void writeCosts(mlir::ModuleOp module, const CostModel &costs);

/// The cost model of `module`, the default one without the attribute. Error on `module`: an entry is unknown, or is not of
/// the type or in the range that its field has.
mlir::FailureOr<CostModel> readCosts(mlir::ModuleOp module);

} // namespace cleave::spmd

#endif // CLEAVE_DIALECT_SPMD_IR_COSTS_H
