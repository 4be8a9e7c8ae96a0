//===- Stages.cpp - kernels in two stages ---------------------------------===//
//
// A reduction of much into little has few rows, and a row has a block of threads at most, so that most of a device has nothing to do.
// Where that is so, neighboring dims that are reduced become parts, each of which is summed up by itself; then the parts:
//
//   reduce %x dims [0] : [65536, 64]    ->    reduce (reshape %x : [256, 256, 64]) dims [1]   a kernel of its own: [256, 64]
//                                             reduce %parts dims [0]
//
// Dims that are no neighbors ([0, 2] of [N, C, H]) are reduced one group after the other, the last one first. All of it is in a fixed
// order, so that results have the same bits each time. Parts are in the type that is computed in, and rounded at the end.
//
// Attention of few queries to many keys likewise, where each query has a block, or up to 64 of them have one together: to parts of the keys, then to the parts, each of which counts as a key whose score is the
// logarithm of its sum of exponentials, so that nothing is asked of a query any more:
//
//   attention %q, %k, %v               ->    %sums, %logs = exec.partial_attention %q, %k, %v part 512
//                                            attention 0, 0, %sums mask %logs
//
//===----------------------------------------------------------------------===//
#include "../Compose.h"
#include "../Expand.h"
#include "Templates.h"
#include "cleave/Dialect/Exec/IR/Exec.h"
#include "cleave/Dialect/Nn/IR/Ops/Attention.h"
#include "cleave/Dialect/Nn/IR/Ops/Reduction.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;

/// Fewer blocks leave a device idle; those that are wanted have so many elements at least.
static constexpr int64_t kFewBlocks = 64, kLeastElements = 1024;
/// What is read in the time that a second launch takes.
static constexpr int64_t kLarge = 128 << 10;

/// The region's only reduction, if there is one, and all results have as many elements as it gives.
static nn::ReduceOp findReduction(func::FuncOp region, ValueRange results) {
  nn::ReduceOp found;
  for (Operation &op : region.front().without_terminator()) {
    const Lowering *lowering = getLowerings().find(&op);
    if (!lowering->fold && !lowering->fill && !lowering->tile)
      continue;
    if (found || !isa<nn::ReduceOp>(op))
      return {};
    found = cast<nn::ReduceOp>(op);
  }
  auto isOne = [&](Value value) {
    return countElements(getShape(value)) == countElements(getShape(found.getResult()));
  };
  return found && llvm::all_of(results, isOne) ? found : nn::ReduceOp();
}

/// How many blocks a kernel of `block` has; nothing if it is large enough or too small to be divided.
static std::optional<int64_t> countIdleBlocks(Block &block) {
  OwningOpRef<func::FuncOp> region = prepareForDevice(block);
  Schedule schedule(*region, Processor::Device);
  nn::ReduceOp op = findReduction(*region, schedule.results);
  if (!op || countElements(getShape(op.getInput())) < kLarge)
    return std::nullopt;
  int64_t blocks = schedule.rows.swept.empty() ? llvm::divideCeil(countElements(getShape(op.getResult())), 256)
                                               : countRowBlocks(*region, schedule.rows);
  return blocks < kFewBlocks ? std::optional(blocks) : std::nullopt;
}

/// The last reduced dims that are neighbors, but for dims of one element, as [first, end).
static std::pair<int64_t, int64_t> findLastGroup(nn::ReduceOp op) {
  ArrayRef<int64_t> shape = getShape(op.getInput());
  auto isReduced = [&](int64_t dim) { return shape[dim] == 1 || llvm::is_contained(op.getDims(), dim); };
  int64_t end = shape.size();
  while (end > 0 && (shape[end - 1] == 1 || !isReduced(end - 1)))
    --end;
  int64_t first = end;
  while (first > 0 && isReduced(first - 1))
    --first;
  return {first, end};
}

/// The largest divisor of `count` of at most `most`.
static int64_t findParts(int64_t count, int64_t most) {
  int64_t parts = std::clamp<int64_t>(most, 1, count);
  while (count % parts)
    --parts;
  return parts;
}

