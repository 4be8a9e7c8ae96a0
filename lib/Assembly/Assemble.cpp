//===- Assemble.cpp - from an ordered module to a program -----------------===//
//
// Planning has decided everything: what is left is a change of form, and machine code. Whatever the checks of the file
// then find is a mistake of ours.
//
//===----------------------------------------------------------------------===//
#include "Assembler.h"

#include "cleave/Dialect/Spmd/IR/OwnFaults.h"
#include "cleave/Program/File.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace cleave;

Assembler::Assembler(ModuleOp module, const AssemblyOptions &options)
    : module(module), options(options), mesh(module->getAttrOfType<spmd::MeshAttr>(spmd::SpmdDialect::kMeshAttr)),
      role(program.roles.emplace_back()) {
  program.metadata = options.metadata;
  for (auto param : module.getOps<nn::ParamOp>())
    params[param.getSymName()] = param;
}

std::unique_ptr<Assembly> Assembler::run(func::FuncOp func) {
  addMesh();
  addRankTable();
  addBuffers();
  if (failed(addKernels()) || failed(addList(func)))
    return nullptr;
  OwnFaults faults(module.getContext());
  if (program::Status status = program::checkProgram(program); status)
    return func.emitError("the program is not sound: ") << status->message, nullptr;
  return std::move(made);
}

std::unique_ptr<Assembly> cleave::assemble(func::FuncOp func, const AssemblyOptions &options) {
  return Assembler(func->getParentOfType<ModuleOp>(), options).run(func);
}
