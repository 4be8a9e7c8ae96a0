//===- StageCutter.cpp - a function, to be cut into stages ----------------===//
//
// What the plan says of stages that no schedule says: limits, what stays together, what is done by hand.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Pipe/Stages/StageCutter.h"

using namespace cleave;
using namespace cleave::pipe;

llvm::Expected<StageCutter> StageCutter::create(mlir::func::FuncOp func, const DeviceRates &rates,
                                                const spmd::PlanPipeline *pipeline) {
  StageCutter cutter;
  cutter.graph = makeStageGraph(func, rates);
  cutter.options.latencyNs = rates.getMessageNs();
  cutter.options.bytesPerNs = rates.link.bytesPerNs;
  cutter.options.speeds = rates.speeds;
  if (!pipeline)
    return cutter;
  for (const spmd::PlanPattern &pattern : pipeline->together) {
    llvm::Expected<std::vector<uint32_t>> users = findUsers(cutter.graph, pattern);
    if (!users)
      return users.takeError();
    cutter.graph.problem.together.push_back(std::move(*users));
  }
  cutter.lines = pipeline->stages;
  cutter.said = pipeline->said;
  cutter.options.relays = pipeline->relays;
  cutter.options.memoryLimit = pipeline->memoryLimit;
  if (pipeline->memoryLimit != 0)
    cutter.options.memoryLimits = rates.memoryBytes;
  if (pipeline->balance == spmd::PlanBalance::Latency)
    cutter.options.objective = schedule::SplitObjective::Latency;
  return cutter;
}

llvm::Expected<schedule::StageSplit> StageCutter::cut(llvm::ArrayRef<int32_t> placement, StageFault *fault) const {
  schedule::SplitOptions wanted = options;
  wanted.placement = placement.vec();
  return cutStages(graph, lines, wanted, said, fault);
}
