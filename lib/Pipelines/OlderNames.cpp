//===- OlderNames.cpp - passes by the names that they had -----------------===//
//
// Scripts that name a pass as it was called before go on working; docs/glossary.md says what it is called now.
//
//===----------------------------------------------------------------------===//
#include "OlderNames.h"

#include "cleave/Dialect/Exec/Transforms/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;
using namespace cleave;

namespace {
/// Those of exec-fuse-kernels.
struct FusionOptions : PassPipelineOptions<FusionOptions> {
  Option<bool> forDevices{*this, "for-devices", llvm::cl::desc("kernels are for devices of the cluster"),
                          llvm::cl::init(false)};
};
} // namespace

void cleave::registerOlderNames() {
  PassPipelineRegistration<FusionOptions>("exec-form-kernels", "the older name of exec-fuse-kernels",
                                          [](OpPassManager &manager, const FusionOptions &options) {
                                            exec::FuseKernelsOptions own;
                                            own.forDevices = options.forDevices;
                                            manager.addPass(exec::createFuseKernels(own));
                                          });
}
