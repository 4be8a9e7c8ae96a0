//===- AddAxis.h - one axis more in an annotation ---------------*- C++ -*-===//
//
// ZeRO (Rajbhandari et al. 2020) is a sharding: what ranks along an axis would all keep is sharded along it, on top of what a rule asks.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_SPMD_IR_ADDAXIS_H
#define CLEAVE_DIALECT_SPMD_IR_ADDAXIS_H

#include "cleave/Dialect/Spmd/IR/SpmdAttributes.h"

namespace cleave::spmd {

/// The sharding that an annotation asks for; of none, one with all dims open.
ShardingAttr getAsked(MeshAttr mesh, AnnotationAttr known, mlir::RankedTensorType type);

/// `known` with `axis` on the first dim that it divides after what is asked for already; null where it divides none, or where the mesh has no
/// such axis. Dims are closed then: whoever keeps a part keeps that part. What is along the axis already stays as it is.
/// \param known may be null: nothing is asked
/// \param cause of what is added
AnnotationAttr addAxis(MeshAttr mesh, AnnotationAttr known, mlir::RankedTensorType type, llvm::StringRef axis,
                       mlir::Location cause);

} // namespace cleave::spmd

#endif // CLEAVE_DIALECT_SPMD_IR_ADDAXIS_H
