//===- Shard.cpp - from wishes to the program of one device ---------------===//
//
// The second half of a model's way, for tools that start from a file in the nn dialect: wishes in types, by hand or
// from a plan; a sharding for every value; reshards; local shapes and collectives; nothing sent twice.
//
//===----------------------------------------------------------------------===//
#include "cleave/Pipelines/Shard.h"

#include "cleave/Dialect/Spmd/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;
using namespace cleave;

namespace {
/// The options of `spmd-shard` as typed.
struct ShardPipelineOptions : PassPipelineOptions<ShardPipelineOptions> {
  Option<std::string> plan{*this, "plan", llvm::cl::desc("Plan file (YAML)")};
  Option<std::string> mesh{*this, "mesh", llvm::cl::desc("Mesh, such as data=2,model=4; overrides the plan's")};
  ListOption<std::string> shard{*this, "shard", llvm::cl::desc("Rules such as 'x=[data, _]'")};
  Option<spmd::Optimize> optimize{*this, "optimize", llvm::cl::desc("Objective: balanced or bytes"),
                                  llvm::cl::init(spmd::Optimize::Balanced), spmd::getOptimizeValues()};
  Option<bool> checkBytes{*this, "check-bytes", llvm::cl::desc("Fail where other bytes are sent than were decided"),
                          llvm::cl::init(false)};
};
} // namespace

void cleave::buildShardPipeline(OpPassManager &manager, ShardOptions options) {
  for (const PipelinePhase &phase : getShardPhases())
    if (phase.phase >= Phase::Annotated)
      phase.addPasses(manager, options);
}

static void buildFromText(OpPassManager &manager, const ShardPipelineOptions &typed) {
  ShardOptions options;
  options.source = {typed.plan, typed.mesh, {typed.shard.begin(), typed.shard.end()}};
  options.optimize = typed.optimize;
  options.checkBytes = typed.checkBytes;
  buildShardPipeline(manager, std::move(options));
}

void cleave::registerSpmdPipelines() {
  spmd::registerSpmdPasses();
  PassPipelineRegistration<ShardPipelineOptions>("spmd-shard", "from wishes to the program of one device",
                                                 buildFromText);
}
