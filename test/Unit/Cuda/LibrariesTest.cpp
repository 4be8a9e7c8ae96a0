//===- LibrariesTest.cpp - libraries that are not there -------------------===//
//
// What opens once stays open, so each case is a process of its own.
//
//===----------------------------------------------------------------------===//
#include "cleave/Cuda/Libraries.h"

#include <cstdio>
#include <cstdlib>
#include <gmock/gmock.h>

using namespace cleave;
using testing::AllOf;
using testing::HasSubstr;

/// The error of opening the driver in a process with this setting.
static void openDriverWith(const char *library) {
  setenv("CLEAVE_CUDA_LIBRARY", library, 1);
  program::Result<const cuda::Driver *> driver = cuda::openDriver();
  std::fprintf(stderr, "%s\n", driver ? "opened" : driver.getError().message.c_str());
  std::exit(driver ? 0 : 1);
}

TEST(CudaLibrariesTest, NamesWhatWasTried) {
  EXPECT_EXIT(openDriverWith("/no/such/libcuda.so"), testing::ExitedWithCode(1),
              "no CUDA driver .12 or later. found; tried /no/such/libcuda.so");
}

TEST(CudaLibrariesTest, TriesAllNamesOfAFolder) {
  EXPECT_EXIT(openDriverWith("/"), testing::ExitedWithCode(1), "tried //libcuda.so.1, //libcuda.so");
}

TEST(CudaLibrariesTest, AnotherLibraryLacksAnEntry) {
  EXPECT_EXIT(openDriverWith("libc.so.6"), testing::ExitedWithCode(1), "libc.so.6 has no cuInit: ");
}

TEST(CudaLibrariesTest, AFileThatIsNoLibrarySaysWhy) {
  EXPECT_EXIT(openDriverWith("/etc/passwd"), testing::ExitedWithCode(1), "found .*/etc/passwd: .*; tried /etc/passwd");
}

/// Whoever compares libraries with kernels leaves them out.
static void openBlasWithout(const char *names) {
  setenv("CLEAVE_CUDA_WITHOUT", names, 1);
  setenv("CLEAVE_CUDA_LIBRARY", "/no/such/library", 1);
  program::Result<const cuda::Blas *> blas = cuda::openBlas();
  std::fprintf(stderr, "%s\n", blas ? "opened" : blas.getError().message.c_str());
  std::exit(blas ? 0 : 1);
}

TEST(CudaLibrariesTest, LibrariesCanBeLeftOut) {
  EXPECT_EXIT(openBlasWithout("cudnn,cublasLt"), testing::ExitedWithCode(1), "CLEAVE_CUDA_WITHOUT names cublasLt");
  EXPECT_EXIT(openBlasWithout("cudnn,cublasLt2"), testing::ExitedWithCode(1), "tried /no/such/library");
}

TEST(CudaLibrariesTest, WordsOfErrors) {
  EXPECT_EQ(cuda::describe(cuda::NcclResult::RemoteError), "ncclRemoteError");
  EXPECT_EQ(cuda::describe(cuda::NcclResult(9)), "NCCL error 9");
  EXPECT_EQ(cuda::describe(cuda::BlasStatus::NotSupported), "CUBLAS_STATUS_NOT_SUPPORTED");
  EXPECT_EQ(cuda::describe(cuda::BlasStatus(99)), "cuBLAS status 99");
}
