//===- DeviceKernels.cpp - kernels of a module as code of GPUs ------------===//
//
// For each architecture PTX, which the driver of a later one takes too, and before it what `ptxas` makes of it, where there is
// one. The emulated device gets a shared library of this machine.
//
// Kernels of devices rely on addresses: where all launches of a kernel have multiples of 16 bytes, its accesses are that wide; and where in all
// of them a result lies in the place of an argument, what is there already is not written.
//
//===----------------------------------------------------------------------===//
#include "Tables.h"

#include "cleave/Codegen/Device/Device.h"
#include "cleave/EmulatedKernels/EmulateDevice.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/FormatVariadic.h"

#include <numeric>

using namespace mlir;
using namespace cleave;

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

/// What a view's offset is a multiple of, on all ranks.
static int64_t getAlignment(exec::ViewOp view, DictionaryAttr table) {
  exec::NumberAttr offset = view.getOffset();
  int64_t alignment = std::gcd(codegen::kDeviceAlignment, offset.getBase());
  if (offset.hasColumn())
    for (int64_t number : table.getAs<DenseI64ArrayAttr>(offset.getColumn()).asArrayRef())
      alignment = std::gcd(alignment, number);
  return alignment;
}

/// True if each result of a launch lies where the kernel says that it may.
static bool isInPlace(exec::RunOp run, ArrayRef<int64_t> places) {
  size_t arguments = run->getNumOperands() - places.size();
  return llvm::all_of(llvm::enumerate(places), [&](auto item) {
    if (item.value() < 0)
      return true;
    auto result = run->getOperand(arguments + item.index()).template getDefiningOp<exec::ViewOp>();
    auto argument = run->getOperand(item.value()).template getDefiningOp<exec::ViewOp>();
    return result.getBufferAttr() == argument.getBufferAttr() && result.getOffset() == argument.getOffset();
  });
}

void ProgramTables::noteAddresses(func::FuncOp func) {
  auto table = source->module->getAttrOfType<DictionaryAttr>(exec::ExecDialect::kRankTableAttr);
  for (auto run : func.getOps<exec::RunOp>()) {
    SmallVector<int64_t> &all = source->alignments[run.getKernel()];
    all.resize(run->getNumOperands(), codegen::kDeviceAlignment);
    for (auto [alignment, operand] : llvm::zip_equal(all, run->getOperands()))
      alignment = std::gcd(alignment, getAlignment(operand.getDefiningOp<exec::ViewOp>(), table));
    auto kernel = source->module.lookupSymbol<exec::KernelOp>(run.getKernel());
    ArrayRef<int64_t> places = kernel.getInPlace().value_or(ArrayRef<int64_t>());
    bool &areInPlace = source->areInPlace.try_emplace(run.getKernel(), true).first->second;
    areInPlace &= isInPlace(run, places);
  }
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

/// Adds the kernels to a module, and notes how they are launched.
OwningOpRef<ModuleOp> ProgramTables::emitDevice(ArrayRef<exec::KernelOp> added, const codegen::CudaTarget &target) {
  OwningOpRef<ModuleOp> code = ModuleOp::create(source->module.getLoc());
  for (auto [index, op] : llvm::enumerate(added)) {
    exec::KernelOp kernel = op;
    tell(llvm::formatv("kernel {0} of {1}", index + 1, added.size()));
    StringRef name = kernel.getSymName();
    program::Kernel &entry = program.kernels[source->kernels.lookup(name)];
    codegen::DeviceKernel made = codegen::emitDeviceKernel(
        kernel.getBody().front(), name, *code, target, kernel.getInPlace().value_or(ArrayRef<int64_t>()),
        source->alignments.lookup(name), source->areInPlace.lookup(name), entry.reports);
    entry.grid = {made.grid[0], made.grid[1], made.grid[2]};
    entry.block = {made.block[0], made.block[1], made.block[2]};
  }
  return code;
}

/// What the emulated device loads is in the place of a cubin: code for it alone.
LogicalResult ProgramTables::addEmulated(ModuleOp code, const codegen::CudaTarget &target, size_t index,
                                         program::Module &library) {
  llvm::Expected<std::unique_ptr<codegen::HostTarget>> host = codegen::HostTarget::create("native");
  if (!host)
    return source->module.emitError(llvm::toString(host.takeError()));
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> device = codegen::translateDevice(code, target, context);
  if (!device)
    return failure();
  llvm::Expected<std::string> emulated = codegen::makeEmulatedLibrary(*device, **host);
  if (!emulated)
    return source->module.emitError(llvm::toString(emulated.takeError()));
  addObject(library, index, program::Format::Cubin, std::move(*emulated));
  return success();
}

/// A cubin that cannot be made is no error: the driver assembles PTX by itself.
LogicalResult ProgramTables::addDeviceCode(ArrayRef<exec::KernelOp> added, program::Module &library) {
  for (auto [index, architecture] : llvm::enumerate(options.devices)) {
    llvm::Expected<std::unique_ptr<codegen::CudaTarget>> created = codegen::CudaTarget::create(architecture);
    if (!created)
      return source->module.emitError(llvm::toString(created.takeError()));
    std::unique_ptr<codegen::CudaTarget> target = std::move(*created);
    target->allow(options.allowed);
    addTarget(index, program::Device::Cuda, architecture);
    if (added.empty())
      continue;
    OwningOpRef<ModuleOp> code = emitDevice(added, *target);
    tell(llvm::formatv("{0} code of {1} kernels", architecture, added.size()));
    if (target->isEmulated()) {
      if (failed(addEmulated(*code, *target, index, library)))
        return failure();
      continue;
    }
    FailureOr<std::string> ptx = codegen::compilePtx(*code, *target);
    if (failed(ptx))
      return failure();
    if (llvm::Expected<std::string> cubin = codegen::assemblePtx(*ptx, *target))
      addObject(library, index, program::Format::Cubin, std::move(*cubin));
    else
      llvm::consumeError(cubin.takeError()); // PTX is there for that
    addObject(library, index, program::Format::Ptx, std::move(*ptx));
  }
  return success();
}
