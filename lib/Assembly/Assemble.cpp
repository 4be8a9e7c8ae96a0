//===- Assemble.cpp - from an ordered module to a program -----------------===//
//
// Planning has decided everything: what is left is a change of form, and machine code. Whatever the checks of the file
// then find is a mistake of ours.
//
//===----------------------------------------------------------------------===//
#include "Tables.h"

#include "cleave/Dialect/Spmd/IR/OwnFaults.h"
#include "cleave/Program/File.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace cleave;

ProgramTables::ProgramTables(const AssemblyOptions &options) : options(options), role(program.roles.emplace_back()) {
  role.name = "all";
  program.metadata = options.metadata;
}

ProgramTables::Source::Source(ModuleOp module)
    : module(module), mesh(module->getAttrOfType<spmd::MeshAttr>(spmd::SpmdDialect::kMeshAttr)) {
  for (auto param : module.getOps<nn::ParamOp>())
    params[param.getSymName()] = param;
}

LogicalResult ProgramTables::addVariant(func::FuncOp func, ArrayRef<program::Dim> dims) {
  Source added(func->getParentOfType<ModuleOp>());
  llvm::SaveAndRestore<Source *> scope(source, &added);
  program::Variant variant;
  variant.dims.assign(dims.begin(), dims.end());
  if (failed(addMesh()))
    return failure();
  addRankTable();
  addBuffers();
  if (!options.devices.empty())
    noteAlignments(func);
  if (failed(addKernels()) || failed(addList(func, variant)))
    return failure();
  program.variants.push_back(std::move(variant));
  OwnFaults faults(func.getContext());
  if (program::Status status = program::checkProgram(program); status)
    return func.emitError("the program is not sound: ") << status->message;
  return success();
}

//===----------------------------------------------------------------------===//
// What callers see
//===----------------------------------------------------------------------===//

Assembler::Assembler(AssemblyOptions options)
    : options(std::move(options)), tables(std::make_unique<ProgramTables>(this->options)) {}

Assembler::~Assembler() = default;

bool Assembler::add(func::FuncOp func, ArrayRef<program::Dim> dims) {
  return succeeded(tables->addVariant(func, dims));
}

std::unique_ptr<Assembly> Assembler::take() { return std::move(tables->made); }

std::unique_ptr<Assembly> cleave::assemble(func::FuncOp func, const AssemblyOptions &options) {
  Assembler assembler(options);
  return assembler.add(func) ? assembler.take() : nullptr;
}
