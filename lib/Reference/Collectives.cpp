//===- Collectives.cpp - what ranks do together ---------------------------===//
//
// All ranks' operands are at hand, so a collective is computed once per group: reduced in the order of the ranks,
// gathered by placing each piece where its index along the axes says. The others are made of these two, as the ops'
// descriptions say: a reduce_scatter is an all_reduce and a slice, an all_to_all a gather and a slice.
//
//===----------------------------------------------------------------------===//
#include "Arithmetic.h"
#include "Loops.h"
#include "Ranks.h"
#include "llvm/ADT/TypeSwitch.h"

#include <map>

using namespace mlir;
using namespace cleave;
using namespace cleave::reference;
using spmd::ReductionKind;

/// All axes of a list per dim.
static SmallVector<Attribute> flatten(ArrayAttr dims) {
  SmallVector<Attribute> axes;
  for (ArrayAttr dim : dims.getAsRange<ArrayAttr>())
    llvm::append_range(axes, dim);
  return axes;
}

static SmallVector<Digits> getDigitsPerDim(ArrayAttr dims, spmd::MeshAttr mesh) {
  SmallVector<Digits> digits;
  for (ArrayAttr dim : dims.getAsRange<ArrayAttr>())
    digits.emplace_back(mesh, dim.getValue());
  return digits;
}

//===----------------------------------------------------------------------===//
// Reducing
//===----------------------------------------------------------------------===//

template <typename C> static C combine(C x, C y, ReductionKind kind) {
  switch (kind) {
  case ReductionKind::Sum:
    return addWrapping(x, y);
  case ReductionKind::Prod:
    return multiplyWrapping(x, y);
  case ReductionKind::Max:
    return larger(x, y);
  case ReductionKind::Min:
    break;
  }
  return smaller(x, y);
}

/// f16 and bf16 are combined in f32 and rounded once.
template <typename C> static Tensor reduceGroup(const PerRank &inputs, ArrayRef<int64_t> group, ReductionKind kind) {
  const Tensor &first = inputs[group.front()];
  ResultBuffer<C> result(first.getType());
  int64_t count = first.getNumElements();
  loadElements<C>(first, 0, count, result.data());
  for (int64_t rank : group.drop_front()) {
    Elements<C> other(inputs[rank]);
    for (int64_t i = 0; i < count; ++i)
      result[i] = combine(result[i], other[i], kind);
  }
  return result.finish();
}

PerRank cleave::reference::combineGroups(const PerRank &inputs, const Digits &digits, ReductionKind kind) {
  PerRank results(inputs.size());
  for (ArrayRef<int64_t> group : getGroups(inputs.size(), digits)) {
    Tensor sum = inputs[group.front()];
    if (group.size() > 1)
      sum = dispatchCompute(sum.getElementType(),
                            [&](auto tag) { return reduceGroup<typename decltype(tag)::type>(inputs, group, kind); });
    for (int64_t rank : group)
      results[rank] = sum;
  }
  return results;
}

Tensor cleave::reference::getIdentity(RankedTensorType type, ReductionKind kind) {
  return dispatchCompute(type.getElementType(), [&](auto tag) {
    using C = typename decltype(tag)::type;
    bool isExtremum = kind == ReductionKind::Max || kind == ReductionKind::Min;
    C one =
        isExtremum ? getWorst<C>(kind == ReductionKind::Max, type.getElementType()) : C(kind == ReductionKind::Prod);
    ResultBuffer<C> result(type);
    std::fill_n(result.data(), product(type.getShape()), one);
    return result.finish();
  });
}

//===----------------------------------------------------------------------===//
// Gathering and slicing
//===----------------------------------------------------------------------===//

static PerRank allGather(const PerRank &inputs, ArrayAttr dims, spmd::MeshAttr mesh) {
  SmallVector<Digits> digits = getDigitsPerDim(dims, mesh);
  ArrayRef<int64_t> local = inputs.front().getShape();
  SmallVector<int64_t> shape(local), zeros(local.size(), 0), offset(local.size());
  for (size_t dim = 0; dim < shape.size(); ++dim)
    shape[dim] *= digits[dim].getCount();
  PerRank results(inputs.size());
  for (ArrayRef<int64_t> group : getGroups(inputs.size(), Digits(mesh, flatten(dims)))) {
    Tensor gathered = Tensor::zeros(RankedTensorType::get(shape, inputs.front().getElementType()));
    for (int64_t rank : group) {
      for (size_t dim = 0; dim < shape.size(); ++dim)
        offset[dim] = digits[dim].getIndex(rank) * local[dim];
      copyBox(local, inputs[rank], zeros, gathered, offset);
    }
    for (int64_t rank : group)
      results[rank] = gathered;
  }
  return results;
}

