//===- Phase.cpp - where on its way a module is ---------------------------===//
//
// A gate writes the word of its phase, and the next pass takes it away when it begins: while a pass runs, and after one
// that failed, a module is in no phase. Only where no word stands, in files written by hand, its phase is guessed, from
// the latest sign that is found in types, attributes and ops.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Spmd/IR/Phase.h"

#include "cleave/Dialect/Spmd/IR/Names.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::spmd;

static constexpr PhaseName kPhases[] = {{Phase::Imported, "imported", "import"},
                                        {Phase::Canonical, "canonical", "canonicalize"},
                                        {Phase::Differentiated, "differentiated", "differentiate"},
                                        {Phase::Annotated, "annotated", "annotate"},
                                        {Phase::Propagated, "propagated", "propagate"},
                                        {Phase::Resharded, "resharded", "insert_reshards"},
                                        {Phase::Partitioned, "partitioned", "partition"},
                                        {Phase::Optimized, "optimized", "optimize_collectives"},
                                        {Phase::Staged, "staged", "split_stages"},
                                        {Phase::Scheduled, "scheduled", "schedule"},
                                        {Phase::PerRank, "per-rank", "lower_ranks"},
                                        {Phase::Clustered, "clustered", "form_kernels"},
                                        {Phase::Outlined, "outlined", "outline"},
                                        {Phase::Planned, "planned", "plan_memory"},
                                        {Phase::Ordered, "ordered", "order"}};

ArrayRef<PhaseName> cleave::getPhaseNames() { return kPhases; }

StringRef cleave::toString(Phase phase) { return kPhases[static_cast<int>(phase)].word; }

