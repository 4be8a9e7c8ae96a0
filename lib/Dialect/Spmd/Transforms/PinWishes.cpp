//===- PinWishes.cpp - keeps what a plan names ----------------------------===//
//
//   plan     {tensor: hidden, dims: [data, _]}
//   before   %h = nn.exp %x      %y = nn.neg %h
//   after    %h = nn.exp %x      %p = spmd.pin %h "hidden"      %y = nn.neg %p
//
// Arguments and results of functions cannot vanish and need no pin. A value has several names where the model passes it
// on (Identity); each that is named gets a pin of its own, one behind the other, so that they may be wanted
// differently. What is wrong with the plan is left for spmd-annotate to say.
//
//===----------------------------------------------------------------------===//
#include "PlanTargets.h"

#include "cleave/Dialect/Nn/IR/NodeLoc.h"
#include "cleave/Dialect/Spmd/Transforms/Passes.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/SetVector.h"

namespace cleave::spmd {
#define GEN_PASS_DEF_PINWISHES
#include "cleave/Dialect/Spmd/IR/SpmdPasses.h.inc"
} // namespace cleave::spmd

using namespace mlir;
using namespace cleave;
using namespace cleave::spmd;

/// The location of a value whose only name is `name`.
static Location getPinLoc(Value value, StringRef name) {
  for (nn::NodeInfo &info : nn::getNodeInfos(value.getLoc()))
    for (ArrayRef<StringRef> names : info.results)
      if (llvm::is_contained(names, name)) {
        ArrayRef<StringRef> only(name);
        info.results = only;
        return nn::makeNodeLoc(value.getContext(), info);
      }
  return value.getLoc();
}

static void pin(Value value, const llvm::DenseSet<StringRef> &wanted) {
  OpBuilder builder(value.getContext());
  builder.setInsertionPointAfterValue(value);
  Value last = value;
  for (StringRef name : nn::getTensorNames(value)) {
    if (!wanted.contains(name))
      continue;
    auto pin = PinOp::create(builder, getPinLoc(value, name), last, name);
    last.replaceAllUsesExcept(pin, pin);
    last = pin;
  }
}

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
    note(wishes);
    for (auto &[value, names] : pinned)
      pin(value, names);
    pinned.clear();
  }

private:
  /// Looks up every rule: what it addresses goes into `spmd.named`, and the values inside into `pinned`.
  void note(const Plan &wishes) {
    PlanTargets table(getOperation());
    Builder builder(&getContext());
    NamedAttrList named(getOperation()->getAttrOfType<DictionaryAttr>(SpmdDialect::kNamedAttr));
    for (const PlanRule &rule : wishes.rules) {
      PlanError error;
      SmallVector<PlanTarget> targets;
      if (failed(table.find(rule, targets, error)))
        continue;
      llvm::SetVector<StringRef> names;
      bool isInside = rule.target != PlanRule::Target::Tensor;
      for (const PlanTarget &target : targets) {
        names.insert(target.name);
        if (!isa_and_present<OpResult>(target.value))
          continue;
        isInside = true;
        if (!target.value.getDefiningOp<PinOp>())
          pinned[target.value].insert(target.name);
      }
      if (isInside)
        named.set(rule.formatTarget(), builder.getStrArrayAttr(names.getArrayRef()));
    }
    if (!named.empty())
      getOperation()->setAttr(SpmdDialect::kNamedAttr, named.getDictionary(&getContext()));
  }

  llvm::MapVector<Value, llvm::DenseSet<StringRef>> pinned;
};
} // namespace
