//===- Advance.cpp - from phase to phase ----------------------------------===//
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

static ShardOptions getShardOptions(const Options &options) {
  return {options.plan, options.mesh, options.shard, options.optimize};
}

/// `DIR/3-propagated.mlir`.
static llvm::Error dump(ModuleOp module, StringRef folder, Phase phase) {
  if (std::error_code code = llvm::sys::fs::create_directories(folder))
    return makeError("cannot create {0}: {1}", quote(folder), code.message());
  SmallString<128> path(folder);
  llvm::sys::path::append(path, llvm::formatv("{0}-{1}.mlir", static_cast<int>(phase), toString(phase)));
  return writeModule(module, path);
}

LogicalResult Session::advance(ModuleOp module, StringRef lastPhase) {
  Phase last = *parsePhase(lastPhase), done = detectPhase(module);
  if (!options.dumpPhases.empty())
    if (llvm::Error error = dump(module, options.dumpPhases, done)) {
      fail(std::move(error));
      return failure();
    }
  // Shardings that stand in the file already are wishes; a plan may add to them.
  int next = static_cast<int>(done) + (done == Phase::Annotated ? 0 : 1);
  for (; next <= static_cast<int>(last); ++next) {
    Phase phase = static_cast<Phase>(next);
    PassManager manager(context.get());
    // Each phase ends in its gate, which checks what that phase promises. The ops themselves are verified where their
    // shapes were rewritten and at the end: on a large model every further time costs as much as a phase.
    bool isVerified = phase == Phase::Canonical || phase == last || !options.dumpPhases.empty();
    manager.enableVerifier(false);
    addPhase(manager, phase, getShardOptions(options));
    auto start = std::chrono::steady_clock::now();
    if (failed(manager.run(module)) || (isVerified && failed(verify(module))))
      return failure();
    seconds.emplace_back(getTimeName(phase).str(),
                         std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    if (options.dumpPhases.empty())
      continue;
    if (llvm::Error error = dump(module, options.dumpPhases, phase)) {
      fail(std::move(error));
      return failure();
    }
  }
  return success();
}
