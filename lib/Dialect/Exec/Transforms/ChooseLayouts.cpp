//===- ChooseLayouts.cpp - channels last, throughout ----------------------===//
//
// One walk over the program. Of each value that is stored with channels last, that form is kept beside the value itself; an op
// is made for it, too, if most of what it reads has that form:
//
//   windowed   conv, pool, batch norm                   transposed ─▶ op as it was ─▶ transposed
//   plain      elementwise, concat, slice, resize ..    the op on dims in the other order
//   spmd.window                                         as plain; in front of a convolution from there on
//   exec.again                                          of what its operand is
//   any other                                           reads the value itself: transposed, where that is gone
//
// So which values have channels last is decided once: those that convolutions make, and what is made of them.
//
//===----------------------------------------------------------------------===//
#include "../Kernels/Contractions.h"
#include "../Kernels/Movement.h"
#include "cleave/Dialect/Exec/Fusion/Clusters.h"
#include "cleave/Dialect/Exec/Transforms/Passes.h"
#include "cleave/Dialect/Nn/IR/Ops/Convolution.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "cleave/Dialect/Nn/IR/SameDim.h"
#include "cleave/Dialect/Spmd/IR/OwnFaults.h"
#include "cleave/Dialect/Spmd/IR/TensorTypes.h"

namespace cleave::exec {
#define GEN_PASS_DEF_CHOOSELAYOUTS
#include "cleave/Dialect/Exec/IR/ExecPasses.h.inc"
} // namespace cleave::exec

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

using Dims = SmallVector<int64_t>;

/// Fewer are not worth a vector of their own.
static constexpr int64_t kFewChannels = 8;

/// Windows of a convolution that make up for laying out its weight.
static constexpr int64_t kManyWindows = 256;

/// Which dim stands where when channels are last: 0, 2, 3, .., 1.
static Dims getLastOrder(int64_t rank) {
  Dims order{0};
  llvm::append_range(order, llvm::seq<int64_t>(2, rank));
  order.push_back(1);
  return order;
}

/// The other way: 0, rank - 1, 1, 2, ..
static Dims getFirstOrder(int64_t rank) {
  Dims order{0, rank - 1};
  llvm::append_range(order, llvm::seq<int64_t>(1, rank - 1));
  return order;
}

static Dims reorder(ArrayRef<int64_t> values) {
  return llvm::map_to_vector(getLastOrder(values.size()), [&](int64_t dim) { return values[dim]; });
}

namespace {
class LayoutChooser {
public:
  LayoutChooser(Block &block, bool laysWeights) : block(block), laysWeights(laysWeights) {}
  void run();

private:
  bool convert(Operation *op);
  bool isWorthIt(Operation *op) const;
  Value convertWindowed(Operation *op);
  Value layWeight(nn::ConvOp op);
  Value convertPlain(Operation *op);
  bool convertWindow(spmd::WindowOp op);
  bool convertAgain(AgainOp op);
  /// `value` with channels last, beside operands of `rank` dims.
  Value getLast(Value value, int64_t rank);
  /// `value` itself.
  Value getFirst(Value value);
  void readFirst(Operation *op);
  void readTransposed(nn::TransposeOp op);

  Block &block;
  bool laysWeights;
  /// Values with channels last, and, where the walk has been, what the values themselves are now.
  llvm::DenseMap<Value, Value> last, first;
  /// Transposes that are the ends of kernels.
  Stops ends;
};
} // namespace

//===----------------------------------------------------------------------===//
// Both forms of a value
//===----------------------------------------------------------------------===//

