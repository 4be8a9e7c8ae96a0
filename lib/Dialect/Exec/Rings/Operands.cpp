//===- Operands.cpp - keys and values that can go round -------------------===//
//
// From attention upwards to what gathers its keys, over ops that only move them, and down again for where the sequence is:
//
//   %g = spmd.all_gather %k  dim 1     [2, 8, 4]       its shards are the blocks
//   %m = nn.reshape %g                 [2, 8, 1, 4]    sequence at 1
//   %t = nn.transpose %m               [2, 1, 8, 4]    sequence at 2
//   nn.attention(%q, %t, ..)
//
// What is done on the way must be something that can be done to each block: the sequence stays a dim of its own. Nobody else
// may read what is gathered, or it would have to be gathered all the same.
//
//===----------------------------------------------------------------------===//
#include "Rings.h"

#include "cleave/Dialect/Nn/IR/GradientOf.h"
#include "cleave/Dialect/Nn/IR/Ops/Attention.h"
#include "cleave/Dialect/Spmd/IR/TensorTypes.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

/// True if `value` is read by one op alone, by attention as keys and values, but for what makes its gradients.
static bool hasOneReader(Value value, const std::optional<RingGradient> &gradient) {
  Operation *reader = nullptr;
  for (OpOperand &use : value.getUses()) {
    if (gradient && gradient->dying.contains(use.getOwner()))
      continue;
    auto attention = dyn_cast<nn::AttentionOp>(use.getOwner());
    bool isKeyOrValue = !attention || &use == &attention.getKeyMutable() || &use == &attention.getValueMutable();
    if (!isKeyOrValue || (reader && reader != use.getOwner()))
      return false;
    reader = use.getOwner();
  }
  return reader;
}

/// Of all that is on the way.
static bool isReadByAttention(const GatheredSequence &sequence, const std::optional<RingGradient> &gradient) {
  return hasOneReader(sequence.gather->getResult(0), gradient) &&
         llvm::all_of(sequence.moves, [&](auto move) { return hasOneReader(move.first->getResult(0), gradient); });
}

/// Per dim the axes over which `op` puts shards together; nothing if it is no gather.
static std::optional<SmallVector<SmallVector<spmd::AxisAttr>>> getGatheredAxes(Operation *op) {
  SmallVector<SmallVector<spmd::AxisAttr>> dims;
  if (auto gather = dyn_cast<spmd::AllGatherOp>(op)) {
    for (ArrayAttr axes : gather.getDims().getAsRange<ArrayAttr>())
      dims.emplace_back(axes.getAsRange<spmd::AxisAttr>());
    return dims;
  }
  auto permute = dyn_cast<spmd::PermuteOp>(op);
  if (!permute)
    return std::nullopt;
  for (auto [from, to] : llvm::zip_equal(permute.getFrom().getDims(), permute.getTo().getDims())) {
    if (from.getAxes() != to.getAxes() && !to.getAxes().empty())
      return std::nullopt;
    dims.emplace_back(from.getAxes() == to.getAxes() ? ArrayRef<spmd::AxisAttr>() : from.getAxes());
  }
  return dims;
}

/// The way up from attention to the gather, then down for the place of the sequence.
static std::optional<GatheredSequence> findGathered(Value value, std::string &reason) {
  GatheredSequence found;
  SmallVector<Operation *> moves;
  std::optional<SmallVector<SmallVector<spmd::AxisAttr>>> gathered;
  for (Operation *op = value.getDefiningOp(); op; op = op->getOperand(0).getDefiningOp()) {
    found.gather = op;
    if (op->getNumResults() != 1)
      return std::nullopt;
    if ((gathered = getGatheredAxes(op)))
      break;
    if (!isa<nn::MovesDimsOpInterface>(op))
      return std::nullopt;
    moves.push_back(op);
  }
  if (!gathered)
    return std::nullopt;
  int64_t splits = 0;
  for (auto [dim, axes] : llvm::enumerate(*gathered))
    if (!axes.empty()) {
      found.dim = dim;
      found.axes = axes;
      ++splits;
    }
  found.shard = getShape(found.gather->getOperand(0))[found.dim];
  int64_t dim = found.dim;
  for (Operation *op : llvm::reverse(moves)) {
    std::optional<int64_t> at = cast<nn::MovesDimsOpInterface>(op).followDim(dim);
    if (!at)
      return std::nullopt;
    found.moves.push_back({op, dim = *at});
  }
  if (dim != 2)
    return std::nullopt;
  if (splits != 1)
    reason = "other dims are gathered with the sequence";
  return reason.empty() ? std::optional(found) : std::nullopt;
}

std::optional<Ring> cleave::exec::findRing(nn::AttentionOp attention, const SoftmaxOf &softmaxes, std::string &reason) {
  std::optional<GatheredSequence> key = findGathered(attention.getKey(), reason),
                                  value = findGathered(attention.getValue(), reason);
  if (!key || !value)
    return std::nullopt;
  if (key->axes != value->axes) {
    reason = "keys and values are gathered over other axes";
    return std::nullopt;
  }
  if (key->shard != value->shard) {
    reason = "a rank has " + std::to_string(key->shard) + " keys and " + std::to_string(value->shard) + " values";
    return std::nullopt;
  }
  Ring ring;
  auto number = attention->getAttrOfType<IntegerAttr>(nn::kGradientOfAttr);
  if (nn::SoftmaxOp softmax = number ? softmaxes.lookup(number.getInt()) : nn::SoftmaxOp()) {
    ring.gradient = findRingGradient(attention, softmax, key->shard, key->axes, reason);
    if (!ring.gradient)
      return std::nullopt;
  }
  if (!isReadByAttention(*key, ring.gradient) || !isReadByAttention(*value, ring.gradient)) {
    reason = "others read what is gathered too";
    return std::nullopt;
  }
  ring.attention = attention;
  ring.key = *key;
  ring.value = *value;
  spmd::MeshAttr mesh = spmd::getMesh(attention);
  for (spmd::AxisAttr axis : key->axes)
    ring.ranks *= axis.getExtent(mesh);
  std::optional<nn::GlobalBand> band = nn::GlobalBand::get(attention);
  // Ranks of a ring put results together in orders of their own: copies of one result would differ in their last bits.
  if (!band ||
      !llvm::all_of(key->axes, [&](spmd::AxisAttr axis) { return llvm::is_contained(band->queryAxes, axis); })) {
    reason = "the ranks have the same queries";
    return std::nullopt;
  }
  ring.band = *band;
  ring.mask = band->band.isEmpty() ? attention.getMask() : band->getGivenMask(attention);
  if (band->isMasked && !ring.mask)
    return std::nullopt;
  return ring;
}
