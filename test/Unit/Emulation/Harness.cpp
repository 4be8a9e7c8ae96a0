//===- Harness.cpp - emulated kernels in tests ----------------------------===//
#include "Harness.h"

#include "cleave/Codegen/Codegen.h"
#include "cleave/EmulatedKernels/EmulateDevice.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace cleave;
using namespace cleave::emulation;

static constexpr const char *prelude = R"(
target triple = "nvptx64-nvidia-cuda"
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.laneid()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
declare void @llvm.nvvm.bar.warp.sync(i32)
declare float @llvm.nvvm.shfl.sync.bfly.f32(i32, float, i32, i32)
declare {i32, i1} @llvm.nvvm.shfl.sync.up.i32p(i32, i32, i32, i32)
declare i32 @llvm.nvvm.shfl.sync.down.i32(i32, i32, i32, i32)
declare i32 @llvm.nvvm.shfl.sync.idx.i32(i32, i32, i32, i32)
declare i32 @llvm.nvvm.vote.ballot.sync(i32, i1)
declare i32 @llvm.nvvm.redux.sync.add(i32, i32)
declare void @llvm.nvvm.cp.async.ca.shared.global.4(ptr addrspace(3), ptr addrspace(1))
declare void @llvm.nvvm.cp.async.commit.group()
declare void @llvm.nvvm.cp.async.wait.group(i32)
declare {float, float, float, float} @llvm.nvvm.mma.m16n8k16.row.col.f32.f32(<2 x half>, <2 x half>, <2 x half>, <2 x half>, <2 x half>, <2 x half>, float, float, float, float)
declare {float, float, float, float} @llvm.nvvm.mma.m16n8k8.row.col.tf32(i32, i32, i32, i32, i32, i32, float, float, float, float)
declare {i32, i32} @llvm.nvvm.ldmatrix.sync.aligned.m8n8.x2.b16.p3(ptr addrspace(3))
declare i32 @llvm.nvvm.ldmatrix.sync.aligned.m8n8.x1.trans.b16.p3(ptr addrspace(3))
)";

std::string cleave::emulation::compileKernels(const std::string &text, std::string &error, const char *isa) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic diagnostic;
  std::unique_ptr<llvm::Module> device = llvm::parseAssemblyString(prelude + text, diagnostic, context);
  if (!device) {
    llvm::raw_string_ostream os(error);
    diagnostic.print("kernels", os);
    return "";
  }
  auto host = llvm::cantFail(codegen::HostTarget::create(isa));
  llvm::Expected<std::string> made = codegen::makeEmulatedLibrary(*device, *host);
  if (made)
    return std::move(*made);
  error = llvm::toString(made.takeError());
  return "";
}

KernelTest::~KernelTest() {
  if (library)
    dlclose(library);
}

void KernelTest::load(const std::string &text, const char *isa) {
  std::string error, image = compileKernels(text, error, isa);
  ASSERT_FALSE(image.empty()) << error;
  // The loader knows libraries by their names, and this one's will be that of the one before.
  if (library)
    dlclose(library);
  int file = memfd_create("kernels", 0);
  ASSERT_EQ(write(file, image.data(), image.size()), ssize_t(image.size()));
  library = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL);
  close(file);
  ASSERT_TRUE(library) << dlerror();
  module = static_cast<const Module *>(dlsym(library, moduleSymbol));
  ASSERT_TRUE(module);
  ASSERT_EQ(module->version, moduleVersion);
  *module->hooks = &getHooks();
}

const Kernel *KernelTest::find(const std::string &name) const {
  for (uint32_t i = 0; i < module->kernelCount; ++i)
    if (name == module->kernels[i].name)
      return &module->kernels[i];
  return nullptr;
}

std::string KernelTest::run(const std::string &name, uint32_t grid, uint32_t block, std::vector<void *> buffers,
                            uint32_t dynamicBytes, std::function<Range(const void *)> findMemory) {
  std::vector<void *> parameters;
  for (void *&buffer : buffers)
    parameters.push_back(&buffer);
  Launch launch;
  launch.kernel = find(name);
  if (!launch.kernel)
    return "no kernel " + name;
  launch.grid[0] = grid;
  launch.block[0] = block;
  launch.dynamicBytes = dynamicBytes;
  launch.parameters = parameters.data();
  launch.findMemory = std::move(findMemory);
  return emulation::run(launch);
}
