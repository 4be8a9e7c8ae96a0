//===- Lower.cpp - from one device's program to kernels and commands ------===//
//
// The last part of a model's way, for tools that start from a file: ops in groups, each group a kernel, each distinct
// kernel once.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Exec/IR/Exec.h"
#include "cleave/Dialect/Exec/Transforms/Passes.h"
#include "cleave/Pipelines/Phases.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"

namespace cleave::exec {
#define GEN_PASS_DEF_LOWERPIPELINE
#include "cleave/Dialect/Exec/IR/ExecPasses.h.inc"
} // namespace cleave::exec

using namespace mlir;
using namespace cleave;

namespace {
struct Lower : exec::impl::LowerPipelineBase<Lower> {
  using Base::Base;

  void runOnOperation() override {
    OpPassManager manager(ModuleOp::getOperationName());
    ShardState state;
    ShardOptions options;
    options.isForDevices = forDevices;
    options.usesLibraries = withLibraries;
    for (const PipelinePhase &phase : getLowerPhases())
      if (phase.phase <= last)
        phase.addPasses(manager, options, state);
    if (failed(runPipeline(manager, getOperation())))
      signalPassFailure();
  }
};
} // namespace
