//===- Microbatch.cpp - the program of one microbatch ---------------------===//
//
//   before   func.func @main(%x: tensor<16x4xf32>)                             16 samples
//   after    func.func @main(%x: tensor<2x4xf32> {pipe.split = 0 : i64})       2 of them, in 8 microbatches
//
// Where microbatches are of two sizes it is written for one of these, or another one (SplitInTime.cpp).
//
// Which dims are the batch is found first (BatchDims.h), then the body is split (SplitInTime.h). A module stays in the phase that
// it is in: the form is the same, of a smaller batch.
//
//===----------------------------------------------------------------------===//
#include "../Microbatches/BatchDims.h"
#include "../Microbatches/SplitInTime.h"

#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "cleave/Dialect/Pipe/Transforms/Passes.h"
#include "cleave/Dialect/Pipe/Transforms/PlanPasses.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Dialect/Spmd/IR/Phase.h"

namespace cleave::pipe {
#define GEN_PASS_DEF_MICROBATCH
#include "cleave/Dialect/Pipe/IR/PipePasses.h.inc"
} // namespace cleave::pipe

using namespace mlir;
using namespace cleave;
using namespace cleave::pipe;

namespace {
struct Microbatch : pipe::impl::MicrobatchBase<Microbatch> {
  using MicrobatchBase::MicrobatchBase;
  explicit Microbatch(spmd::PlanRef plan) : given(std::move(plan)) {}

  void runOnOperation() override;

private:
  FailureOr<spmd::PlanPipeline> readOptions();
  int64_t countDevices();
  LogicalResult split(func::FuncOp func, const spmd::PlanPipeline &pipeline, int64_t &microbatches);

  spmd::PlanRef given;
};
} // namespace

/// What a plan would say, from options; nothing of it has a place.
FailureOr<spmd::PlanPipeline> Microbatch::readOptions() {
  Location loc = getOperation().getLoc();
  spmd::PlanPipeline pipeline;
  if ((microbatches > 0) == (microbatchSize > 0))
    return mlir::emitError(loc) << "either microbatches or microbatch-size is a number above 0";
  if (microbatches > 0)
    pipeline.microbatches = microbatches;
  else
    pipeline.microbatchSize = microbatchSize;
  pipeline.uneven = uneven;
  for (const std::string &line : batch) {
    auto [name, dim] = StringRef(line).rsplit('=');
    int64_t number = spmd::PlanPipeline::kNoBatch;
    if (name.empty() || (dim != "none" && (dim.getAsInteger(10, number) || number < 0)))
      return mlir::emitError(loc) << "expected an input and its batch dim, such as input_ids=0 or mask=none, got '"
                                  << line << "'";
    pipeline.batch.push_back({{name.str(), {}}, number});
  }
  return pipeline;
}

/// Those of a rank of the pipeline: of the plan's mesh, or the module's.
int64_t Microbatch::countDevices() {
  int64_t devices = 1;
  if (given && !given->mesh.empty()) {
    for (const spmd::MeshAxis &axis : given->mesh)
      devices *= axis.name == given->pipeline->axis ? 1 : axis.size;
  } else if (auto mesh = getOperation()->getAttrOfType<spmd::MeshAttr>(spmd::SpmdDialect::kMeshAttr)) {
    for (int64_t size : mesh.getSizes())
      devices *= size;
  }
  return devices;
}

LogicalResult Microbatch::split(func::FuncOp func, const spmd::PlanPipeline &pipeline, int64_t &microbatches) {
  if (!func.getBody().hasOneBlock())
    return func.emitOpError() << "has control flow: only functions of one block can be split into microbatches";
  bool isSharded = false;
  spmd::forEachValue(func, [&](Value value) { isSharded |= static_cast<bool>(spmd::getSharding(value.getType())); });
  if (isSharded)
    return func.emitOpError("is sharded already: microbatches are split before spmd-annotate");
  // Of one microbatch all is invariant.
  microbatches = 1;
  if (pipeline.microbatches == 1)
    return success();
  FailureOr<Batch> found = findBatch(func, pipeline);
  if (failed(found))
    return failure();
  microbatches = found->microbatches;
  found->devices = countDevices();
  return microbatches == 1 ? success() : splitInTime(func, *found);
}

void Microbatch::runOnOperation() {
  ModuleOp module = getOperation();
  auto phase = module->getAttrOfType<StringAttr>(spmd::SpmdDialect::kPhaseAttr);
  if (failed(enterPhase(module, Phase::Annotated)))
    return signalPassFailure();
  if (getMicrobatches(module)) {
    module.emitError("has been split into microbatches already");
    return signalPassFailure();
  }
  FailureOr<spmd::PlanPipeline> pipeline = given ? FailureOr<spmd::PlanPipeline>(*given->pipeline) : readOptions();
  if (failed(pipeline))
    return signalPassFailure();
  std::optional<int64_t> all;
  for (func::FuncOp func : spmd::getFunctions(module)) {
    int64_t microbatches = 1;
    if (failed(split(func, *pipeline, microbatches)))
      return signalPassFailure();
    if (all && *all != microbatches) {
      func.emitError() << "has " << microbatches << " microbatches, but another function has " << *all;
      return signalPassFailure();
    }
    all = microbatches;
  }
  module->setAttr(PipeDialect::kMicrobatchesAttr, Builder(module).getI64IntegerAttr(all.value_or(1)));
  if (given && !given->mesh.empty()) {
    module->setAttr(PipeDialect::kMeshAttr, spmd::getMesh(&getContext(), *given));
    module->setAttr(PipeDialect::kAxisAttr, StringAttr::get(&getContext(), given->pipeline->axis));
  }
  if (phase)
    module->setAttr(spmd::SpmdDialect::kPhaseAttr, phase);
}

std::unique_ptr<Pass> cleave::pipe::createMicrobatch(spmd::PlanRef plan) {
  assert(plan && plan->pipeline && "a plan without a pipeline");
  return std::make_unique<Microbatch>(std::move(plan));
}
