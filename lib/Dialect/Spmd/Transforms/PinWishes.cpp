//===- PinWishes.cpp - keeps what a plan names ----------------------------===//
//
//   plan     {tensor: hidden, dims: [data, _]}
//   before   module { ... }
//   after    module attributes {nn.keep = {hidden}} { ... }
//
// What is wrong with the plan is left for spmd-annotate to say.
//
//===----------------------------------------------------------------------===//
#include "PlanTargets.h"

#include "cleave/Dialect/Nn/IR/Nn.h"
#include "cleave/Dialect/Spmd/Transforms/Passes.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseSet.h"

namespace cleave::spmd {
#define GEN_PASS_DEF_PINWISHES
#include "cleave/Dialect/Spmd/IR/SpmdPasses.h.inc"
} // namespace cleave::spmd

using namespace mlir;
using namespace cleave;
using namespace cleave::spmd;

namespace {
struct PinWishes : spmd::impl::PinWishesBase<PinWishes> {
  using Base::Base;

  void runOnOperation() override {
    Plan wishes;
    PlanError error;
    if (!plan.empty() && failed(readPlanFile(plan, wishes, error)))
      return;
    for (const std::string &rule : shard)
      if (failed(parseShardOption(rule, wishes, error)))
        return;
    PlanTargets table(getOperation());
    Builder builder(&getContext());
    NamedAttrList names;
    llvm::DenseSet<StringRef> seen;
    for (const PlanRule &rule : wishes.rules) {
      SmallVector<PlanTarget> targets;
      if (succeeded(table.find(rule, targets, error)))
        for (const PlanTarget &target : targets)
          if (seen.insert(target.name).second)
            names.append(target.name, builder.getUnitAttr());
    }
    if (!names.empty())
      getOperation()->setAttr(nn::NnDialect::kKeepAttr, names.getDictionary(&getContext()));
  }
};
} // namespace
