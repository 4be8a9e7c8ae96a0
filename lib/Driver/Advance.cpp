//===- Advance.cpp - from phase to phase ----------------------------------===//
#include "cleave/Driver/Crash.h"
#include "cleave/Driver/Session.h"
#include "cleave/Pipelines/Phases.h"
#include "cleave/Support/Status.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <chrono>

using namespace mlir;
using namespace cleave;
using namespace cleave::driver;

/// `DIR/3-propagated.mlir`.
static llvm::Error dump(ModuleOp module, StringRef folder, Phase phase) {
  if (std::error_code code = llvm::sys::fs::create_directories(folder))
    return makeError("cannot create {0}: {1}", quote(folder), code.message());
  SmallString<128> path(folder);
  llvm::sys::path::append(path, llvm::formatv("{0}-{1}.mlir", static_cast<int>(phase), toString(phase)));
  return writeModule(module, path);
}

/// Wishes are checked against the model in these phases; what fails in another one has passed all checks of the input.
static bool checksWishes(Phase phase) { return phase <= Phase::Propagated; }

void Session::addSeconds(StringRef name, double time) {
  auto it = llvm::find_if(seconds, [&](const auto &entry) { return entry.first == name; });
  if (it == seconds.end())
    seconds.emplace_back(name.str(), time);
  else
    it->second += time;
}

int Session::advance(ModuleOp module, Phase last) {
  Phase done = getPhase(module);
  if (last < done)
    return fail(makeError("{0} is {1} already, which comes after {2}", options.model, toString(done), toString(last)));
  if (done > Phase::Annotated && plan)
    return fail(
        makeError("{0} is {1} already: --mesh, --plan and --shard come too late", options.model, toString(done)));
  if (!options.dumpPhases.empty())
    if (llvm::Error error = dump(module, options.dumpPhases, done))
      return fail(std::move(error));
  bool isImported = done == Phase::Imported && isOnnx();
  ShardOptions asked{plan, {}, spmd::kOptimizeWords[static_cast<int>(options.optimize)].str(), options.check};
  for (const PipelinePhase &step : getShardPhases()) {
    // Shardings that stand in the file already are wishes; a plan may add to them.
    bool isAhead = step.phase > done || step.phase == Phase::Annotated;
    if (step.phase < done || !isAhead || step.phase > last)
      continue;
    PassManager manager(context.get());
    // Each phase ends in its gate, which checks what that phase promises. The ops themselves are verified where their
    // shapes were rewritten and at the end: on a large model every further time costs as much as a phase.
    bool isVerified = step.phase == Phase::Canonical || step.phase == last || !options.dumpPhases.empty();
    manager.enableVerifier(false);
    step.addPasses(manager, asked);
    auto start = std::chrono::steady_clock::now();
    if (failed(manager.run(module)) || (isVerified && failed(verify(module))))
      return isImported && !checksWishes(step.phase) ? reportBug() : kBadInput;
    std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    addSeconds(getPhaseNames()[static_cast<int>(step.phase)].timeKey, time.count());
    if (options.dumpPhases.empty())
      continue;
    if (llvm::Error error = dump(module, options.dumpPhases, step.phase))
      return fail(std::move(error));
  }
  return kDone;
}