static PerRank localSlice(const PerRank &inputs, ArrayAttr dims, spmd::MeshAttr mesh) {
  SmallVector<Digits> digits = getDigitsPerDim(dims, mesh);
  Digits all(mesh, flatten(dims));
  SmallVector<int64_t> local(inputs.front().getShape()), zeros(local.size(), 0), offset(local.size());
  for (size_t dim = 0; dim < local.size(); ++dim)
    local[dim] /= digits[dim].getCount();
  std::map<std::pair<const char *, int64_t>, Tensor> pieces; // equal operands cut at one place stay shared
  PerRank results;
  for (auto [rank, input] : llvm::enumerate(inputs)) {
    auto [piece, isNew] = pieces.try_emplace({input.getBytes().data(), all.getIndex(rank)});
    if (isNew) {
      for (size_t dim = 0; dim < local.size(); ++dim)
        offset[dim] = digits[dim].getIndex(rank) * local[dim];
      piece->second = Tensor::zeros(RankedTensorType::get(local, input.getElementType()));
      copyBox(local, input, offset, piece->second, zeros);
    }
    results.push_back(piece->second);
  }
  return results;
}

//===----------------------------------------------------------------------===//
// Exchanging
//===----------------------------------------------------------------------===//

/// Copies what `holder`'s shard under `from` has of `taker`'s shard under `to`.
static void copyOverlap(spmd::PermuteOp op, ArrayRef<int64_t> global, int64_t holder, const Tensor &source,
                        int64_t taker, Tensor &target) {
  SmallVector<int64_t> fromStart = op.getFrom().getOffset(global, holder);
  SmallVector<int64_t> toStart = op.getTo().getOffset(global, taker);
  SmallVector<int64_t> fromShape = getCroppedShape(global, op.getFrom(), holder);
  SmallVector<int64_t> toShape = getCroppedShape(global, op.getTo(), taker);
  SmallVector<int64_t> shape, fromOffset, toOffset;
  for (size_t dim = 0; dim < global.size(); ++dim) {
    int64_t begin = std::max(fromStart[dim], toStart[dim]);
    int64_t end = std::min(fromStart[dim] + fromShape[dim], toStart[dim] + toShape[dim]);
    shape.push_back(std::max<int64_t>(end - begin, 0));
    fromOffset.push_back(begin - fromStart[dim]);
    toOffset.push_back(begin - toStart[dim]);
  }
  copyBox(shape, source, fromOffset, target, toOffset);
}

static PerRank permute(spmd::PermuteOp op, spmd::MeshAttr mesh, const PerRank &inputs) {
  ArrayRef<int64_t> global = cast<RankedTensorType>(op.getGlobal()).getShape();
  auto localType = cast<RankedTensorType>(op.getResult().getType());
  SmallVector<Attribute> axes;
  for (spmd::DimShardingAttr dim : op.getFrom().getDims())
    llvm::append_range(axes, dim.getAxes());
  PerRank results(inputs.size());
  // The ranks of a group hold each piece once, and share all other coordinates.
  for (ArrayRef<int64_t> group : getGroups(inputs.size(), Digits(mesh, axes)))
    for (int64_t taker : group) {
      results[taker] = Tensor::zeros(localType);
      for (int64_t holder : group)
        copyOverlap(op, global, holder, inputs[holder], taker, results[taker]);
    }
  return results;
}

static PerRank axisIndex(spmd::AxisIndexOp op, spmd::MeshAttr mesh) {
  Digits digits(mesh, op.getAxes().getValue());
  std::map<int64_t, Tensor> indices; // shared by the ranks that have the same
  PerRank results;
  for (int64_t rank = 0; rank < mesh.getNumRanks(); ++rank) {
    auto [entry, isNew] = indices.try_emplace(digits.getIndex(rank));
    if (isNew) {
      entry->second = Tensor::zeros(cast<RankedTensorType>(op.getResult().getType()));
      entry->second.write<int64_t>().front() = entry->first;
    }
    results.push_back(entry->second);
  }
  return results;
}

bool cleave::reference::isCollective(Operation *op) {
  return isa<spmd::AllReduceOp, spmd::AllGatherOp, spmd::ReduceScatterOp, spmd::AllToAllOp, spmd::LocalSliceOp,
             spmd::PermuteOp, spmd::AxisIndexOp>(op);
}

PerRank cleave::reference::evaluateCollective(Operation *op, spmd::MeshAttr mesh, const PerRank &inputs) {
  return llvm::TypeSwitch<Operation *, PerRank>(op)
      .Case([&](spmd::AllReduceOp op) {
        return combineGroups(inputs, Digits(mesh, op.getAxes().getValue()), op.getKind());
      })
      .Case([&](spmd::AllGatherOp op) { return allGather(inputs, op.getDims(), mesh); })
      .Case([&](spmd::ReduceScatterOp op) {
        return localSlice(combineGroups(inputs, Digits(mesh, flatten(op.getDims())), op.getKind()), op.getDims(), mesh);
      })
      .Case(
          [&](spmd::AllToAllOp op) { return localSlice(allGather(inputs, op.getGather(), mesh), op.getSlice(), mesh); })
      .Case([&](spmd::LocalSliceOp op) { return localSlice(inputs, op.getDims(), mesh); })
      .Case([&](spmd::PermuteOp op) { return permute(op, mesh, inputs); })
      .Case([&](spmd::AxisIndexOp op) { return axisIndex(op, mesh); });
}
