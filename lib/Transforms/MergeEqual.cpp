//===- MergeEqual.cpp - equal ops merge, unused ones go -------------------===//
//
// One walk in order with a set of the ops seen: an op that is in it already goes.
//
// (Upstream's common subexpression elimination keeps no hashes: it looks at every op again whenever its table grows,
// and at strangers in the same bucket. On a large model, where each look misses the cache, that is most of the cost.
// Functions are single blocks here, which needs no dominance.)
//
//===----------------------------------------------------------------------===//
#include "cleave/Transforms/MergeEqual.h"

#include "mlir/IR/OperationSupport.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/Statistic.h"
#include "llvm/Support/DebugLog.h"

using namespace mlir;
using namespace cleave;

#define DEBUG_TYPE "merge-equal"

ALWAYS_ENABLED_STATISTIC(numMerged, "ops that are gone, as another one is equal");
ALWAYS_ENABLED_STATISTIC(numUnused, "ops that are gone, as they have no users");

/// Where an op comes from is in its location and in discardable attributes, and is no part of what it computes.
static constexpr auto kIgnored = static_cast<OperationEquivalence::Flags>(OperationEquivalence::IgnoreLocations |
                                                                          OperationEquivalence::IgnoreDiscardableAttrs);

bool SeenOps::EntryInfo::isEqual(const Entry &a, const Entry &b) {
  if (a.op == b.op || a.hash != b.hash)
    return a.op == b.op;
  auto isReal = [](Operation *op) { return op != getEmptyKey().op && op != getTombstoneKey().op; };
  return isReal(a.op) && isReal(b.op) && OperationEquivalence::isEquivalentTo(a.op, b.op, kIgnored);
}

Operation *SeenOps::getFirst(Operation *op) {
  llvm::hash_code hash = OperationEquivalence::computeHash(op, OperationEquivalence::directHashValue,
                                                           OperationEquivalence::ignoreHashValue, kIgnored);
  return entries.insert({op, static_cast<unsigned>(size_t(hash))}).first->op;
}

/// Back to front, so that whole chains go in one pass. Returns how many ops are left.
static size_t eraseUnused(Block &block) {
  size_t numLeft = 0;
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block))) {
    if (!isOpTriviallyDead(&op)) {
      ++numLeft;
      continue;
    }
    ++numUnused;
    op.erase();
  }
  return numLeft;
}

/// What is equal in the block and in a body within it is not one op: the body may run often, or not at all.
void cleave::mergeEqual(Block &block) {
  SeenOps seen;
  seen.reserve(eraseUnused(block));
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (op.getNumRegions() != 0 || op.hasTrait<OpTrait::IsTerminator>() || !isMemoryEffectFree(&op))
      continue;
    Operation *first = seen.getFirst(&op);
    if (first == &op)
      continue;
    ++numMerged;
    LDBG() << "there is already " << *first;
    op.replaceAllUsesWith(first);
    op.erase();
  }
}

void cleave::mergeEqual(func::FuncOp func) {
  for (Block &block : func.getBody())
    mergeEqual(block);
}
