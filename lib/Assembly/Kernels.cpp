//===- Kernels.cpp - kernels of a module as machine code ------------------===//
//
// All kernels of a processor are one shared library: one object file, linked once. They are compiled in the order in
// which they stand, so equal modules give equal bytes.
//
//===----------------------------------------------------------------------===//
#include "Assembler.h"

#include "cleave/Program/Words.h"
#include "llvm/Support/FormatVariadic.h"

#include <chrono>

using namespace mlir;
using namespace cleave;

/// Arguments are read, results are written, and may be in place of an argument where the code allows.
void Assembler::addKernel(exec::KernelOp op) {
  kernels[op.getSymName()] = program.kernels.size();
  program::Kernel &kernel = program.kernels.emplace_back();
  kernel.name = kernel.entry = op.getSymName().str();
  auto add = [&](Type type, program::Access access, int64_t alias) {
    uint32_t number = addType(cast<ShapedType>(type));
    uint32_t alignment = program::getElementBytes(program.types[number].element);
    kernel.parameters.push_back({number, access, int32_t(alias), alignment});
  };
  for (Type type : op.getBody().getArgumentTypes())
    add(type, program::Access::Read, -1);
  for (auto [result, type] : llvm::enumerate(op.getResultTypes()))
    add(type, program::Access::Write, op.getInPlace() ? (*op.getInPlace())[result] : -1);
}

FailureOr<std::string> Assembler::compile(const codegen::HostTarget &target) {
  auto tell = [&](const std::string &text) {
    if (options.onProgress)
      options.onProgress(text);
  };
  OwningOpRef<ModuleOp> code = ModuleOp::create(module.getLoc());
  size_t count = program.kernels.size(), emitted = 0;
  for (auto kernel : module.getOps<exec::KernelOp>()) {
    tell(llvm::formatv("kernel {0} of {1}", ++emitted, count));
    codegen::emitHostKernel(kernel.getBody().front(), kernel.getSymName(), *code, target);
  }
  tell(llvm::formatv("machine code of {0} kernels", count));
  FailureOr<std::string> object = codegen::compileObject(*code, target);
  if (failed(object))
    return module.emitError("its kernels cannot be compiled");
  llvm::Expected<std::string> library = codegen::linkObject(*object);
  if (!library)
    return module.emitError(llvm::toString(library.takeError()));
  return std::move(*library);
}

LogicalResult Assembler::addKernels() {
  auto start = std::chrono::steady_clock::now();
  codegen::loadDialects(*module.getContext());
  for (auto kernel : module.getOps<exec::KernelOp>()) {
    std::string reason;
    if (!codegen::canEmit(kernel.getBody().front(), reason))
      return kernel.emitError("no kernel can be made of it: ") << reason;
    addKernel(kernel);
  }
  program::Module &library = program.modules.emplace_back();
  library.name = "kernels";
  for (const std::string &isa : options.isas) {
    std::string error;
    std::unique_ptr<codegen::HostTarget> target = codegen::HostTarget::create(isa, error);
    if (!target)
      return module.emitError(error);
    FailureOr<std::string> code = compile(*target);
    if (failed(code))
      return failure();
    library.objects.push_back(
        {uint32_t(program.targets.size()), program::Format::SharedObject, made->bytes.emplace_back(std::move(*code))});
    program.targets.push_back({program::Device::Host, target->getArchitecture(), target->getRequirements()});
  }
  made->compileSeconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return success();
}
