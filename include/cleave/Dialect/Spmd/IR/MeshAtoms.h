//===- MeshAtoms.h - shardings as states of atoms, and back -----*- C++ -*-===//
//
// The passes read and write shardings; everything in Sharding and Solver works on states. This is the bridge: a mesh
// attribute split into atoms, and both directions, remembered, so that asking again is one hash lookup.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_SPMD_IR_MESHATOMS_H
#define CLEAVE_DIALECT_SPMD_IR_MESHATOMS_H

#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "cleave/Sharding/Padding.h"
#include "cleave/Sharding/State.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace cleave::spmd {

/// Adds the shards of a tensor; a type without sharding has none.
void addPadding(mlir::RankedTensorType global, Padding &padding);

class MeshAtoms {
public:
  /// Splits the mesh of `root` (see `resolveMesh`) so that every sub-axis that occurs in one of its types falls on atom
  /// borders. Null after an error on `root`: no mesh, or two sub-axes exclude each other.
  static std::unique_ptr<MeshAtoms> create(mlir::ModuleOp root);
  /// The same for given shardings; errors are emitted on `op`.
  static std::unique_ptr<MeshAtoms> create(MeshAttr mesh, mlir::Operation *op, llvm::ArrayRef<ShardingAttr> shardings);

  MeshAttr getMesh() const { return mesh; }
  const AtomMesh &getAtoms() const { return atoms; }
  llvm::ArrayRef<std::string> getAxisNames() const { return axisNames; }

  /// The state of a tensor with this sharding; open dims count with the axes that they have. The reference lives as
  /// long as this object.
  const State &toState(ShardingAttr sharding);
  /// The closed sharding of a tensor of this shape; uneven only where a dim does not divide, so that equal states are equal
  /// types.
  ShardingAttr toSharding(const State &state, llvm::ArrayRef<int64_t> shape) const;
  /// Atoms of an axis. Precondition: `axis` is valid in the mesh.
  AtomList toAtoms(AxisAttr axis) const;
  /// The shortest list of axes that means `list`.
  llvm::SmallVector<AxisAttr, 2> toAxes(llvm::ArrayRef<AtomId> list) const;
  mlir::ArrayAttr toAxisArray(llvm::ArrayRef<AtomId> list) const;

private:
  MeshAtoms(MeshAttr mesh, AtomMesh atoms);

  MeshAttr mesh;
  AtomMesh atoms;
  llvm::SmallVector<std::string> axisNames;
  llvm::DenseMap<ShardingAttr, std::unique_ptr<State>> states;
};

/// The mesh of a module: its `spmd.mesh`, or else the one mesh that the shardings of its types have, which is then set
/// as `spmd.mesh`. Null after an error; errors: there is none, or shardings are over different ones.
MeshAttr resolveMesh(mlir::ModuleOp module);

/// Calls `callback` for every value of the function, arguments first.
void forEachValue(mlir::func::FuncOp func, llvm::function_ref<void(mlir::Value)> callback);

/// `model`, or `model:(1)2`.
std::string formatAxis(AxisAttr axis);
/// The same for each of a list: `data, model`.
std::string formatAxes(llvm::ArrayRef<AxisAttr> axes);

/// As in plans: `[data, [model, seq], _]`, with `?` behind open dims; partial values have words of their own,
/// `[data, _] partial(model: sum)`.
std::string formatSharding(ShardingAttr sharding);

/// Bytes of one element as stored and sent: bool takes one.
int64_t getElementBytes(mlir::Type elementType);
/// Bytes of the elements of a tensor, or of a view of memory.
int64_t getBytes(mlir::Type type);

/// The functions of a module that have a body.
llvm::SmallVector<mlir::func::FuncOp> getFunctions(mlir::ModuleOp module);

} // namespace cleave::spmd

#endif // CLEAVE_DIALECT_SPMD_IR_MESHATOMS_H