Value LayoutChooser::getLast(Value value, int64_t rank) {
  bool isSmaller = getTensorType(value).getRank() < rank;
  if (Value known = isSmaller ? Value() : last.lookup(value))
    return known;
  value = getFirst(value);
  // Of one number, either form is the other.
  if (getTensorType(value).getNumElements() == 1 && getTensorType(value).getRank() <= rank)
    return value;
  OpBuilder builder(value.getContext());
  builder.setInsertionPointAfterValue(value);
  Dims shape(rank - getTensorType(value).getRank(), 1);
  llvm::append_range(shape, getShape(value));
  Value moved = permute(builder, isSmaller ? reshapeTo(builder, value, shape) : value, getLastOrder(rank), ends);
  if (!isSmaller)
    last[value] = moved;
  return moved;
}

Value LayoutChooser::getFirst(Value value) {
  auto found = first.find(value);
  if (found == first.end())
    return value;
  if (!found->second) {
    Value moved = last.lookup(value);
    OpBuilder builder(value.getContext());
    builder.setInsertionPointAfterValue(moved);
    found->second =
        nn::TransposeOp::create(builder, moved.getLoc(), moved, getFirstOrder(getTensorType(moved).getRank()));
  }
  return found->second;
}

void LayoutChooser::readFirst(Operation *op) {
  for (OpOperand &operand : op->getOpOperands())
    operand.set(getFirst(operand.get()));
}

/// A transpose of what has channels last is another transpose of that, or none.
void LayoutChooser::readTransposed(nn::TransposeOp op) {
  OpBuilder builder(op);
  Value moved = permute(builder, op.getInput(), op.getPermutation(), ends);
  if (moved.getDefiningOp() != op)
    op.replaceAllUsesWith(moved);
}

//===----------------------------------------------------------------------===//
// One op
//===----------------------------------------------------------------------===//

/// A batch norm computes element by element.
static bool isMap(Operation *op) { return cast<nn::FormOpInterface>(op).getForm() == nn::Form::Map; }

/// True for what stays as it is, between two transposes: its channels are dim 1, whatever happens.
static bool isWindowed(Operation *op) { return op->hasTrait<nn::ChannelsSecond>() && (isMap(op) || isAnchor(op)); }

/// Dims of what `op` works on.
static int64_t getRank(Operation *op) {
  return std::max(getTensorType(op->getOperand(0)).getRank(), getTensorType(op->getResult(0)).getRank());
}

/// True for what means the same on dims in another order, once its attributes do, and keeps all dims, or batch and channels alone.
static bool isPlain(Operation *op) {
  if (op->hasTrait<nn::Elementwise>())
    return true;
  auto plain = dyn_cast<nn::ReorderOpInterface>(op);
  ArrayRef<int64_t> from = getShape(op->getOperand(0)), to = getShape(op->getResult(0));
  bool isRankKept = int64_t(to.size()) == getRank(op);
  return plain && plain.canReorder(getLastOrder(getRank(op))) && (isRankKept || to == from.take_front(2));
}

static bool isConvolution(Operation *op) {
  auto formed = dyn_cast<nn::FormOpInterface>(op);
  return formed && formed.getForm() == nn::Form::Convolution;
}

/// By elements: what would have to be transposed first is less than what is there.
bool LayoutChooser::isWorthIt(Operation *op) const {
  // Vectors run along channels of the result.
  if (isConvolution(op))
    return getShape(op->getResult(0))[1] >= kFewChannels;
  int64_t there = 0, missing = 0;
  unsigned considered = isWindowed(op) ? 1 : op->getNumOperands();
  for (Value operand : op->getOperands().take_front(considered))
    (last.contains(operand) ? there : missing) += getTensorType(operand).getNumElements();
  return there > 0 && there >= missing;
}

/// The value that `value` is moved from, and sent between ranks on its way.
static Value findSource(Value value) {
  while (Operation *maker = value.getDefiningOp()) {
    bool onlyMoves = nn::onlyMoves(maker) || isFloatCast(maker) || isa<spmd::CollectiveOpInterface>(maker);
    if (!onlyMoves || maker->getNumOperands() == 0)
      break;
    value = maker->getOperand(0);
  }
  return value;
}

