//===- StageSplitter.cpp - a function, to be split into stages ------------===//
//
// What the plan says of stages that no schedule says: limits, what stays together, what is done by hand.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Pipe/Stages/StageSplitter.h"

using namespace cleave;
using namespace cleave::pipe;

llvm::Expected<StageSplitter> StageSplitter::create(mlir::func::FuncOp func, const DeviceRates &rates,
                                                    const spmd::PlanPipeline *pipeline) {
  StageSplitter splitter;
  splitter.graph = makeStageGraph(func, rates);
  splitter.options.latencyNs = rates.getMessageNs();
  splitter.options.bytesPerNs = rates.link.bytesPerNs;
  splitter.options.speeds = rates.speeds;
  if (!pipeline)
    return splitter;
  for (const spmd::PlanPattern &pattern : pipeline->together) {
    llvm::Expected<std::vector<uint32_t>> users = findUsers(splitter.graph, pattern);
    if (!users)
      return users.takeError();
    splitter.graph.problem.together.push_back(std::move(*users));
  }
  splitter.lines = pipeline->stages;
  splitter.said = pipeline->said;
  splitter.options.relays = pipeline->relays;
  splitter.options.memoryLimit = pipeline->memoryLimit;
  if (pipeline->memoryLimit != 0)
    splitter.options.memoryLimits = rates.memoryBytes;
  if (pipeline->balance == spmd::PlanBalance::Latency)
    splitter.options.objective = schedule::SplitObjective::Latency;
  return splitter;
}

llvm::Expected<schedule::StageSplit> StageSplitter::splitStages(llvm::ArrayRef<int32_t> placement, StageFault *fault,
                                                                llvm::ArrayRef<int64_t> inFlight) const {
  schedule::SplitOptions wanted = options;
  wanted.placement = placement.vec();
  wanted.inFlight = inFlight.vec();
  return findStageSplit(graph, lines, wanted, said, fault);
}