std::optional<Phase> cleave::parsePhase(StringRef word) {
  for (const PhaseName &name : kPhases)
    if (name.word == word)
      return name.phase;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Files written by hand
//===----------------------------------------------------------------------===//

namespace {
/// What can be seen in a module.
struct Signs {
  bool isSharded = false, isOpen = false, hasReshard = false, isDecided = false;
  /// Global types in signatures, or collectives, which name axes of the module's mesh.
  bool isPartitioned = false;
  /// Ops of the dialect that the lowering makes, which this library does not know.
  bool isClustered = false, isOutlined = false, isPlanned = false, isOrdered = false;
  bool isStaged = false, isScheduled = false, isPerRank = false;
};
} // namespace

/// A value without a sharding is as open as one with an open dim.
static void lookAt(Type type, Signs &signs) {
  ShardingAttr sharding = getSharding(type);
  signs.isSharded |= static_cast<bool>(sharding);
  signs.isOpen |= !sharding || sharding.hasOpenDim();
}

static void lookAt(func::FuncOp func, bool hasMesh, Signs &signs) {
  signs.isDecided |= func->hasAttr(SpmdDialect::kWireBytesAttr);
  signs.isPerRank |= func->hasAttr("pipe.rank");
  for (unsigned i = 0; i < func.getNumArguments(); ++i)
    signs.isPartitioned |= static_cast<bool>(func.getArgAttr(i, SpmdDialect::kGlobalTypeAttr));
  for (unsigned i = 0; i < func.getNumResults(); ++i)
    signs.isPartitioned |= static_cast<bool>(func.getResultAttr(i, SpmdDialect::kGlobalTypeAttr));
  for (Block &block : func.getBody()) {
    llvm::for_each(block.getArgumentTypes(), [&](Type type) { lookAt(type, signs); });
    for (Operation &op : block) {
      llvm::for_each(op.getResultTypes(), [&](Type type) { lookAt(type, signs); });
      signs.hasReshard |= isa<ReshardOp>(op);
      signs.isPartitioned |= hasMesh && isa<CollectiveOpInterface>(op);
      // What is made again, or waits in the host's memory, does so before there are kernels.
      bool isOfStep = llvm::is_contained({"exec.again", "exec.offload", "exec.fetch"}, op.getName().getStringRef());
      signs.isClustered |= op.getName().getDialectNamespace() == "exec" && !isOfStep;
      signs.isOutlined |= op.getName().getStringRef() == "exec.launch";
      signs.isPlanned |= op.getName().getStringRef() == "exec.view";
      signs.isOrdered |= op.getName().getStringRef() == "exec.record";
      signs.isStaged |= op.getName().getStringRef() == "pipe.microbatches";
    }
  }
}

static Phase guessPhase(ModuleOp module) {
  bool hasMesh = module->hasAttr(SpmdDialect::kMeshAttr);
  Signs signs;
  for (auto func : module.getOps<func::FuncOp>())
    lookAt(func, hasMesh, signs);
  signs.isScheduled =
      llvm::any_of(module.getOps(), [](Operation &op) { return op.getName().getStringRef() == "pipe.schedule"; });
  if (signs.isPlanned)
    return signs.isOrdered ? Phase::Ordered : Phase::Planned;
  if (signs.isClustered)
    return signs.isOutlined ? Phase::Outlined : Phase::Clustered;
  if (signs.isStaged)
    return signs.isPerRank ? Phase::PerRank : signs.isScheduled ? Phase::Scheduled : Phase::Staged;
  if (signs.isPartitioned)
    return Phase::Partitioned;
  if (!signs.isSharded)
    return hasMesh ? Phase::Annotated : Phase::Imported;
  if (signs.isOpen)
    return Phase::Annotated;
  if (signs.hasReshard)
    return Phase::Resharded;
  return signs.isDecided ? Phase::Propagated : Phase::Annotated;
}

//===----------------------------------------------------------------------===//
// The attribute
//===----------------------------------------------------------------------===//

/// The phase that a gate wrote; nothing if none did.
static std::optional<Phase> readPhase(ModuleOp module) {
  auto word = module->getAttrOfType<StringAttr>(SpmdDialect::kPhaseAttr);
  return word ? parsePhase(word) : std::nullopt;
}

Phase cleave::getPhase(ModuleOp module) {
  std::optional<Phase> phase = readPhase(module);
  return phase ? *phase : guessPhase(module);
}

void cleave::setPhase(ModuleOp module, Phase phase) {
  module->setAttr(SpmdDialect::kPhaseAttr, StringAttr::get(module.getContext(), toString(phase)));
}

/// The phases that `phase` may come after. Two may be done again; annotation does not need the canonical form; one
/// device alone, without a mesh, needs none of what splits a program.
static std::pair<Phase, Phase> getPredecessors(Phase phase, bool hasMesh) {
  switch (phase) {
  case Phase::Imported:
  case Phase::Canonical:
    return {Phase::Imported, Phase::Canonical};
  case Phase::Annotated:
    return {Phase::Imported, Phase::Annotated};
  case Phase::Optimized:
    return {Phase::Partitioned, Phase::Optimized};
  case Phase::Staged:
    return {Phase::Partitioned, Phase::Optimized};
  case Phase::Clustered:
    return hasMesh ? std::pair(Phase::Partitioned, Phase::PerRank) : std::pair(Phase::Imported, Phase::Differentiated);
  default:
    return {static_cast<Phase>(static_cast<int>(phase) - 1), static_cast<Phase>(static_cast<int>(phase) - 1)};
  }
}

LogicalResult cleave::enterPhase(ModuleOp module, Phase phase) {
  // Messages name nodes by locations, which a file may have lost.
  for (auto func : module.getOps<func::FuncOp>())
    restoreNodes(func);
  auto [least, most] = getPredecessors(phase, module->hasAttr(SpmdDialect::kMeshAttr));
  std::optional<Phase> written = readPhase(module);
  module->removeAttr(SpmdDialect::kPhaseAttr);
  // What a module shows of earlier phases is no proof: annotations may be written for every value.
  Phase now = written ? *written : guessPhase(module);
  if (now > most && (written || now >= Phase::Partitioned))
    return module.emitError() << "the module is " << toString(now) << " already, and cannot become " << toString(phase);
  if (written && now < least)
    return module.emitError() << "the module is " << toString(now) << ", and must be " << toString(least)
                              << " before it can become " << toString(phase);
  return success();
}
