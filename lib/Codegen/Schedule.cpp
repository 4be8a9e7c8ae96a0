//===- Schedule.cpp - what a kernel computes when -------------------------===//
//
// A result may lie where an argument lies if nothing reads an element of the argument after it is written. Templates
// store an element as the last thing they do at its point (map) or in its row (row), so it suffices that what is still to be
// computed when results are stored reads the argument at the point, or in the row, that is stored:
//
//   map   x + f(x)               x only ever at the point that is stored
//   tile  a b + x                x likewise; a and b, of which blocks need rows and columns, not at all
//   row   softmax x              x in its own row; the sweeps before the last store nothing
//   no    x + transpose x        elsewhere; but a transpose that another one undoes leads back to the point
//
//===----------------------------------------------------------------------===//
#include "Device/Templates.h"
#include "Elements.h"
#include "Expand.h"
#include "View.h"
#include "cleave/Codegen/KernelRules.h"
#include "cleave/Dialect/Exec/IR/Exec.h"
#include "cleave/Dialect/Nn/IR/Ops/Convolution.h"
#include "cleave/Dialect/Nn/IR/Ops/Indexing.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"

#include <set>

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;

SmallVector<int64_t> Rows::getKeptShape() const {
  SmallVector<int64_t> kept(shape);
  kept[dim] = 1;
  return kept;
}

bool Rows::fits(Value value) const {
  SmallVector<int64_t> dropped(shape);
  dropped.erase(dropped.begin() + dim);
  ArrayRef<int64_t> has = getShape(value);
  return has == ArrayRef(shape) || has == ArrayRef(getKeptShape()) || has == ArrayRef(dropped);
}

Schedule::Schedule(func::FuncOp region, Processor processor) : processor(processor) {
  Block &block = region.front();
  for (Value value : block.getTerminator()->getOperands()) {
    while (auto reshape = value.getDefiningOp<nn::ReshapeOp>())
      value = reshape.getInput();
    results.push_back(value);
  }
  findRows(block);
  findFilled(block);
  if (rows.swept.empty())
    findAnchor(block);
}

/// Looks for a reduction of one dim whose rows all results have, and takes all reductions of such rows. Without one the
/// kernel is a map.
void Schedule::findRows(Block &block) {
  for (Operation &op : block.without_terminator()) {
    const Lowering *lowering = getLowerings().find(&op);
    if (!lowering->fold || lowering->fold->getDims(&op).size() != 1)
      continue;
    Rows own{{&op}, SmallVector<int64_t>(getShape(op.getOperand(0))), lowering->fold->getDims(&op).front()};
    if (rows.swept.empty() && llvm::all_of(results, [&](Value result) { return own.fits(result); }))
      rows = own;
    else if (!rows.swept.empty() && own.shape == rows.shape && own.dim == rows.dim)
      rows.swept.push_back(&op);
  }
}

/// True if each element of `value` is pulled once: by a chain of elementwise ops that ends in a result. Windows on a device are walked
/// by any thread, so that their results may be turned, too.
static bool isPulledOnce(Value value, Processor processor) {
  bool mayTurn = processor == Processor::Device && value.getDefiningOp<nn::PoolOp>();
  while (value.hasOneUse()) {
    Operation *user = *value.user_begin();
    if (user->hasTrait<OpTrait::IsTerminator>())
      return true;
    if ((processor == Processor::Device && isa<nn::ReshapeOp>(user)) || (mayTurn && isa<nn::TransposeOp>(user))) {
      value = user->getResult(0);
      continue;
    }
    if (!getLowerings().find(user)->element || getShape(user->getResult(0)) != getShape(value))
      return false;
    value = user->getResult(0);
  }
  return false;
}

/// What tiles load from has to lie in memory. Sums of rows are pulled.
static llvm::DenseSet<Operation *> findBases(Block &block, Processor processor) {
  llvm::DenseSet<Operation *> bases;
  if (processor == Processor::Device)
    return bases; // there they pull
  for (Operation &op : block.without_terminator())
    if ((getLowerings().find(&op)->isTiled(&op) && !isa<nn::ScatterNdOp>(op)) ||
        isa<exec::PartialAttentionOp, exec::AttentionGradOp>(op))
      for (Value operand : op.getOperands())
        bases.insert(View::get(operand).base.getDefiningOp());
  return bases;
}

/// What is not pulled element by element: results of `fill` and `tile` ops, and others that take work and would be computed
/// again and again.
void Schedule::findFilled(Block &block) {
  llvm::DenseSet<Operation *> bases = findBases(block, processor);
  for (Operation &op : block.without_terminator()) {
    const Lowering *lowering = getLowerings().find(&op);
    bool isHeavy = lowering->fold ? !rows.isSwept(&op) : lowering->fill || op.hasTrait<nn::Laborious>();
    if (lowering->isFilled(processor) || lowering->isTiled(&op, processor) || bases.contains(&op) ||
        (isHeavy && !isPulledOnce(op.getResult(0), processor)))
      filled.push_back(&op);
  }
}

