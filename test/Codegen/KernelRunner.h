//===- KernelRunner.h - kernels against the evaluator -----------*- C++ -*-===//
//
// For tests: runs kernels between pages that fault (Guards.h), and says what differs from the evaluator's results.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_TEST_CODEGEN_KERNELRUNNER_H
#define CLEAVE_TEST_CODEGEN_KERNELRUNNER_H

#include "cleave/Codegen/Codegen.h"
#include "cleave/Compiler/Values.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace cleave::codegen {

class CudaTarget;

/// A result of a kernel that lies where an argument lies.
struct InPlace {
  unsigned argument, result;
};

/// Lets this process use tiles.
void askForTiles();

/// Calls `void name(void **)` of an object, between guards; what these find, or an empty string.
std::string runObject(llvm::StringRef object, llvm::StringRef name, llvm::ArrayRef<reference::Tensor> inputs,
                      mlir::TypeRange results, llvm::SmallVectorImpl<reference::Tensor> &got,
                      llvm::ArrayRef<InPlace> places = {});

/// Runs the region's kernel of a device under the emulator; what it finds, or why there is no kernel.
std::string runOnDevice(mlir::Block &region, const CudaTarget &target, const HostTarget &host,
                        llvm::ArrayRef<reference::Tensor> inputs, llvm::SmallVectorImpl<reference::Tensor> &got,
                        llvm::ArrayRef<InPlace> places = {});

/// The first element that differs, or an empty string.
std::string findDifference(llvm::ArrayRef<reference::Tensor> got, llvm::ArrayRef<reference::Tensor> want);

} // namespace cleave::codegen

#endif // CLEAVE_TEST_CODEGEN_KERNELRUNNER_H
