//===- Harness.h - kernels against the evaluator in tests -------*- C++ -*-===//
#ifndef CLEAVE_TEST_UNIT_CODEGEN_HARNESS_H
#define CLEAVE_TEST_UNIT_CODEGEN_HARNESS_H

#include "../../Codegen/KernelRunner.h"
#include "cleave/Codegen/Device/Device.h"
#include "gtest/gtest.h"

namespace cleave::codegen {

/// The number that the environment gives for `name`, so that a case can be repeated.
inline uint64_t getNumber(const char *name, uint64_t otherwise) {
  const char *text = getenv(name);
  return text ? strtoull(text, nullptr, 10) : otherwise;
}

/// Runs functions as kernels of one op or several.
class KernelTest : public ::testing::Test {
protected:
  KernelTest();

  /// Compiles @main of `text` as one kernel, and runs it on random inputs; an empty string if all results are the
  /// evaluator's, else what is wrong.
  std::string check(llvm::StringRef text, uint64_t seed = 1);
  /// Likewise for the ops of a function of one result %y: `types` are those of %0, %1, .. .
  std::string checkBody(llvm::StringRef body, llvm::ArrayRef<std::string> types, llvm::StringRef result,
                        uint64_t seed = 1);
  std::string checkOn(llvm::StringRef text, llvm::ArrayRef<reference::Tensor> inputs,
                      llvm::ArrayRef<InPlace> places = {});
  /// As `check`, with results where arguments lie, wherever `canBeInPlace` allows it: each such pair by itself, then as many
  /// as go together. Adds up the pairs in `pairs`.
  std::string checkInPlace(llvm::StringRef text, uint64_t seed, int64_t &pairs);
  mlir::FailureOr<std::string> compile(llvm::StringRef text);

  mlir::MLIRContext context;
  std::string errors;
  std::unique_ptr<HostTarget> target;
  /// With CLEAVE_DEVICE=n in the environment every n-th of what runs on the host runs on an emulated device, too.
  std::unique_ptr<CudaTarget> device;

private:
  int64_t every = 1;
  inline static int64_t count = 0; ///< of all tests together
  std::string checkOnDevice(mlir::func::FuncOp func, llvm::ArrayRef<reference::Tensor> inputs,
                            llvm::ArrayRef<reference::Tensor> want, llvm::ArrayRef<InPlace> places);
};

} // namespace cleave::codegen

#endif // CLEAVE_TEST_UNIT_CODEGEN_HARNESS_H
