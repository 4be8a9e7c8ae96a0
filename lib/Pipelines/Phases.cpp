//===- Phases.cpp - the phases of a model's way ---------------------------===//
#include "cleave/Pipelines/Phases.h"

#include "cleave/Dialect/Nn/IR/Nn.h"
#include "cleave/Dialect/Nn/Transforms/Passes.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Dialect/Spmd/Transforms/Passes.h"
#include "cleave/Pipelines/Canonicalize.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace cleave;

static constexpr std::pair<StringLiteral, StringLiteral> kNames[] = {{"imported", "import"},
                                                                     {"canonical", "canonicalize"},
                                                                     {"annotated", "annotate"},
                                                                     {"propagated", "propagate"},
                                                                     {"resharded", "insert_reshards"},
                                                                     {"partitioned", "partition"},
                                                                     {"optimized", "optimize_collectives"}};

StringRef cleave::toString(Phase phase) { return kNames[static_cast<int>(phase)].first; }
StringRef cleave::getTimeName(Phase phase) { return kNames[static_cast<int>(phase)].second; }

std::optional<Phase> cleave::parsePhase(StringRef name) {
  for (auto [index, names] : llvm::enumerate(kNames))
    if (names.first == name)
      return static_cast<Phase>(index);
  return std::nullopt;
}

Phase cleave::detectPhase(ModuleOp module) {
  bool isPartitioned = false, hasReshard = false, hasSharding = module->hasAttr(spmd::SpmdDialect::kMeshAttr);
  bool isDecided = false;
  bool allClosed = true;
  for (func::FuncOp func : spmd::getFunctions(module)) {
    isDecided |= func->hasAttr(spmd::SpmdDialect::kWireBytesAttr);
    for (unsigned i = 0; i < func.getNumArguments(); ++i)
      isPartitioned |= static_cast<bool>(func.getArgAttr(i, spmd::SpmdDialect::kGlobalTypeAttr));
    for (unsigned i = 0; i < func.getNumResults(); ++i)
      isPartitioned |= static_cast<bool>(func.getResultAttr(i, spmd::SpmdDialect::kGlobalTypeAttr));
    spmd::forEachValue(func, [&](Value value) {
      spmd::ShardingAttr sharding = spmd::getSharding(value.getType());
      hasSharding |= static_cast<bool>(sharding);
      allClosed &= sharding && !sharding.hasOpenDim();
      hasReshard |= value.getDefiningOp<spmd::ReshardOp>() != nullptr;
    });
  }
  if (isPartitioned)
    return Phase::Partitioned;
  if (!hasSharding)
    return Phase::Imported;
  if (!allClosed)
    return Phase::Annotated;
  if (hasReshard)
    return Phase::Resharded;
  return isDecided ? Phase::Propagated : Phase::Annotated;
}

static spmd::PinWishesOptions getPinOptions(const ShardOptions &options) {
  spmd::PinWishesOptions pin;
  pin.plan = options.plan;
  pin.shard.assign(options.shard.begin(), options.shard.end());
  return pin;
}

static spmd::AnnotateOptions getAnnotateOptions(const ShardOptions &options) {
  spmd::AnnotateOptions annotate;
  annotate.plan = options.plan;
  annotate.mesh = options.mesh;
  annotate.shard.assign(options.shard.begin(), options.shard.end());
  return annotate;
}

static void addFormGate(OpPassManager &manager, StringRef form) {
  nn::NnVerifyFormOptions options;
  options.form = form.str();
  manager.addPass(nn::createNnVerifyForm(options));
}

static void addGate(OpPassManager &manager, StringRef phase) {
  spmd::VerifyPhaseOptions options;
  options.phase = phase.str();
  manager.addPass(spmd::createVerifyPhase(options));
}

void cleave::addPhase(OpPassManager &manager, Phase phase, const ShardOptions &options) {
  assert(phase != Phase::Imported && "models are imported by the importer");
  switch (phase) {
  case Phase::Imported:
    return;
  case Phase::Canonical:
    // What the plan names must survive, so the plan is looked at before anything is rewritten.
    addFormGate(manager, "imported");
    manager.addPass(spmd::createPinWishes(getPinOptions(options)));
    buildCanonicalizePipeline(manager);
    return addFormGate(manager, "canonical");
  case Phase::Annotated:
    // What the user asked for, written into types. Nothing else changes but calls, of a file that begins here.
    manager.addPass(nn::createNnInlineCalls());
    manager.addPass(spmd::createAnnotate(getAnnotateOptions(options)));
    return addGate(manager, "annotated");
  case Phase::Propagated: {
    // What follows from it: every value gets a sharding, each with a cause.
    spmd::PropagateOptions propagate;
    propagate.optimize = options.optimize;
    manager.addPass(spmd::createPropagate(propagate));
    return addGate(manager, "propagated");
  }
  case Phase::Resharded:
    // Where layouts meet that differ, the change stands in the program.
    manager.addPass(spmd::createInsertReshards());
    return addGate(manager, "resharded");
  case Phase::Partitioned: {
    // From one global program to the program of one device.
    spmd::PartitionOptions partition;
    partition.checkBytes = options.checkBytes;
    manager.addPass(spmd::createPartition(partition));
    return addGate(manager, "partitioned");
  }
  case Phase::Optimized:
    // The same values with no more bytes and no more launches.
    manager.addPass(spmd::createOptimizeCollectives());
    return addGate(manager, "partitioned");
  }
}