/// True for a weight that is laid out in each call. One that is loaded is laid out then; one that is given, as states are, takes a walk over all
/// of it, for which many windows make up. What a result's gradient is a weight of is read number by number otherwise.
static bool isLaidHere(nn::ConvOp op) {
  Value source = findSource(op.getWeight());
  bool isLoaded = source.getDefiningOp() && source.getDefiningOp()->getNumOperands() == 0;
  int64_t channels = getShape(op.getWeight())[0];
  int64_t windows = getTensorType(op.getResult()).getNumElements() / std::max<int64_t>(channels, 1);
  return op.getGroups() == 1 && channels >= kFewChannels && !isLoaded &&
         (source.getDefiningOp() || windows >= kManyWindows);
}

/// The weight of a convolution with its first dim last, along which vectors run: once in that order, and from there as the convolution wants it,
/// by a transpose of its own, so that the kernel reads through it whoever else reads the weight.
Value LayoutChooser::layWeight(nn::ConvOp op) {
  int64_t rank = getTensorType(op.getWeight()).getRank();
  Dims order(llvm::to_vector(llvm::seq<int64_t>(0, rank)));
  Value laid = skipTransposes(op.getWeight(), order, ends);
  OpBuilder builder(op);
  if (order[0] == 1 && findSource(laid).getDefiningOp()) {
    // A gradient is read with channels last by others, too; a weight that is given stays in its order for all others.
    laid = getLast(laid, rank);
    order = llvm::map_to_vector(order, [&](int64_t dim) { return nn::findInOrder(getLastOrder(rank), dim); });
  } else if (order[0] != rank - 1) {
    Dims lastOrder(ArrayRef<int64_t>(order).drop_front(2));
    lastOrder.append({order[1], order[0]});
    laid = nn::TransposeOp::create(builder, op.getLoc(), laid, lastOrder);
    order = llvm::map_to_vector(order, [&](int64_t dim) { return nn::findInOrder(lastOrder, dim); });
  }
  return nn::TransposeOp::create(builder, op.getLoc(), laid, order);
}

Value LayoutChooser::convertWindowed(Operation *op) {
  Value input = op->getOperand(0);
  int64_t rank = getTensorType(input).getRank();
  OpBuilder builder(op);
  Value moved = getLast(input, rank);
  if (auto transposed = dyn_cast<nn::ConvTransposeOp>(op); transposed && isBoxes(transposed)) {
    for (OpOperand &operand : llvm::drop_begin(op->getOpOperands()))
      operand.set(getFirst(operand.get()));
    return contractLast(transposed, moved);
  }
  // A batch norm goes on with what is there; a window reads memory with channels last.
  Value inFirst = isMap(op) ? permute(builder, moved, getFirstOrder(rank))
                            : nn::TransposeOp::create(builder, op->getLoc(), moved, getFirstOrder(rank)).getResult();
  Operation *inside = builder.clone(*op);
  inside->setOperand(0, inFirst);
  for (OpOperand &operand : llvm::drop_begin(inside->getOpOperands()))
    operand.set(getFirst(operand.get()));
  if (auto conv = dyn_cast<nn::ConvOp>(inside); conv && laysWeights && isLaidHere(conv))
    conv.setOperand(1, layWeight(conv));
  Value result = nn::TransposeOp::create(builder, op->getLoc(), inside->getResult(0), getLastOrder(rank));
  ends.insert(result);
  return result;
}

Value LayoutChooser::convertPlain(Operation *op) {
  RankedTensorType type = getTensorType(op->getResult(0));
  int64_t rank = getRank(op);
  bool isRankKept = type.getRank() == rank;
  OpBuilder builder(op);
  SmallVector<Value> operands =
      llvm::map_to_vector(op->getOperands(), [&](Value operand) { return getLast(operand, rank); });
  Operation *plain = builder.clone(*op);
  plain->setOperands(operands);
  if (isRankKept)
    plain->getResult(0).setType(RankedTensorType::get(reorder(type.getShape()), type.getElementType()));
  if (auto reordered = dyn_cast<nn::ReorderOpInterface>(plain))
    reordered.reorder(getLastOrder(rank));
  return plain->getResult(0);
}

