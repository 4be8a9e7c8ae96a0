//===- PinWishes.cpp - a plan's wishes, before the canonical form ---------===//
//
// What a plan names must survive rewriting, so it is looked up on the imported module, once: see PlaceWishes.cpp.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "cleave/Dialect/Spmd/Transforms/Passes.h"
#include "cleave/Dialect/Spmd/Transforms/Wishes.h"

namespace cleave::spmd {
#define GEN_PASS_DEF_PINWISHES
#include "cleave/Dialect/Spmd/IR/SpmdPasses.h.inc"
} // namespace cleave::spmd

using namespace mlir;
using namespace cleave::spmd;

namespace {
struct PinWishes : cleave::spmd::impl::PinWishesBase<PinWishes> {
  using Base::Base;
  explicit PinWishes(PlanRef plan) : given(std::move(plan)) {}

  void runOnOperation() override {
    FailureOr<PlanRef> read =
        given ? given
              : readPlan(&getContext(), {plan, mesh, {shard.begin(), shard.end()}, {state.begin(), state.end()}});
    if (failed(read) || (*read && failed(placeWishes(getOperation(), **read))))
      signalPassFailure();
  }

private:
  PlanRef given;
};
} // namespace

std::unique_ptr<Pass> cleave::spmd::createPinWishes(PlanRef plan) {
  return std::make_unique<PinWishes>(std::move(plan));
}
