//===- PlanFuzzer.cpp - any text as a plan --------------------------------===//
//
// The input is up to three texts with zero bytes between them: a plan file, the argument of --mesh and that of --shard.
// Whatever they say, there must be a plan or an error with a place and a message. A plan that passes its own check must
// then bear being asked about: patterns against names, rules against shapes.
//
//===----------------------------------------------------------------------===//
#include "cleave/Plan/NamePattern.h"
#include "cleave/Plan/Plan.h"

using namespace llvm;
using namespace cleave::spmd;

static void require(bool holds) {
  if (!holds)
    __builtin_trap();
}

/// Passes `result` on; a failure must have left a message.
static bool isGood(LogicalResult result, const PlanError &error) {
  require(succeeded(result) || (!error.message.empty() && !error.format().empty()));
  return succeeded(result);
}

static void askAbout(const Plan &plan) {
  for (const MeshAxis &axis : plan.mesh)
    require(axis.size >= 1 && plan.findAxis(axis.name) != nullptr);
  const int64_t shape[] = {8, 6, 1, 0};
  for (const PlanRule &rule : plan.rules) {
    NamePattern pattern = rule.getPattern();
    for (StringRef name : {"", "input_ids", "/h.0/attn/c_attn/MatMul"})
      (void)pattern.matches(name);
    for (size_t rank = 0; rank <= std::size(shape); ++rank) {
      PlanError error;
      PlanRule fitted;
      std::vector<PlanNote> left;
      if (isGood(fitRule(plan, rule, "tensor 'x'", ArrayRef(shape).take_front(rank), fitted, left, error), error))
        require(fitted.dims.size() == rank);
    }
    (void)findIdle(plan);
    (void)rule.formatDims();
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto [file, options] = StringRef(reinterpret_cast<const char *>(data), size).split('\0');
  auto [mesh, shard] = options.split('\0');
  Plan plan;
  PlanError error;
  if (!isGood(parsePlan(file, "plan.yaml", plan, error), error) || !isGood(parseMeshOption(mesh, plan, error), error) ||
      (!shard.empty() && !isGood(parseShardOption(shard, plan, error), error)) ||
      !isGood(checkPlan(plan, error), error))
    return 0;
  askAbout(plan);
  return 0;
}
