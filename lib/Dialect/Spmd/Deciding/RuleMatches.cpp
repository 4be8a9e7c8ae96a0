//===- RuleMatches.cpp - the rule of each op, and how it is split ---------===//
//
// A deep model repeats few ops many times. Ops that agree in name, attributes and types have one rule and one way to be
// split, so both are found once per such class: the hash looks at what the rule may look at, and at nothing else.
//
//===----------------------------------------------------------------------===//
#include "RuleMatches.h"

#include <cassert>

using namespace mlir;
using namespace cleave::spmd;

/// The states of `types`; null, and the reason in `error`, if one is not sharded.
static SmallVector<const State *> findStates(MeshAtoms &atoms, TypeRange types, StringRef what, std::string &error) {
  SmallVector<const State *> states;
  for (auto [index, type] : llvm::enumerate(types)) {
    ShardingAttr sharding = getSharding(type);
    if (!sharding)
      error = what.str() + " " + std::to_string(index) + " has no sharding";
    states.push_back(sharding ? &atoms.toState(sharding) : nullptr);
  }
  return states;
}

std::unique_ptr<RuleMatches::Entry> RuleMatches::build(ShardingRuleOpInterface op) {
  auto entry = std::make_unique<Entry>();
  entry->rule = op.getShardingRule();
  auto operands = findStates(atoms, op->getOperandTypes(), "operand", entry->error);
  auto results = findStates(atoms, op->getResultTypes(), "result", entry->error);
  if (entry->error.empty())
    entry->match = matchRule(atoms.getAtoms(), entry->rule, operands, results, entry->error);
  if (!entry->match)
    return entry;
  for (const AtomList &split : entry->match->splits)
    entry->splits.push_back(atoms.toAxes(split));
  for (Type type : op->getResultTypes())
    entry->localResults.push_back(getLocalType(cast<RankedTensorType>(type)));
  return entry;
}

const RuleMatches::Entry &RuleMatches::get(ShardingRuleOpInterface op) {
  assert(llvm::all_of(op->getOperandTypes(), llvm::IsaPred<RankedTensorType>) &&
         llvm::all_of(op->getResultTypes(), llvm::IsaPred<RankedTensorType>) && "not an op on tensors");
  std::unique_ptr<Entry> &slot = entries[op.getOperation()];
  if (!slot)
    slot = build(op);
  return *slot;
}
