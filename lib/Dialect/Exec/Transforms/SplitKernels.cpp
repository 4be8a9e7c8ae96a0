//===- SplitKernels.cpp - kernels that a device can run -------------------===//
//
// Threads of different blocks do not wait for each other, so that what all of a kernel's threads read has to be there when
// it starts. Where a body needs more (a reduction whose rows its results do not have, an op that fills by itself), composite ops become
// simple ones, and each op that has to lie in memory ends a kernel:
//
//   { d = x - mean x; y = d * rsqrt (mean d^2) }     ->     { mean x } { mean (x - m)^2 } { y }
//
// What is cheap is computed in each kernel that needs it. Parts are split again until a device has a kernel for each. A reduction that
// would leave most of a device idle is two (`findDeviceStages`).
//
//===----------------------------------------------------------------------===//
#include "../Kernels/KernelParts.h"
#include "cleave/Codegen/Device/Regions.h"
#include "cleave/Dialect/Exec/IR/Exec.h"
#include "cleave/Dialect/Exec/Transforms/Passes.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "cleave/Dialect/Spmd/IR/OwnFaults.h"

namespace cleave::exec {
#define GEN_PASS_DEF_SPLITKERNELS
#include "cleave/Dialect/Exec/IR/ExecPasses.h.inc"
} // namespace cleave::exec

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

/// A value that is only reshaped on its way out goes out so: that changes no byte.
static Value followReshapes(Value value) {
  while (value.hasOneUse() && isa<nn::ReshapeOp>(*value.user_begin()))
    value = value.user_begin()->getResult(0);
  return value.hasOneUse() && value.user_begin()->hasTrait<OpTrait::IsTerminator>() ? value : Value();
}

/// What is left of `region` behind `cuts`, in parts: a reduction that goes takes the rows along that its results had in common with others, and then
/// those of one number of elements are a kernel.
static SmallVector<SmallVector<Value>> groupRest(Block &region, ArrayRef<Operation *> splits, ArrayRef<Value> rest) {
  bool hasRows = llvm::any_of(region.without_terminator(), [&](Operation &op) {
    auto formed = dyn_cast<nn::FormOpInterface>(op);
    return formed && formed.getForm() == nn::Form::Row && !llvm::is_contained(splits, &op);
  });
  SmallVector<SmallVector<Value>> groups;
  auto count = [](Value value) { return cast<RankedTensorType>(value.getType()).getNumElements(); };
  for (Value value : rest) {
    auto *group = llvm::find_if(groups, [&](auto &other) { return hasRows || count(other.front()) == count(value); });
    (group == groups.end() ? groups.emplace_back() : *group).push_back(value);
  }
  return groups;
}

/// Whatever a part holds is less than the whole, or it cannot be split.
static LogicalResult split(FusedOp fused, const codegen::StageOptions &stages) {
  std::string reason;
  Block &body = fused.getBody().front();
  bool isKernel = codegen::canEmitDevice(body, reason);
  codegen::DeviceSplits splits = isKernel ? codegen::findDeviceStages(body, stages) : codegen::findDeviceSplits(body);
  if (!splits.region)
    return success();
  Block &region = splits.region->front();
  Splitter splitter(fused);
  splitter.values.map(region.getArguments(), fused.getInputs());
  SmallVector<FusedOp> parts;
  for (Operation *op : splits.ops) {
    Value whole = op->getNumResults() == 1 ? followReshapes(op->getResult(0)) : Value();
    parts.push_back(splitter.makePart(whole ? SmallVector<Value>{whole} : SmallVector<Value>(op->getResults())));
  }
  SmallVector<Value> rest;
  for (Value result : region.getTerminator()->getOperands())
    if (!splitter.values.contains(result))
      rest.push_back(result);
  for (const SmallVector<Value> &group : groupRest(region, splits.ops, rest))
    parts.push_back(splitter.makePart(group));
  for (auto [result, inside] : llvm::zip_equal(fused.getResults(), region.getTerminator()->getOperands()))
    result.replaceAllUsesWith(splitter.values.lookup(inside));
  // One that has more results than before, all of its last op's, may be one.
  if (parts.size() == 1 && !codegen::canEmitDevice(parts.front().getBody().front(), reason))
    return fused.emitOpError("is not a kernel of a device: ") << reason;
  fused.erase();
  return success(llvm::all_of(parts, [&](FusedOp part) { return succeeded(split(part, stages)); }));
}

namespace {
struct SplitKernels : cleave::exec::impl::SplitKernelsBase<SplitKernels> {
  using Base::Base;

  void runOnOperation() override {
    OwnFaults faults(&getContext());
    for (auto func : getOperation().getOps<func::FuncOp>())
      for (auto fused : llvm::make_early_inc_range(func.getOps<FusedOp>()))
        if (failed(split(fused, {forLibraries, narrowsFloats})))
          return signalPassFailure();
  }
};
} // namespace
