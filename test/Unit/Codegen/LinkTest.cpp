//===- LinkTest.cpp - kernels as a shared library -------------------------===//
#include "Harness.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;

// The way of the runtime: bytes in memory, a private library, one symbol. `atan` is the C library's.
TEST_F(KernelTest, RunsFromALibrary) {
  FailureOr<std::string> object = compile(R"(func.func @main(%x: tensor<5xf64>) -> tensor<5xf64> {
    %0 = nn.atan %x : (tensor<5xf64>) -> tensor<5xf64>
    return %0 : tensor<5xf64>
  })");
  ASSERT_TRUE(succeeded(object)) << errors;
  llvm::Expected<std::string> library = linkObject(*object);
  ASSERT_TRUE(bool(library)) << llvm::toString(library.takeError());
  int file = memfd_create("kernels", 0);
  ASSERT_EQ(write(file, library->data(), library->size()), ssize_t(library->size()));
  void *loaded = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_TRUE(loaded) << dlerror();
  auto kernel = reinterpret_cast<void (*)(void **)>(dlsym(loaded, "kernel"));
  ASSERT_TRUE(kernel) << dlerror();
  EXPECT_FALSE(dlsym(loaded, "kernel.kernel"));
  double x[5] = {-2, -0.5, 0, 1, 30}, y[5] = {};
  void *buffers[] = {x, y};
  kernel(buffers);
  for (int i = 0; i < 5; ++i)
    EXPECT_DOUBLE_EQ(y[i], std::atan(x[i]));
  dlclose(loaded);
  close(file);
  EXPECT_NE(library->find(llvm::StringRef("libm.so").data()), std::string::npos) << "its needs are not named";
  EXPECT_EQ(library->find("cleave-"), std::string::npos) << "it names a file of this machine";
  llvm::Expected<std::string> again = linkObject(*object);
  ASSERT_TRUE(bool(again)) << llvm::toString(again.takeError());
  EXPECT_EQ(*library, *again);
}

TEST_F(KernelTest, SaysWhatCannotBeLinked) {
  llvm::Expected<std::string> library = linkObject("no object");
  ASSERT_FALSE(bool(library));
  EXPECT_NE(llvm::toString(library.takeError()).find("cannot link kernels"), std::string::npos);
}
