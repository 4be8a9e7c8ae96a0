//===- SpmdAttributes.h - mesh, axis and sharding attributes ----*- C++ -*-===//
//
// The attribute classes alone, for headers that the op classes need; see dialects/Spmd/SpmdAttrs.td.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_SPMD_IR_SPMDATTRIBUTES_H
#define CLEAVE_DIALECT_SPMD_IR_SPMDATTRIBUTES_H

#include "cleave/Sharding/ShardingRule.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/TensorEncoding.h"

namespace cleave::spmd {
/// See cleave/Sharding/Mesh.h and RankGroups.h: who asks an attribute for them includes these.
struct SubAxis;
class RankGroups;
} // namespace cleave::spmd

#define GET_ATTRDEF_CLASSES
#include "cleave/Dialect/Spmd/IR/SpmdAttrs.h.inc"

#endif // CLEAVE_DIALECT_SPMD_IR_SPMDATTRIBUTES_H