//===----------------------------------------------------------------------===//
// The anchor
//===----------------------------------------------------------------------===//

/// By any way through operands; regions are small.
static bool dependsOn(Value value, Operation *op) {
  llvm::SetVector<Value> seen;
  seen.insert(value);
  for (size_t i = 0; i < seen.size(); ++i)
    if (Operation *maker = seen[i].getDefiningOp()) {
      if (maker == op)
        return true;
      seen.insert_range(maker->getOperands());
    }
  return false;
}

/// Two that move in one way lead into one space.
static bool areAlike(Operation *x, Operation *y) {
  return x->getName() == y->getName() && x->getAttrDictionary() == y->getAttrDictionary() &&
         x->getResultTypes() == y->getResultTypes();
}

/// The space of an op some of whose operands have one; nothing if it is neither elementwise in one space nor a move.
std::optional<unsigned> Anchor::findSpace(Operation *user) {
  std::optional<unsigned> common;
  for (Value operand : user->getOperands()) {
    if (!dependsOn(operand, op))
      continue;
    auto found = spaceOf.find(operand);
    if (found == spaceOf.end() || (common && *common != found->second))
      return std::nullopt;
    common = found->second;
    if (getLowerings().find(user)->element && getShape(operand) != getShape(user->getResult(0)))
      return std::nullopt;
  }
  if (getLowerings().find(user)->element)
    return common;
  if (!isa<nn::ReshapeOp, nn::TransposeOp>(user))
    return std::nullopt;
  moves.push_back(user);
  for (auto [number, space] : llvm::enumerate(spaces))
    if (space.move && space.from == *common && areAlike(space.move, user))
      return number;
  spaces.push_back({*common, user});
  return spaces.size() - 1;
}

/// In the order of the program, so that spaces come after those that they are made from.
bool Anchor::follow(Operation *anchor, ArrayRef<Value> results) {
  op = anchor;
  spaces = {{0, nullptr}};
  spaceOf = {{anchor->getResult(0), 0}};
  moves.clear();
  auto isNeeded = [&](Operation *next) {
    return dependsOn(next->getResult(0), op) &&
           llvm::any_of(results, [&](Value result) { return dependsOn(result, next); });
  };
  for (Operation *next = anchor->getNextNode(); !next->hasTrait<OpTrait::IsTerminator>(); next = next->getNextNode())
    if (isNeeded(next))
      if (std::optional<unsigned> space = findSpace(next))
        spaceOf[next->getResult(0)] = *space;
  return llvm::all_of(results, [&](Value result) { return has(result) || !dependsOn(result, op); });
}

/// The last one that can be: what is filled needs the others.
void Schedule::findAnchor(Block &block) {
  for (Operation *op : llvm::reverse(filled)) {
    bool isWanted = llvm::any_of(filled, [&](Operation *other) {
      return other != op && llvm::any_of(other->getOperands(), [&](Value value) { return dependsOn(value, op); });
    });
    Anchor found;
    if (isWanted || !getLowerings().find(op)->isTiled(op, processor) || !found.follow(op, results))
      continue;
    anchor = found;
    llvm::erase(filled, op);
    return;
  }
}

//===----------------------------------------------------------------------===//
// In place
//===----------------------------------------------------------------------===//

namespace {
/// Where a value is wanted: its dim i at the index that is being stored (in a row kernel: in the row) along dim `order[i]`; or
/// anywhere.
using Order = std::optional<SmallVector<int64_t>>;

/// Looks, from the results down, for reads of an argument that may come too late.
class LateReads {
public:
  LateReads(const Schedule &schedule, Value argument) : schedule(schedule), argument(argument) {}

  bool isFree(Value value, const Order &order);

private:
  Order findOrder(Operation *op, Value operand, const Order &order) const;

  const Schedule &schedule;
  Value argument;
  std::set<std::pair<void *, Order>> seen;
};
} // namespace

/// At the index that is being stored.
static Order standStill(Value value) { return llvm::to_vector(llvm::seq<int64_t>(0, getShape(value).size())); }

/// Where `op` reads `operand`. Elementwise ops of as many elements read it where they are, and reshapes, if dims are in order; in
/// rows a reduction, and what reads one element a row. Results of rows are known in their own shape, and with dims of size 1 more
/// or less: in any other shape they are computed again. What one transpose has exchanged another may put back.
Order LateReads::findOrder(Operation *op, Value operand, const Order &order) const {
  const Rows &rows = schedule.rows;
  Value result = op->getResult(0);
  if (!order)
    return std::nullopt;
  if (auto transpose = dyn_cast<nn::TransposeOp>(op)) {
    Order before = order;
    for (auto [dim, from] : llvm::enumerate(transpose.getPermutation()))
      (*before)[from] = (*order)[dim];
    return before;
  }
  // Where threads pull what a scatter gives, each looks at its own element of what is updated.
  if (auto form = dyn_cast<nn::FormOpInterface>(op); form && form.getForm() == nn::Form::Scatter) {
    bool isUpdated = schedule.processor == Processor::Device && operand == op->getOperand(0) &&
                     llvm::count(op->getOperands(), operand) == 1;
    return isUpdated ? order : std::nullopt;
  }
  bool isElement = bool(getLowerings().find(op)->element);
  if (isElement && getShape(operand) == getShape(result))
    return order;
  bool isFull = countElements(getShape(operand)) == countElements(getShape(result));
  bool isOfRow = !rows.swept.empty() && getShape(operand) == ArrayRef(rows.getKeptShape()) &&
                 getShape(result) == ArrayRef(rows.shape);
  bool isReshaped = isa<nn::ReshapeOp>(op) && (rows.swept.empty() || isOnesApart(operand, result));
  bool isHere = rows.isSwept(op) || (isElement && (isFull || isOfRow)) || isReshaped;
  return isHere && order == standStill(result) ? standStill(operand) : std::nullopt;
}

