//===- Kernels.cpp - kernels of a module as machine code ------------------===//
//
// All kernels of a processor that a variant adds are one shared library: one object file, linked once. They are compiled in
// the order in which they stand, so equal modules give equal bytes. DeviceKernels.cpp is the same for devices.
//
//===----------------------------------------------------------------------===//
#include "Tables.h"

#include "cleave/Program/Words.h"
#include "llvm/Support/FormatVariadic.h"

#include <chrono>

using namespace mlir;
using namespace cleave;

/// What a kernel computes, whatever it is called, and what it relies on.
static std::string describe(exec::KernelOp kernel, ArrayRef<int64_t> alignments, bool areInPlace) {
  OwningOpRef<exec::KernelOp> nameless = kernel.clone();
  nameless->setSymName("kernel");
  std::string text;
  llvm::raw_string_ostream os(text);
  nameless->print(os, OpPrintingFlags().useLocalScope());
  llvm::interleaveComma(alignments, os << " aligned ");
  os << (areInPlace ? " in place" : "");
  return text;
}

/// Arguments are read, results are written, and may be in place of an argument where the code allows. False where the
/// program has the kernel already.
bool ProgramTables::addKernel(exec::KernelOp op) {
  ArrayRef<int64_t> alignments = source->alignments[op.getSymName()];
  bool areInPlace = source->areInPlace.lookup(op.getSymName());
  auto [it, isNew] = kernels.try_emplace(describe(op, alignments, areInPlace), program.kernels.size());
  source->kernels[op.getSymName()] = it->second;
  if (!isNew)
    return false;
  program::Kernel &kernel = program.kernels.emplace_back();
  kernel.name = kernel.entry = op.getSymName().str();
  kernel.module = program.modules.size();
  kernel.reports = codegen::mayReport(op.getBody().front());
  if (kernel.reports)
    program.version = std::max(program.version, program::kReportsVersion);
  auto add = [&](Type type, program::Access access, int64_t alias) {
    uint32_t number = addType(cast<ShapedType>(type));
    size_t index = kernel.parameters.size();
    uint32_t alignment = index < alignments.size() ? uint32_t(alignments[index])
                                                   : program::getElementBytes(program.types[number].element);
    kernel.parameters.push_back({number, access, int32_t(alias), alignment});
  };
  for (Type type : op.getBody().getArgumentTypes())
    add(type, program::Access::Read, -1);
  for (auto [result, type] : llvm::enumerate(op.getResultTypes()))
    add(type, program::Access::Write, op.getInPlace() ? (*op.getInPlace())[result] : -1);
  return true;
}

void ProgramTables::tell(const std::string &text) const {
  if (options.onProgress)
    options.onProgress(text);
}

/// The features of a target, which the first module makes.
std::vector<std::string> &ProgramTables::addTarget(size_t index, program::Device device,
                                                   const std::string &architecture) {
  if (index == program.targets.size())
    program.targets.push_back({device, architecture, {}});
  return program.targets[index].features;
}

void ProgramTables::addObject(program::Module &library, size_t target, program::Format format, std::string code) {
  library.objects.push_back({uint32_t(target), format, made->bytes.emplace_back(std::move(code))});
}

FailureOr<std::string> ProgramTables::compile(ArrayRef<exec::KernelOp> added, const codegen::HostTarget &target,
                                              bool &usesTiles) {
  OwningOpRef<ModuleOp> code = ModuleOp::create(source->module.getLoc());
  for (auto [index, op] : llvm::enumerate(added)) {
    exec::KernelOp kernel = op;
    tell(llvm::formatv("kernel {0} of {1}", index + 1, added.size()));
    codegen::emitHostKernel(kernel.getBody().front(), kernel.getSymName(), *code, target,
                            program.kernels[source->kernels.lookup(kernel.getSymName())].reports);
  }
  tell(llvm::formatv("machine code of {0} kernels", added.size()));
  usesTiles |= codegen::usesTiles(*code);
  FailureOr<std::string> object = codegen::compileObject(*code, target);
  if (failed(object))
    return source->module.emitError("its kernels cannot be compiled");
  llvm::Expected<std::string> library = codegen::linkObject(*object);
  if (!library)
    return source->module.emitError(llvm::toString(library.takeError()));
  return std::move(*library);
}

LogicalResult ProgramTables::addHostCode(ArrayRef<exec::KernelOp> added, program::Module &library) {
  for (auto [index, isa] : llvm::enumerate(options.isas)) {
    llvm::Expected<std::unique_ptr<codegen::HostTarget>> created = codegen::HostTarget::create(isa);
    if (!created)
      return source->module.emitError(llvm::toString(created.takeError()));
    std::unique_ptr<codegen::HostTarget> target = std::move(*created);
    if (options.splitsProducts)
      target->splitProducts();
    if (options.guardsScratch)
      target->guardScratch();
    std::vector<std::string> &features = addTarget(index, program::Device::Host, target->getArchitecture());
    bool usesTiles = llvm::is_contained(features, "amx-tile");
    FailureOr<std::string> code = compile(added, *target, usesTiles);
    if (failed(code))
      return failure();
    features = target->getRequirements(usesTiles);
    addObject(library, index, program::Format::SharedObject, std::move(*code));
  }
  return success();
}

ProgramTables::Ways ProgramTables::getWays(const AssemblyOptions &options) {
  if (options.devices.empty())
    return {codegen::KernelRules::get(false), nullptr, &ProgramTables::addHostCode, nullptr};
  return {codegen::KernelRules::get(true), &ProgramTables::noteAddresses, &ProgramTables::addDeviceCode,
          options.usesLibraries ? &ProgramTables::makeCall : nullptr};
}

LogicalResult ProgramTables::addModule(ArrayRef<exec::KernelOp> added) {
  program::Module library;
  library.name = program.modules.empty() ? "kernels" : llvm::formatv("kernels_{0}", program.modules.size()).str();
  if (failed((this->*ways.addCode)(added, library)))
    return failure();
  // A program that only moves tensors has targets, and no code.
  if (!library.objects.empty())
    program.modules.push_back(std::move(library));
  return success();
}

LogicalResult ProgramTables::addKernels() {
  auto start = std::chrono::steady_clock::now();
  codegen::loadDeviceDialects(*source->module.getContext());
  SmallVector<exec::KernelOp> added;
  for (auto kernel : source->module.getOps<exec::KernelOp>()) {
    std::string reason;
    Block &body = kernel.getBody().front();
    if (!ways.rules.canEmit(body, reason))
      return kernel.emitError("no kernel can be made of it: ") << reason;
    source->bodies[kernel.getSymName()] = kernel;
    if (addKernel(kernel))
      added.push_back(kernel);
  }
  if (program.modules.empty() || !added.empty())
    if (failed(addModule(added)))
      return failure();
  made->compileSeconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return success();
}
