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
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Sharding/PartMoves.h"
#include "cleave/Sharding/RankGroups.h"
#include "cleave/Sharding/ShardMoves.h"
#include "cleave/Sharding/WindowMoves.h"
#include "llvm/ADT/TypeSwitch.h"

#include <map>

using namespace mlir;
using namespace cleave;
using namespace cleave::reference;
using spmd::ReductionKind;

/// The groups along the axes of each dim.
static SmallVector<spmd::RankGroups> getGroupsPerDim(ArrayAttr dims, spmd::MeshAttr mesh) {
  return llvm::map_to_vector(dims.getAsRange<ArrayAttr>(), [&](ArrayAttr axes) {
    return mesh.getRankGroups(llvm::to_vector(axes.getAsRange<spmd::AxisAttr>()));
  });
}

/// The groups along the axes of all dims.
static spmd::RankGroups getGroups(ArrayAttr dims, spmd::MeshAttr mesh) {
  SmallVector<spmd::AxisAttr> axes;
  for (ArrayAttr dim : dims.getAsRange<ArrayAttr>())
    llvm::append_range(axes, dim.getAsRange<spmd::AxisAttr>());
  return mesh.getRankGroups(axes);
}

/// Where a rank's piece of extents `local` begins in what the ranks have together.
static SmallVector<int64_t> getPieceStart(ArrayRef<spmd::RankGroups> dims, ArrayRef<int64_t> local, int64_t rank) {
  SmallVector<int64_t> start;
  for (auto [groups, extent] : llvm::zip_equal(dims, local))
    start.push_back(groups.indexOf(rank) * extent);
  return start;
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

PerRank cleave::reference::combineGroups(const PerRank &inputs, const spmd::RankGroups &groups, ReductionKind kind) {
  PerRank results(inputs.size());
  groups.forEachGroup([&](ArrayRef<int64_t> group) {
    Tensor sum = inputs[group.front()];
    if (group.size() > 1)
      sum = dispatchCompute(sum.getElementType(),
                            [&](auto tag) { return reduceGroup<typename decltype(tag)::type>(inputs, group, kind); });
    for (int64_t rank : group)
      results[rank] = sum;
  });
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
  SmallVector<spmd::RankGroups> perDim = getGroupsPerDim(dims, mesh);
  ArrayRef<int64_t> local = inputs.front().getShape();
  SmallVector<int64_t> shape(local), zeros(local.size(), 0);
  for (auto [extent, groups] : llvm::zip_equal(shape, perDim))
    extent *= groups.size();
  PerRank results(inputs.size());
  getGroups(dims, mesh).forEachGroup([&](ArrayRef<int64_t> group) {
    Tensor gathered = Tensor::zeros(RankedTensorType::get(shape, inputs.front().getElementType()));
    for (int64_t rank : group)
      copyBox(local, inputs[rank], zeros, gathered, getPieceStart(perDim, local, rank));
    for (int64_t rank : group)
      results[rank] = gathered;
  });
  return results;
}

static PerRank localSlice(const PerRank &inputs, ArrayAttr dims, spmd::MeshAttr mesh) {
  SmallVector<spmd::RankGroups> perDim = getGroupsPerDim(dims, mesh);
  spmd::RankGroups groups = getGroups(dims, mesh);
  SmallVector<int64_t> local(inputs.front().getShape()), zeros(local.size(), 0);
  for (auto [extent, groupsOfDim] : llvm::zip_equal(local, perDim))
    extent /= groupsOfDim.size();
  std::map<std::pair<const char *, int64_t>, Tensor> pieces; // equal operands split at one place stay shared
  PerRank results;
  for (auto [rank, input] : llvm::enumerate(inputs)) {
    auto [piece, isNew] = pieces.try_emplace({input.getBytes().data(), groups.indexOf(rank)});
    if (isNew) {
      piece->second = Tensor::zeros(RankedTensorType::get(local, input.getElementType()));
      copyBox(local, input, getPieceStart(perDim, local, rank), piece->second, zeros);
    }
    results.push_back(piece->second);
  }
  return results;
}

//===----------------------------------------------------------------------===//
// Exchanging
//===----------------------------------------------------------------------===//

/// Where what begins at `start` begins in a shard that begins at `shard`.
static SmallVector<int64_t> getStartInside(ArrayRef<int64_t> start, ArrayRef<int64_t> shard) {
  return llvm::map_to_vector(llvm::zip_equal(start, shard),
                             [](auto starts) { return std::get<0>(starts) - std::get<1>(starts); });
}

static PerRank permute(spmd::PermuteOp op, const PerRank &inputs) {
  spmd::ShardingAttr from = op.getFrom(), to = op.getTo();
  ArrayRef<int64_t> global = cast<RankedTensorType>(op.getGlobal()).getShape();
  std::unique_ptr<spmd::MeshAtoms> atoms = spmd::MeshAtoms::create(from.getMesh(), op, {from, to});
  spmd::ShardMoves moves(atoms->getAtoms(), global, atoms->toState(from), atoms->toState(to));
  PerRank results;
  for (int64_t rank = 0, count = inputs.size(); rank < count; ++rank) {
    auto type = cast<RankedTensorType>(op.getResult().getType());
    Tensor &result = results.emplace_back(to.getUneven() ? makePadding(type) : Tensor::zeros(type));
    SmallVector<int64_t> start = to.getOffset(global, rank);
    moves.forEachInto(rank, [&](const spmd::Piece &piece) {
      copyBox(piece.box.extents, inputs[piece.source],
              getStartInside(piece.box.start, from.getOffset(global, piece.source)), result,
              getStartInside(piece.box.start, start));
    });
  }
  return results;
}

/// Where a rank's interval begins in each dim, by its numbers along their axes.
static SmallVector<int64_t> getWindowStart(ArrayRef<spmd::DimWindow> windows, ArrayRef<spmd::RankGroups> dims,
                                           int64_t rank) {
  return llvm::map_to_vector(llvm::zip_equal(windows, dims),
                             [&](auto dim) { return std::get<0>(dim).startOf(std::get<1>(dim).indexOf(rank)); });
}

static PerRank window(spmd::WindowOp op, const PerRank &inputs, spmd::MeshAttr mesh) {
  SmallVector<spmd::DimWindow, 4> windows = op.getWindows();
  SmallVector<spmd::RankGroups> dims = getGroupsPerDim(op.getDims(), mesh);
  ArrayRef<int64_t> local = inputs.front().getShape();
  auto type = cast<RankedTensorType>(op.getResult().getType());
  PerRank results(inputs.size());
  getRankGroups(op).forEachGroup([&](ArrayRef<int64_t> group) {
    for (auto [number, target] : llvm::enumerate(group)) {
      Tensor &result = results[target] = op.getFillAttr() ? fill(type, op.getFillAttr()) : Tensor::zeros(type);
      SmallVector<int64_t> start = getWindowStart(windows, dims, target);
      spmd::forEachWindowPiece(windows, number, [&](const spmd::WindowPiece &piece) {
        int64_t source = group[piece.source];
        copyBox(piece.extents, inputs[source], getStartInside(piece.from, getPieceStart(dims, local, source)), result,
                getStartInside(piece.to, start));
      });
    }
  });
  return results;
}

/// Parts put one behind the other, or taken apart. The runs of all other dims go along.
template <typename OpT>
static PerRank moveParts(OpT op, const PerRank &inputs, decltype(spmd::forEachPartPiece) forEachPiece) {
  int64_t dim = op.getDim();
  SmallVector<int64_t> extents(inputs.front().getShape());
  PerRank results(inputs.size());
  getRankGroups(op).forEachGroup([&](ArrayRef<int64_t> group) {
    for (auto [number, target] : llvm::enumerate(group)) {
      Tensor &result = results[target] = Tensor::zeros(cast<RankedTensorType>(op.getResult().getType()));
      forEachPiece(op.getParts(), group.size(), number, [&](const spmd::PartPiece &piece) {
        SmallVector<int64_t> from(extents.size(), 0), to(from);
        extents[dim] = piece.extent;
        from[dim] = piece.from;
        to[dim] = piece.to;
        copyBox(extents, inputs[group[piece.source]], from, result, to);
      });
    }
  });
  return results;
}

static PerRank axisIndex(spmd::AxisIndexOp op, spmd::MeshAttr mesh) {
  spmd::RankGroups groups = getRankGroups(op);
  std::map<int64_t, Tensor> indices; // shared by the ranks that have the same
  PerRank results;
  for (int64_t rank = 0; rank < mesh.getNumRanks(); ++rank) {
    auto [entry, isNew] = indices.try_emplace(groups.indexOf(rank));
    if (isNew) {
      entry->second = Tensor::zeros(cast<RankedTensorType>(op.getResult().getType()));
      entry->second.write<int64_t>().front() = entry->first;
    }
    results.push_back(entry->second);
  }
  return results;
}

static PerRank keepOnFirst(spmd::KeepOnFirstOp op, const PerRank &inputs) {
  spmd::RankGroups groups = getRankGroups(op);
  PerRank results(inputs.size(), getIdentity(inputs.front().getType(), op.getKind()));
  for (auto [rank, input] : llvm::enumerate(inputs))
    if (groups.indexOf(rank) == 0)
      results[rank] = input;
  return results;
}

FailureOr<PerRank> cleave::reference::evaluateCollective(spmd::CollectiveOpInterface op, const PerRank &inputs) {
  spmd::MeshAttr mesh = spmd::getMesh(op);
  spmd::RankGroups groups = getRankGroups(op);
  return llvm::TypeSwitch<Operation *, FailureOr<PerRank>>(op)
      .Case([&](spmd::AllReduceOp op) { return combineGroups(inputs, groups, op.getKind()); })
      .Case([&](spmd::AllGatherOp op) { return allGather(inputs, op.getDims(), mesh); })
      .Case([&](spmd::ReduceScatterOp op) {
        return localSlice(combineGroups(inputs, groups, op.getKind()), op.getDims(), mesh);
      })
      .Case(
          [&](spmd::AllToAllOp op) { return localSlice(allGather(inputs, op.getGather(), mesh), op.getSlice(), mesh); })
      .Case([&](spmd::LocalSliceOp op) { return localSlice(inputs, op.getDims(), mesh); })
      .Case([&](spmd::PermuteOp op) { return permute(op, inputs); })
      .Case([&](spmd::WindowOp op) { return window(op, inputs, mesh); })
      .Case([&](spmd::JoinOp op) { return moveParts(op, inputs, spmd::forEachPartPiece); })
      .Case([&](spmd::SplitOp op) { return moveParts(op, inputs, spmd::forEachSplitPiece); })
      .Case([&](spmd::KeepOnFirstOp op) { return keepOnFirst(op, inputs); })
      .Case([&](spmd::AxisIndexOp op) { return axisIndex(op, mesh); })
      .Default(
          [](Operation *op) { return op->emitOpError("cannot be evaluated: the evaluator has no kernel for it"); });
}