bool LateReads::isFree(Value value, const Order &order) {
  if (value == argument)
    return order == standStill(value);
  if (isa<BlockArgument>(value) || schedule.isFilled(value) || !seen.insert({value.getAsOpaquePointer(), order}).second)
    return true;
  Operation *op = value.getDefiningOp();
  return llvm::all_of(op->getOperands(), [&](Value operand) { return isFree(operand, findOrder(op, operand, order)); });
}

static int64_t countBytes(Value value) {
  return countElements(getShape(value)) * ElementBuilder::getStoredType(getElementType(value)).getIntOrFloatBitWidth() /
         8;
}

/// True if `value` is `argument` with updates, and nothing else of the region reads that.
static bool isUpdated(Value value, Value argument) {
  auto op = dyn_cast_if_present<nn::FormOpInterface>(value.getDefiningOp());
  return op && op.getForm() == nn::Form::Scatter && op->getOperand(0) == argument && argument.hasOneUse();
}

bool cleave::codegen::canBeInPlace(Block &block, unsigned argument, unsigned result) {
  [[maybe_unused]] std::string reason;
  assert(canEmit(block, reason) && "no kernel");
  OwningOpRef<func::FuncOp> region = expandRegion(block);
  mergeDims(*region);
  Schedule schedule(*region);
  Value from = region->getArgument(argument), to = schedule.getResult(result);
  bool isSameSize = countElements(getShape(from)) == countElements(getShape(to)) && countBytes(from) == countBytes(to);
  if (!isSameSize || schedule.isFilled(to))
    return isSameSize && isUpdated(to, from);
  LateReads reads(schedule, from);
  // What is computed of the anchor goes first, then maps, shape by shape, in the order of the results.
  bool isAnchored = schedule.anchor.has(to), isLater = isAnchored;
  for (Value other : schedule.results) {
    bool isOfOneKind = schedule.anchor.has(other) == isAnchored;
    bool isTogether = isOfOneKind && (isAnchored || !schedule.rows.swept.empty() || getShape(other) == getShape(to));
    isLater |= isTogether;
    bool isMoved =
        isAnchored && isOfOneKind && schedule.anchor.spaceOf.lookup(other) != schedule.anchor.spaceOf.lookup(to);
    Order order = isTogether && !isMoved ? standStill(other) : std::nullopt;
    if (isLater && (isAnchored || isOfOneKind) && !reads.isFree(other, order))
      return false;
  }
  return true;
}

/// Threads do not wait for each other: whatever reads the argument must be the thread that stores there. A row's only element is read by
/// all threads of the row, and stored by one; and where rows end a thread reads what is
/// another's.
bool cleave::codegen::canBeInPlaceOnDevice(Block &block, unsigned argument, unsigned result) {
  [[maybe_unused]] std::string reason;
  assert(canEmitDevice(block, reason) && "no kernel of a device");
  OwningOpRef<func::FuncOp> region = prepareForDevice(block);
  Schedule schedule(*region, Processor::Device);
  Value from = region->getArgument(argument), to = schedule.getResult(result);
  const Rows &rows = schedule.rows;
  bool isFull = rows.swept.empty() ||
                (getShape(to) == ArrayRef(rows.shape) && rows.shape[rows.dim] != 1 && readsOwnElements(*region, rows));
  if (countElements(getShape(from)) != countElements(getShape(to)) || countBytes(from) != countBytes(to) || !isFull ||
      !schedule.filled.empty())
    return false;
  LateReads reads(schedule, from);
  bool isTurned =
      !region->front().getOps<nn::TransposeOp>().empty(); // threads then store at other points than they read
  return llvm::all_of(schedule.results, [&](Value other) {
    bool isAnchored = schedule.anchor.has(to), isOfOneKind = schedule.anchor.has(other) == isAnchored;
    bool isTogether = isOfOneKind && (isAnchored || !rows.swept.empty() || getShape(other) == getShape(to));
    bool isMoved = other != to && isTurned;
    return reads.isFree(other, isTogether && !isMoved ? standStill(other) : std::nullopt);
  });
}
