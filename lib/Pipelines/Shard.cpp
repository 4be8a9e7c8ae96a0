//===- Shard.cpp - from annotations to the program of one device ----------===//
//
// The second half of a model's way, for tools that start from a file in the nn dialect: annotations in types, by hand or
// from a plan; a sharding for every value; reshards; local shapes and collectives; nothing sent twice.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Exec/IR/Exec.h"
#include "cleave/Dialect/Nn/IR/Nn.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "cleave/Dialect/Spmd/Transforms/Passes.h"
#include "cleave/Pipelines/Phases.h"
#include "mlir/Pass/PassManager.h"

namespace cleave::spmd {
#define GEN_PASS_DEF_SHARDPIPELINE
#include "cleave/Dialect/Spmd/IR/SpmdPasses.h.inc"
} // namespace cleave::spmd

using namespace mlir;
using namespace cleave;

namespace {
struct Shard : spmd::impl::ShardPipelineBase<Shard> {
  using Base::Base;

  /// Those that SpmdPasses.td cannot name.
  void getDependentDialects(DialectRegistry &registry) const override {
    Base::getDependentDialects(registry);
    registry.insert<exec::ExecDialect>();
  }

  ShardOptions getOptions() const {
    ShardOptions options;
    static_cast<spmd::AnnotateOptions &>(options) = {plan, mesh,  llvm::to_vector(shard), llvm::to_vector(state),
                                                     free, uneven};
    static_cast<spmd::PropagateOptions &>(options) = {optimize, keepPlan, attention, memoryPrice, traceDecisions};
    static_cast<spmd::PartitionOptions &>(options) = {checkBytes};
    return options;
  }

  void runOnOperation() override {
    OpPassManager manager(ModuleOp::getOperationName());
    ShardState state;
    for (const PipelinePhase &phase : getShardPhases())
      if (phase.phase >= Phase::Annotated)
        phase.addPasses(manager, getOptions(), state);
    if (failed(runPipeline(manager, getOperation())))
      signalPassFailure();
  }
};
} // namespace
