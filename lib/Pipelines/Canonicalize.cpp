//===- Canonicalize.cpp - the form that deciding wants --------------------===//
//
// The order matters: each step makes the shapes that the next one looks for. What is recomposed first is not taken for
// loose movement later; weights are split before dims are kept apart, as splitting leaves slices behind; what has
// become equal shows only in the end.
//
//===----------------------------------------------------------------------===//
#include "cleave/Pipelines/Canonicalize.h"

#include "cleave/Dialect/Nn/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

// Functions are single blocks: there are no regions to simplify.
GreedyRewriteConfig cleave::getOnePass() {
  GreedyRewriteConfig config;
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled).setMaxIterations(1);
  return config;
}

void cleave::buildCanonicalizePipeline(OpPassManager &manager) {
  // 0. Names travel with rewrites in locations.
  manager.addPass(nn::createNnRestoreNodes());

  // 1. One op where the exporter wrote many: what is whole can be sharded and lowered as a whole.
  manager.addPass(nn::createNnRecompose());
  manager.addPass(nn::createNnMergeEqual());

  // 2. Lookups, concatenations and pads that only move data, or that an op does itself, say so, and so do masks that are windows.
  manager.addPass(nn::createNnFuseRotations());
  manager.addPass(nn::createNnFoldPads());
  manager.addPass(nn::createNnFoldIotaGathers());
  manager.addPass(nn::createNnFoldWindows());

  // 3. Of a table that is stored narrow only the rows that are asked for become wide.
  manager.addPass(nn::createNnLookUpFirst());

  // 4. Experts with a weight each become one op, where a plan asks for them.
  manager.addPass(nn::createNnStackExperts());

  // 5. Nothing is cut out of a wide product that could be cut out of its weight.
  manager.addPass(nn::createNnSplitWeights());

  // 6. Dims that belong apart stay apart: merges sink, then chains of movement fuse. A fused chain may end in a merge
  //    that can sink further, so both run five times: below projections, attention, a mask by windows, and both products
  //    behind it. What they leave alone they only look at.
  for (int round = 0; round < 5; ++round) {
    manager.addPass(nn::createNnUnflatten());
    manager.addPass(nn::createNnFuseMovement());
  }

  // 7. What became equal or useless.
  manager.addPass(createCanonicalizerPass(getOnePass()));
  manager.addPass(nn::createNnMergeEqual());
  manager.addPass(nn::createNnStoreNodes());
}

void cleave::registerNnPipelines() {
  nn::registerNnPasses();
  PassPipelineRegistration<>("nn-canonicalize", "from an imported module to the form that deciding wants",
                             [](OpPassManager &manager) {
                               manager.addPass(nn::createNnInlineCalls());
                               manager.addPass(nn::createNnVerifyForm());
                               buildCanonicalizePipeline(manager);
                             });
}
