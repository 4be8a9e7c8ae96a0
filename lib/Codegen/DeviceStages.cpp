//===- DeviceStages.cpp - reductions in two stages ---------------------------===//
//
// A reduction of much into little has few rows, and a row has a block of threads at most, so that most of a device has nothing to do.
// Where that is so, neighbouring dims that are reduced become parts, each of which is summed up by itself; then the parts:
//
//   reduce %x dims [0] : [65536, 64]    ->    reduce (reshape %x : [256, 256, 64]) dims [1]   a kernel of its own: [256, 64]
//                                             reduce %parts dims [0]
//
// Dims that are no neighbours ([0, 2] of [N, C, H]) are reduced one group after the other, the last one first. All of it is in a fixed
// order, so that results have the same bits each time. Parts are in the type that is computed in, and rounded at the end.
//
//===----------------------------------------------------------------------===//
#include "Compose.h"
#include "DeviceTemplates.h"
#include "Expand.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;

/// Fewer blocks leave a device idle; as many are wanted, of so many elements at least.
static constexpr int64_t kFewBlocks = 64, kWantedBlocks = 256, kLeastElements = 1024;
/// What is read in the time that a second launch takes.
static constexpr int64_t kLarge = 128 << 10;

/// The region's only reduction, if there is one, and all results have as many elements as it gives.
static nn::ReduceOp findReduction(func::FuncOp region, ValueRange results) {
  nn::ReduceOp found;
  for (Operation &op : region.front().without_terminator()) {
    const Form *form = getForms().find(&op);
    if (!form->fold && !form->fill && !form->tile)
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

/// The last reduced dims that are neighbours, but for dims of one element, as [first, end).
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
  Value partial = c.reduce(op.getKind(), c.reshape(c.widen(op.getInput()), divided), {first + 1});
  divided.erase(divided.begin() + first + 1);
  partial = c.reshape(partial, divided);
  // Of dims before the group those that were reduced before; behind it the group's parts.
  SmallVector<int64_t> dims;
  llvm::copy_if(op.getDims(), std::back_inserter(dims), [&, first = first](int64_t dim) { return dim < first; });
  if (isAlone)
    dims = {first};
  Value whole = c.reduce(op.getKind(), partial, dims);
  op.replaceAllUsesWith(c.cast(c.reshape(whole, getShape(op.getResult())), getElement(op.getResult())));
  op.erase();
  return partial.getDefiningOp();
}

DeviceCuts cleave::codegen::findDeviceStages(Block &block) {
  std::optional<int64_t> blocks = countIdleBlocks(block);
  if (!blocks)
    return {};
  OwningOpRef<func::FuncOp> region = expandRegion(block);
  nn::ReduceOp op = findReduction(*region, region->front().getTerminator()->getOperands());
  // A mean of integers is one division of their sum.
  if (!op || !op.getKeepDims() || (op.getKind() == nn::ReduceKind::Mean && getElement(op.getInput()).isInteger()))
    return {};
  Operation *first = divide(op, *blocks);
  return first ? DeviceCuts{std::move(region), {first}} : DeviceCuts();
}
