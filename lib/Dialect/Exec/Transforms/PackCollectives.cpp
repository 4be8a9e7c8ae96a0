//===- PackCollectives.cpp - collectives of parts that lie side by side ---===//
//
// NCCL puts parts one behind the other. Of a dim with others in front of it the parts of a tensor lie in rows:
//
//   all_gather [4, 8] dim 1 of 2         rank 0   a a     rank 1   b b          result   a a b b
//                                                 a a              b b                   a a b b
//
// So the dim is split in two, and the number of the part comes first. That is movement of nn in front of what is scattered, and behind what is
// gathered, which kernels take in: who makes the one stores it so, who reads the other reads it so. Where neither can, the movement is a
// kernel of its own, in memory that is planned like any other's.
//
//   %y = all_gather %x dim 1             ->     %g = all_gather %x dim 0 : [8, 8]          as it comes
//                                               %y = reshape (transpose (reshape %g : [2, 4, 8]) [1, 0, 2]) : [4, 16]
//
// A product that sums along the dim that is gathered wants it whole, but not in a certain order of dims: what is sent is stored with
// that dim first then, and the product reads it so.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Exec/Fusion/Clusters.h"
#include "cleave/Dialect/Exec/IR/Bucket.h"
#include "cleave/Dialect/Exec/Transforms/Passes.h"
#include "cleave/Dialect/Nn/IR/Composer.h"
#include "cleave/Dialect/Nn/IR/Ops/Contraction.h"
#include "cleave/Dialect/Spmd/IR/OwnFaults.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "cleave/Sharding/RankGroups.h"

#include "llvm/ADT/TypeSwitch.h"

namespace cleave::exec {
#define GEN_PASS_DEF_PACKCOLLECTIVES
#include "cleave/Dialect/Exec/IR/ExecPasses.h.inc"
} // namespace cleave::exec

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

using Dims = SmallVector<int64_t>;

namespace {

/// How a tensor is split into parts, one for each rank of a group.
class DimSplit {
public:
  /// \param dims per dim the axes along which it is split.
  DimSplit(Operation *op, ArrayAttr dims) {
    spmd::MeshAttr mesh = spmd::getMesh(op);
    for (auto [dim, list] : llvm::enumerate(dims.getAsRange<ArrayAttr>())) {
      llvm::append_range(axes, list);
      int64_t count = mesh.getRankGroups(llvm::to_vector(list.getAsRange<spmd::AxisAttr>())).size();
      if (count != 1) {
        splitDims.push_back(dim);
        counts.push_back(count);
        all *= count;
      }
    }
  }

  ArrayRef<int64_t> getDims() const { return splitDims; }
  int64_t size() const { return all; }

  /// Of a whole of that shape.
  Dims getPart(ArrayRef<int64_t> whole) const {
    Dims part(whole);
    for (auto [dim, count] : llvm::zip_equal(splitDims, counts))
      part[dim] /= count;
    return part;
  }
  /// Whether parts of that shape lie in rows: dims in front of one that is split have several elements.
  bool hasRows(ArrayRef<int64_t> part) const {
    return !splitDims.empty() && !llvm::is_contained(part, 0) &&
           llvm::any_of(part.take_front(splitDims.back()), [](int64_t extent) { return extent != 1; });
  }
  /// Axis lists of a tensor of `rank` dims, all axes in dim `dim`.
  ArrayAttr inDim(Builder &b, int64_t dim, int64_t rank) const {
    SmallVector<Attribute> lists(rank, b.getArrayAttr({}));
    lists[dim] = b.getArrayAttr(axes);
    return b.getArrayAttr(lists);
  }

  /// [n, part..] as the whole.
  Value join(OpBuilder &b, Value parts, ArrayRef<int64_t> part) const {
    Dims numbered(counts), shape(part);
    llvm::append_range(numbered, part);
    for (auto [dim, count] : llvm::zip_equal(splitDims, counts))
      shape[dim] *= count;
    return reshape(b, transpose(b, reshape(b, parts, numbered), getOrder(part.size())), shape);
  }
  /// The whole as [n.., part..].
  Value divide(OpBuilder &b, Value whole, ArrayRef<int64_t> part) const {
    Dims order = getOrder(part.size()), inverse(order.size()), shape;
    for (auto [place, dim] : llvm::enumerate(order)) {
      inverse[dim] = int64_t(place);
      shape.push_back(dim < int64_t(counts.size()) ? counts[dim] : part[dim - counts.size()]);
    }
    return transpose(b, reshape(b, whole, shape), inverse);
  }

  static Value reshape(OpBuilder &b, Value value, ArrayRef<int64_t> shape) {
    return nn::Composer(b, value.getLoc()).reshape(value, shape);
  }
  static Value transpose(OpBuilder &b, Value value, ArrayRef<int64_t> order) {
    return nn::Composer(b, value.getLoc()).transpose(value, order);
  }

private:
  /// Of dims [n.., part..] in the order in which the whole has them: the number of a part's dim stands in front of it.
  Dims getOrder(int64_t rank) const {
    Dims order;
    int64_t numbers = counts.size(), next = 0;
    for (int64_t dim = 0; dim < rank; ++dim) {
      if (next < numbers && splitDims[next] == dim)
        order.push_back(next++);
      order.push_back(numbers + dim);
    }
    return order;
  }

  SmallVector<Attribute> axes;
  Dims splitDims, counts;
  int64_t all = 1;
};

} // namespace

