//===- FreeAxes.cpp - axes that may split whatever they can ---------------===//
//
// The attribute may be written by hand, so what it names is looked up where it is read.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Spmd/IR/FreeAxes.h"

#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::spmd;

void cleave::spmd::setFreeAxes(ModuleOp module, ArrayRef<StringRef> axes, bool areUneven) {
  Builder builder(module.getContext());
  module->setAttr(kFreeAttr, builder.getStrArrayAttr(axes));
  if (areUneven)
    module->setAttr(kFreeUnevenAttr, builder.getUnitAttr());
}

void cleave::spmd::removeFreeAxes(ModuleOp module) {
  module->removeAttr(kFreeAttr);
  module->removeAttr(kFreeUnevenAttr);
}

FailureOr<FreeAtoms> cleave::spmd::getFreeAtoms(ModuleOp module, const MeshAtoms &atoms) {
  FreeAtoms free;
  free.areUneven = module->hasAttr(kFreeUnevenAttr);
  Attribute attribute = module->getAttr(kFreeAttr);
  if (!attribute)
    return free;
  auto list = dyn_cast<ArrayAttr>(attribute);
  if (!list)
    return module.emitError() << "'" << kFreeAttr << "' must be a list of axes of the mesh";
  for (Attribute entry : list) {
    auto name = dyn_cast<StringAttr>(entry);
    const auto *axis = name ? llvm::find(atoms.getAxisNames(), name.getValue()) : atoms.getAxisNames().end();
    if (axis == atoms.getAxisNames().end())
      return module.emitError() << "'" << kFreeAttr << "' names " << entry << ", which the mesh does not have";
    llvm::append_range(free.atoms, atoms.getAtoms().atomsOf(axis - atoms.getAxisNames().begin()));
  }
  llvm::sort(free.atoms);
  free.atoms.erase(llvm::unique(free.atoms), free.atoms.end());
  return free;
}
