//===- PinAnnotations.cpp - a plan's annotations, before the canonical form --===//
//
// What a plan names must survive rewriting, so it is looked up on the imported module, once: see PlaceAnnotations.cpp.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "cleave/Dialect/Spmd/Transforms/Passes.h"
#include "cleave/Dialect/Spmd/Transforms/PlanPasses.h"

namespace cleave::spmd {
#define GEN_PASS_DEF_PINANNOTATIONS
#include "cleave/Dialect/Spmd/IR/SpmdPasses.h.inc"
} // namespace cleave::spmd

using namespace mlir;
using namespace cleave::spmd;

namespace {
struct PinAnnotations : cleave::spmd::impl::PinAnnotationsBase<PinAnnotations> {
  using Base::Base;
  explicit PinAnnotations(PlanRef plan) : given(std::move(plan)) {}

  void runOnOperation() override {
    FailureOr<PlanRef> read =
        given ? given
              : readPlan(&getContext(),
                         {plan, mesh, {shard.begin(), shard.end()}, {state.begin(), state.end()}, free, uneven});
    if (failed(read) || (*read && failed(placeAnnotations(getOperation(), **read))))
      signalPassFailure();
  }

private:
  PlanRef given;
};
} // namespace

std::unique_ptr<Pass> cleave::spmd::createPinAnnotations(PlanRef plan) {
  return std::make_unique<PinAnnotations>(std::move(plan));
}
