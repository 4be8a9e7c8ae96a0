//===- FreeAxes.h - axes that may split whatever they can -------*- C++ -*-===//
//
// What a plan says (`free: [data, model]`) stands on the module from where the plan is placed until shardings are decided, so that a file
// written in between keeps it.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_SPMD_IR_FREEAXES_H
#define CLEAVE_DIALECT_SPMD_IR_FREEAXES_H

#include "cleave/Sharding/Mesh.h"
#include "mlir/IR/BuiltinOps.h"

namespace cleave::spmd {

class MeshAtoms;

/// Of a module: names of axes of its mesh. Where it is there, be it empty, shardings are decided by time.
inline constexpr llvm::StringLiteral kFreeAttr = "spmd.free";

/// Of a module with `kFreeAttr`: free axes may split what they do not divide.
inline constexpr llvm::StringLiteral kFreeUnevenAttr = "spmd.free_uneven";

void setFreeAxes(mlir::ModuleOp module, llvm::ArrayRef<llvm::StringRef> axes, bool areUneven);
/// As if nothing had been said.
void removeFreeAxes(mlir::ModuleOp module);

struct FreeAtoms {
  AtomList atoms; ///< ascending
  bool areUneven = false;
};

/// The atoms of the free axes. Fails after an error where the attribute is no list of axes of the mesh.
mlir::FailureOr<FreeAtoms> getFreeAtoms(mlir::ModuleOp module, const MeshAtoms &atoms);

} // namespace cleave::spmd

#endif // CLEAVE_DIALECT_SPMD_IR_FREEAXES_H