/// Puts two reductions in the place of one; the first of them, or nothing where dims do not allow it.
static Operation *divide(nn::ReduceOp op, int64_t blocks) {
  ArrayRef<int64_t> shape = getShape(op.getInput());
  auto [first, end] = findLastGroup(op);
  int64_t group = countElements(shape.slice(first, end - first)), all = countElements(shape);
  bool isAlone = group == all / countElements(getShape(op.getResult()));
  int64_t most =
      std::min(kWantedBlocks / std::max<int64_t>(blocks, 1), all / kLeastElements / std::max<int64_t>(blocks, 1));
  int64_t parts = isAlone ? findParts(group, most) : 1;
  if (isAlone && (parts < 4 || parts == group))
    return nullptr;
  SmallVector<int64_t> divided(shape.take_front(first));
  divided.append({parts, group / parts});
  llvm::append_range(divided, shape.drop_front(end));
  OpBuilder b(op);
  Composer c(b, op);
  Value partial =
      c.reduce(op.getKind(), c.reshape(c.toCompute(op.getInput()), divided), {first + 1}, /*keepDims=*/true);
  divided.erase(divided.begin() + first + 1);
  partial = c.reshape(partial, divided);
  // Of dims before the group those that were reduced before; behind it the group's parts.
  SmallVector<int64_t> dims;
  llvm::copy_if(op.getDims(), std::back_inserter(dims), [&, first = first](int64_t dim) { return dim < first; });
  if (isAlone)
    dims = {first};
  Value whole = c.reduce(op.getKind(), partial, dims, /*keepDims=*/true);
  op.replaceAllUsesWith(c.cast(c.reshape(whole, getShape(op.getResult())), getElementType(op.getResult())));
  op.erase();
  return partial.getDefiningOp();
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

/// How many keys are a part; nothing where there are blocks enough, or each has too little to read to be divided, or where a library may do
/// the whole.
static std::optional<int64_t> findPart(nn::AttentionOp op, const StageOptions &options) {
  ArrayRef<int64_t> query = getShape(op.getQuery()), value = getShape(op.getValue());
  Type flash = findFlashElement(op);
  if (flash && options.forLibraries && (options.narrowsFloats || ElementBuilder::isHalf(flash)))
    return std::nullopt;
  int64_t blocks = query[0] * query[1] * (flash ? llvm::divideCeil(query[2], kMostQueriesOfBlock) : query[2]);
  int64_t keys = value[2];
  if (blocks == 0 || blocks >= kFewBlocks || keys * (query[3] + value[3]) < kLarge || value[3] == 0)
    return std::nullopt;
  int64_t part = llvm::alignTo(llvm::divideCeil(keys, kWantedBlocks / blocks), kKeysOfBlock);
  return part < keys ? std::optional(part) : std::nullopt;
}

/// Puts two stages in the place of `op`; the first of them.
static Operation *divide(nn::AttentionOp op, int64_t part) {
  OpBuilder b(op);
  Composer c(b, op);
  SmallVector<int64_t> shape(getShape(op.getResult()));
  int64_t count = countElements(ArrayRef(shape).drop_back()), parts = llvm::divideCeil(getShape(op.getKey())[2], part);
  Type compute = ElementBuilder::getComputeType(getElementType(op.getQuery()));
  shape.insert(shape.begin() + 3, parts);
  auto sums = RankedTensorType::get(shape, compute), logs = RankedTensorType::get(ArrayRef(shape).drop_back(), compute);
  auto first = exec::PartialAttentionOp::create(b, op.getLoc(), sums, logs, op.getQuery(), op.getKey(), op.getValue(),
                                                op.getMask(), op.getScaleAttr(), op.getCausalAttr(),
                                                op.getCausalOffsetAttr(), op.getSoftcapAttr(), op.getLeftAttr(),
                                                op.getRightAttr(), /*seen=*/Value(), b.getI64IntegerAttr(part));
  auto zeros = [&](int64_t positions) {
    auto type = RankedTensorType::get({count, 1, positions, 1}, compute);
    return c.literal(DenseElementsAttr::get(type, b.getZeroAttr(compute)));
  };
  auto whole = RankedTensorType::get({count, 1, 1, shape.back()}, compute);
  Value result = c.createTyped<nn::AttentionOp>(whole, zeros(1), zeros(parts),
                                                c.reshape(first.getSums(), {count, 1, parts, shape.back()}),
                                                c.reshape(first.getLogs(), {count, 1, 1, parts}), b.getF64FloatAttr(1),
                                                UnitAttr(), IntegerAttr(), FloatAttr(), IntegerAttr(), IntegerAttr());
  result = c.reshape(result, getShape(op.getResult()));
  op.replaceAllUsesWith(c.cast(result, getElementType(op.getResult())));
  op.erase();
  return first;
}

/// The region's only attention is its anchor.
static DeviceSplits findAttentionStages(Block &block, const StageOptions &options) {
  auto all = block.getOps<nn::AttentionOp>();
  std::optional<int64_t> part = llvm::hasSingleElement(all) ? findPart(*all.begin(), options) : std::nullopt;
  if (!part)
    return {};
  OwningOpRef<func::FuncOp> region = expandRegion(block);
  Operation *first = divide(*region->front().getOps<nn::AttentionOp>().begin(), *part);
  return {std::move(region), {first}};
}

DeviceSplits cleave::codegen::findDeviceStages(Block &block, const StageOptions &options) {
  if (DeviceSplits splits = findAttentionStages(block, options); splits.region)
    return splits;
  std::optional<int64_t> blocks = countIdleBlocks(block);
  if (!blocks)
    return {};
  OwningOpRef<func::FuncOp> region = expandRegion(block);
  nn::ReduceOp op = findReduction(*region, region->front().getTerminator()->getOperands());
  // A mean of integers is one division of their sum.
  if (!op || !op.getKeepDims() || (op.getKind() == nn::ReduceKind::Mean && getElementType(op.getInput()).isInteger()))
    return {};
  Operation *first = divide(op, *blocks);
  return first ? DeviceSplits{std::move(region), {first}} : DeviceSplits();
}
