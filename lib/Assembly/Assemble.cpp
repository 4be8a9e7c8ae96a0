//===- Assemble.cpp - from an ordered module to a program -----------------===//
//
// Planning has decided everything: what is left is a change of form, and machine code. Whatever the checks of the file
// then find is a mistake of ours.
//
//===----------------------------------------------------------------------===//
#include "Tables.h"

#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "cleave/Dialect/Spmd/IR/OwnFaults.h"
#include "cleave/Program/File.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace cleave;

ProgramTables::ProgramTables(const AssemblyOptions &options) : options(options), ways(getWays(options)) {
  program.metadata = options.metadata;
}

ProgramTables::Source::Source(ModuleOp module)
    : module(module), mesh(module->getAttrOfType<spmd::MeshAttr>(spmd::SpmdDialect::kMeshAttr)),
      whole(module->getAttrOfType<spmd::MeshAttr>(pipe::PipeDialect::kMeshAttr)) {
  whole = whole ? whole : mesh;
  for (auto param : module.getOps<nn::ParamOp>())
    params[param.getSymName()] = param;
}

/// What planning gives every module and a hand may leave out, without which there are no tables to make: a mesh, a body, and
/// for each command places in buffers.
static LogicalResult checkOrdered(func::FuncOp func, spmd::MeshAttr mesh) {
  if (!mesh)
    return func.emitError() << "is in a module without a mesh in " << spmd::SpmdDialect::kMeshAttr;
  if (!llvm::hasSingleElement(func.getBody()))
    return func.emitError("has no body of one block, in which commands have an order");
  for (Operation &op : func.getBody().front())
    for (auto [number, operand] : llvm::enumerate(op.getOperands()))
      if (!operand.getDefiningOp<exec::ViewOp>())
        return op.emitOpError() << "operand " << number << " is not an exec.view: it has no place in a buffer";
  return success();
}

/// Ranks number inputs and outputs as the whole does; what a rank leaves out another one has.
static LogicalResult checkPlaces(func::FuncOp func, StringRef what, ArrayRef<program::Tensor> tensors) {
  for (auto [number, tensor] : llvm::enumerate(tensors))
    if (tensor.places.empty())
      return func.emitError() << what << " " << number << " of " << tensors.size() << " is on no rank";
  return success();
}

LogicalResult ProgramTables::addVariant(ArrayRef<func::FuncOp> functions, ArrayRef<program::Dim> dims,
                                        StringRef entry) {
  func::FuncOp first = functions.front();
  Source added(first->getParentOfType<ModuleOp>());
  for (func::FuncOp func : functions)
    if (failed(checkOrdered(func, added.whole)))
      return failure();
  llvm::SaveAndRestore<Source *> scope(source, &added);
  program::Variant variant;
  variant.dims.assign(dims.begin(), dims.end());
  variant.entry = entry.str();
  if (!entry.empty())
    program.version = std::max(program.version, program::kBeginsVersion);
  if (failed(addMesh()) || failed(addRoles(functions)))
    return failure();
  addRankTable();
  addBuffers(functions);
  for (func::FuncOp func : functions)
    if (ways.noteLaunches)
      (this->*ways.noteLaunches)(func);
  if (failed(addKernels()))
    return failure();
  for (auto [role, func] : llvm::enumerate(functions)) {
    source->role = role;
    source->loaded.clear();
    if (failed(addList(func, variant)))
      return failure();
  }
  if (failed(checkPlaces(first, "input", variant.inputs)) || failed(checkPlaces(first, "output", variant.outputs)) ||
      failed(addStates(variant)))
    return failure();
  program.variants.push_back(std::move(variant));
  OwnFaults faults(first.getContext());
  if (program::Status status = program::checkProgram(program); status)
    return first.emitError("the program is not sound: ") << status->message;
  return success();
}

//===----------------------------------------------------------------------===//
// What callers see
//===----------------------------------------------------------------------===//

Assembler::Assembler(AssemblyOptions options)
    : options(std::move(options)), tables(std::make_unique<ProgramTables>(this->options)) {}

Assembler::~Assembler() = default;

bool Assembler::add(ArrayRef<func::FuncOp> functions, ArrayRef<program::Dim> dims, StringRef entry) {
  return succeeded(tables->addVariant(functions, dims, entry));
}

std::unique_ptr<Assembly> Assembler::take() {
  assert(tables->made && "nothing has been assembled");
  return std::move(tables->made);
}

std::unique_ptr<Assembly> cleave::assemble(ArrayRef<func::FuncOp> functions, const AssemblyOptions &options) {
  Assembler assembler(options);
  return assembler.add(functions) ? assembler.take() : nullptr;
}