/// In front of a convolution rows are moved once they lie side by side.
bool LayoutChooser::convertWindow(spmd::WindowOp op) {
  int64_t rank = op.getInput().getType().getRank();
  auto goesOn = [](Operation *user) {
    return isa<nn::ConvOp>(user) && getShape(user->getResult(0))[1] >= kFewChannels;
  };
  if (rank < 3 || !(last.contains(op.getInput()) || llvm::any_of(op->getUsers(), goesOn)))
    return false;
  OpBuilder builder(op);
  auto moved = cast<spmd::WindowOp>(builder.clone(*op));
  moved.getInputMutable().assign(getLast(op.getInput(), rank));
  moved.setDimsAttr(builder.getArrayAttr(
      llvm::map_to_vector(getLastOrder(rank), [&](int64_t dim) -> Attribute { return op.getDims()[dim]; })));
  moved.setSteps(reorder(op.getSteps()));
  moved.setLows(reorder(op.getLows()));
  moved.setHighs(reorder(op.getHighs()));
  if (op.getMissing()) {
    moved.setMissing(reorder(*op.getMissing()));
    moved.setFirsts(reorder(*op.getFirsts()));
    moved.setEnds(reorder(*op.getEnds()));
    moved.setTakers(reorder(*op.getTakers()));
  }
  RankedTensorType type = op.getResult().getType();
  moved.getResult().setType(RankedTensorType::get(reorder(type.getShape()), type.getElementType()));
  last[op.getResult()] = moved.getResult();
  first[op.getResult()] = Value();
  return true;
}

/// What is made again goes on with what is there.
bool LayoutChooser::convertAgain(AgainOp op) {
  Value moved = last.lookup(op.getInput());
  if (!moved)
    return false;
  OpBuilder builder(op);
  last[op.getResult()] = AgainOp::create(builder, op.getLoc(), moved);
  first[op.getResult()] = Value();
  return true;
}

bool LayoutChooser::convert(Operation *op) {
  if (auto again = dyn_cast<AgainOp>(op))
    return convertAgain(again);
  if (auto window = dyn_cast<spmd::WindowOp>(op))
    return convertWindow(window);
  if (op->getNumResults() != 1 || op->getNumOperands() == 0 || !isa<nn::FormOpInterface>(op))
    return false;
  Value result = op->getResult(0);
  int64_t rank = getRank(op);
  bool windowed = isWindowed(op);
  if (rank < 3 || (!windowed && !isPlain(op)) || !isWorthIt(op))
    return false;
  Value moved = windowed ? convertWindowed(op) : convertPlain(op);
  if (getTensorType(result).getRank() == rank) {
    last[result] = moved;
    first[result] = Value();
  } else {
    result.replaceAllUsesWith(moved); // batch and channels are left
  }
  return true;
}

void LayoutChooser::run() {
  SmallVector<Operation *> converted;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (convert(&op)) {
      converted.push_back(&op);
      continue;
    }
    readFirst(&op);
    if (auto transpose = dyn_cast<nn::TransposeOp>(op))
      readTransposed(transpose);
  }
  for (Operation *op : llvm::reverse(converted))
    op->erase();
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

namespace {
struct ChooseLayouts : cleave::exec::impl::ChooseLayoutsBase<ChooseLayouts> {
  using Base::Base;

  void runOnOperation() override {
    OwnFaults faults(&getContext());
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      if (func.isExternal())
        continue;
      spmd::restoreNodes(func);
      for (Block &block : func.getBody())
        if (llvm::any_of(block, [](Operation &op) { return isConvolution(&op); }))
          LayoutChooser(block, !forDevices).run();
    }
  }
};
} // namespace
