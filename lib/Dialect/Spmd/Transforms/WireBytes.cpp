//===- WireBytes.cpp - what a collective sends ----------------------------===//
#include "cleave/Dialect/Spmd/Transforms/WireBytes.h"

#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Sharding/ReshardPlanner.h"

using namespace mlir;
using namespace cleave::spmd;

bool cleave::spmd::isCollective(Operation *op) {
  return isa<AllReduceOp, AllGatherOp, ReduceScatterOp, AllToAllOp, PermuteOp>(op);
}

static SmallVector<AxisAttr> flatten(ArrayAttr dims) {
  SmallVector<AxisAttr> axes;
  for (ArrayAttr list : dims.getAsRange<ArrayAttr>())
    llvm::append_range(axes, list.getAsRange<AxisAttr>());
  return axes;
}

/// The whole axes of all dims in which the two shardings differ.
static SmallVector<AxisAttr> getMovingAxes(PermuteOp op) {
  SmallVector<AxisAttr> axes;
  for (auto [from, to] : llvm::zip_equal(op.getFrom().getDims(), op.getTo().getDims())) {
    if (from.getAxes() == to.getAxes())
      continue;
    for (ArrayRef<AxisAttr> list : {from.getAxes(), to.getAxes()})
      for (AxisAttr axis : list)
        if (auto whole = AxisAttr::get(op.getContext(), axis.getName()); !llvm::is_contained(axes, whole))
          axes.push_back(whole);
  }
  return axes;
}

SmallVector<AxisAttr> cleave::spmd::getCollectiveAxes(Operation *op) {
  if (auto reduce = dyn_cast<AllReduceOp>(op))
    return llvm::to_vector(reduce.getAxes().getAsRange<AxisAttr>());
  if (auto gather = dyn_cast<AllGatherOp>(op))
    return flatten(gather.getDims());
  if (auto scatter = dyn_cast<ReduceScatterOp>(op))
    return flatten(scatter.getDims());
  if (auto exchange = dyn_cast<AllToAllOp>(op))
    return flatten(exchange.getGather());
  if (auto permute = dyn_cast<PermuteOp>(op))
    return getMovingAxes(permute);
  return {};
}

static int64_t getBytes(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return tensor.getNumElements() * getElementBytes(tensor.getElementType());
}

static int64_t getPermuteBytes(PermuteOp op) {
  std::unique_ptr<MeshAtoms> atoms = MeshAtoms::create(op.getFrom().getMesh(), op, {op.getFrom(), op.getTo()});
  if (!atoms)
    return 0;
  auto global = cast<RankedTensorType>(op.getGlobal());
  int64_t units = exchangeCost(atoms->getAtoms(), global.getShape(), getElementBytes(global.getElementType()),
                               atoms->toState(op.getFrom()), atoms->toState(op.getTo()));
  return llvm::divideCeil(units, kCostUnitsPerByte);
}

int64_t cleave::spmd::getWireBytes(Operation *op) {
  if (auto permute = dyn_cast<PermuteOp>(op))
    return getPermuteBytes(permute);
  if (!isCollective(op))
    return 0;
  MeshAttr mesh = getMesh(op);
  int64_t group = 1;
  for (AxisAttr axis : getCollectiveAxes(op))
    group *= axis.getExtent(mesh);
  int64_t bytes = getBytes(isa<AllGatherOp>(op) ? op->getResult(0).getType() : op->getOperand(0).getType());
  int64_t times = isa<AllReduceOp>(op) ? 2 : 1;
  return llvm::divideCeil(times * (group - 1) * bytes, group);
}

int64_t cleave::spmd::countWireBytes(func::FuncOp func) {
  int64_t total = 0;
  for (Block &block : func.getBody())
    for (Operation &op : block)
      total += getWireBytes(&op);
  return total;
}
