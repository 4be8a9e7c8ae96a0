//===- GroupSlices.cpp - slices that take a value apart become one op -----===//
//
//             ┬─▶ slice [0, 2)                       ┬─▶
//   x [8] ────┼─▶ slice [2, 4)     =>    x ─▶ split ─┼─▶
//             └─▶ slice [4, 8)                       └─▶
//
// Deciding costs ops one by one. Of a dim that is cut each slice would be an exchange of its own, and their busiest ranks,
// which are others for each, would be added up.
//
//===----------------------------------------------------------------------===//
#include "../Patterns/Matching.h"
#include "cleave/Dialect/Nn/IR/NodeLoc.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "cleave/Dialect/Nn/Transforms/Passes.h"
#include "cleave/Dialect/Spmd/IR/Names.h"

namespace cleave::nn {
#define GEN_PASS_DEF_NNGROUPSLICES
#include "cleave/Dialect/Nn/IR/NnPasses.h.inc"
} // namespace cleave::nn

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;

/// The dim along which a slice takes some positions, one after the other, and all of the other dims.
static std::optional<int64_t> getOnlyDim(SliceOp slice) {
  std::optional<int64_t> only;
  for (auto [dim, extent] : llvm::enumerate(getShape(slice.getInput()))) {
    if (slice.getSteps()[dim] != 1)
      return std::nullopt;
    if (slice.getSizes()[dim] == extent)
      continue;
    if (only)
      return std::nullopt;
    only = dim;
  }
  return only;
}

/// Whether slices, sorted by where they begin, are the whole dim, each two positions or more.
static bool areFull(ArrayRef<SliceOp> slices, int64_t dim) {
  int64_t end = 0;
  for (SliceOp slice : slices) {
    if (slice.getStarts()[dim] != end || slice.getSizes()[dim] < 2)
      return false;
    end += slice.getSizes()[dim];
  }
  return end == getShape(SliceOp(slices.front()).getInput())[dim];
}

/// The node of the first slice, with the names of the results of all of them.
static Location makeLoc(ArrayRef<SliceOp> slices) {
  SliceOp first = slices.front();
  SmallVector<spmd::NodeInfo, 1> infos = spmd::getNodeInfos(first);
  if (infos.empty())
    return first.getLoc();
  SmallVector<SmallVector<StringRef, 1>> names;
  for (SliceOp slice : slices)
    names.push_back(spmd::getTensorNames(slice.getResult()));
  SmallVector<ArrayRef<StringRef>> lists(names.begin(), names.end());
  spmd::NodeInfo info = infos.front();
  info.results = lists;
  return makeNodeLoc(first.getContext(), info);
}

static void group(SmallVector<SliceOp> &slices, int64_t dim) {
  SliceOp first = slices.front();
  llvm::sort(slices, [&](SliceOp a, SliceOp b) { return a.getStarts()[dim] < b.getStarts()[dim]; });
  if (slices.size() < 2 || !areFull(slices, dim))
    return;
  SmallVector<Type> types;
  SmallVector<int64_t> parts;
  for (SliceOp slice : slices) {
    types.push_back(slice.getType());
    parts.push_back(slice.getSizes()[dim]);
  }
  OpBuilder builder(first);
  Location loc = makeLoc(slices);
  auto split = SplitOp::create(builder, loc, types, first.getInput(), dim, parts);
  if (slices.front()->hasAttr(spmd::kNodeAttr))
    split->setDiscardableAttr(spmd::kNodeAttr, LocationAttr(loc));
  for (auto [slice, result] : llvm::zip_equal(slices, split.getResults())) {
    slice.getResult().replaceAllUsesWith(result);
    slice.erase();
  }
}

namespace {
struct GroupSlices : public cleave::nn::impl::NnGroupSlicesBase<GroupSlices> {
  /// What no op makes of others, such as a parameter, any rank cuts as it needs it.
  void runOnOperation() override {
    llvm::MapVector<std::pair<Value, int64_t>, SmallVector<SliceOp>> groups;
    getOperation().walk([&](SliceOp slice) {
      Operation *source = slice.getInput().getDefiningOp();
      std::optional<int64_t> dim = getOnlyDim(slice);
      if (dim && !(source && source->getNumOperands() == 0))
        groups[{slice.getInput(), *dim}].push_back(slice);
    });
    for (auto &[key, slices] : groups)
      group(slices, key.second);
  }
};
} // namespace