/// Of the dims of a tensor, with as many of another in the place of the first.
static Dims withFirst(ArrayRef<int64_t> shape, int64_t times) {
  Dims result(shape);
  result.front() *= times;
  return result;
}

static Value gather(OpBuilder &b, spmd::AllGatherOp op, const DimSplit &split, Value input) {
  ArrayRef<int64_t> part = getTensorType(input).getShape();
  return spmd::AllGatherOp::create(b, op.getLoc(), getTensorType(input).clone(withFirst(part, split.size())), input,
                                   split.inDim(b, 0, part.size()), op.getCauseAttr());
}

//===----------------------------------------------------------------------===//
// What is gathered for products
//===----------------------------------------------------------------------===//

/// True if all that read `gathered` are products that sum along dim `dim`.
static bool isSummed(Value gathered, int64_t dim) {
  return llvm::all_of(gathered.getUses(), [&](OpOperand &use) {
    auto einsum = dyn_cast<nn::EinsumOp>(use.getOwner());
    if (!einsum || !isAnchor(einsum))
      return false;
    nn::EinsumTerms terms = *nn::parseEinsum(einsum.getEquation());
    return !StringRef(terms.result).contains(terms.inputs[use.getOperandNumber()][dim]);
  });
}

/// True if a kernel may store `value` in another order of dims: it makes it, and for nobody else.
static bool isStoredFreely(Value value) {
  Operation *maker = value.getDefiningOp();
  return value.hasOneUse() && maker && (isFusable(maker) || isAnchor(maker));
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

/// Who keeps its own part of what was gathered has it already.
static void keepOwnParts(spmd::AllGatherOp op) {
  for (Operation *user : llvm::make_early_inc_range(op.getResult().getUsers()))
    if (auto slice = dyn_cast<spmd::LocalSliceOp>(user); slice && slice.getDims() == op.getDims()) {
      slice.getResult().replaceAllUsesWith(op.getInput());
      slice.erase();
    }
}

static Value pack(OpBuilder &b, spmd::AllGatherOp op) {
  DimSplit split(op, op.getDims());
  ArrayRef<int64_t> part = op.getInput().getType().getShape();
  if (!split.hasRows(part))
    return {};
  keepOwnParts(op);
  int64_t dim = split.getDims().front();
  if (split.getDims().size() > 1 || !isSummed(op.getResult(), dim) || !isStoredFreely(op.getInput()))
    return split.join(b, gather(b, op, split, op.getInput()), part);
  auto first = llvm::to_vector(llvm::seq<int64_t>(0, part.size())), back = first;
  std::rotate(first.begin(), first.begin() + dim, first.begin() + dim + 1);
  std::rotate(back.begin(), back.begin() + 1, back.begin() + dim + 1);
  return DimSplit::transpose(b, gather(b, op, split, DimSplit::transpose(b, op.getInput(), first)), back);
}

static Value pack(OpBuilder &b, spmd::ReduceScatterOp op) {
  DimSplit split(op, op.getDims());
  ArrayRef<int64_t> part = op.getResult().getType().getShape();
  if (!split.hasRows(part))
    return {};
  Value parts = DimSplit::reshape(b, split.divide(b, op.getInput(), part), withFirst(part, split.size()));
  auto packed = spmd::ReduceScatterOp::create(b, op.getLoc(), op.getResult().getType(), op.getKind(), parts,
                                              split.inDim(b, 0, part.size()), op.getCauseAttr());
  if (IntegerAttr bucket = getBucket(op))
    packed->setAttr(kBucketAttr, bucket);
  return packed;
}

/// Parts are numbered twice: by who gets them, and by whom they come from.
static Value pack(OpBuilder &b, spmd::AllToAllOp op) {
  DimSplit gathered(op, op.getGather()), sliced(op, op.getSlice());
  Dims part = sliced.getPart(op.getInput().getType().getShape()), shape{sliced.size(), 1};
  if (!gathered.hasRows(part) && !sliced.hasRows(part))
    return {};
  int64_t rank = int64_t(part.size()) + 2;
  llvm::append_range(shape, part);
  Value parts = DimSplit::reshape(b, sliced.divide(b, op.getInput(), part), shape);
  std::swap(shape[0], shape[1]);
  Value got = spmd::AllToAllOp::create(b, op.getLoc(), getTensorType(parts).clone(shape), parts,
                                       gathered.inDim(b, 1, rank), sliced.inDim(b, 0, rank), op.getCauseAttr());
  return gathered.join(b, got, part);
}

namespace {
struct PackCollectives : cleave::exec::impl::PackCollectivesBase<PackCollectives> {
  using Base::Base;

  void runOnOperation() override {
    OwnFaults faults(&getContext());
    SmallVector<Operation *> all;
    getOperation().walk([&](spmd::CollectiveOpInterface op) { all.push_back(op); });
    for (Operation *op : all) {
      OpBuilder builder(op);
      Value packed = llvm::TypeSwitch<Operation *, Value>(op)
                         .Case<spmd::AllGatherOp, spmd::ReduceScatterOp, spmd::AllToAllOp>(
                             [&](auto op) { return pack(builder, op); })
                         .Default([](Operation *) { return Value(); });
      if (!packed)
        continue;
      op->getResult(0).replaceAllUsesWith(packed);
      op->erase();
    }
  }
};
} // namespace
