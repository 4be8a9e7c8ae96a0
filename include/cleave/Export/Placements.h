//===- Placements.h - shardings in the words of frameworks ------*- C++ -*-===//
//
// What was decided of inputs, weights and outputs, for people who run a model elsewhere: as a signature with annotations of Shardy, and as a
// table of placements of DTensor and partition specs of JAX.
//
//   [data, [model, seq], _]      sdy      #sdy.sharding<@mesh, [{"data"}, {"model", "seq"}, {}]>
//                                DTensor  (Shard(0), Shard(1), Shard(1)) on the mesh (data, model, seq)
//                                JAX      PartitionSpec('data', ('model', 'seq'), None)
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_EXPORT_PLACEMENTS_H
#define CLEAVE_EXPORT_PLACEMENTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/JSON.h"

namespace cleave {

/// A module in Shardy's syntax: the mesh, and a declaration whose arguments are inputs, then weights. Precondition: `func` is propagated, and
/// has a mesh.
void writeShardy(llvm::raw_ostream &os, mlir::func::FuncOp func);

/// The table, in the words of docs/from-dtensor.md. A sharding that DTensor or JAX cannot say has a reason in its place. Precondition: the
/// same.
llvm::json::Object describePlacements(mlir::func::FuncOp func);

} // namespace cleave

#endif // CLEAVE_EXPORT_PLACEMENTS_H
