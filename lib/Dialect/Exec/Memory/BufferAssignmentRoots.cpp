//===- BufferAssignmentRoots.cpp - whose bytes a value is -----------------===//
//
// A value that only shows what another one has is no bytes of its own. Its root is the value that is:
//
//   %a = exec.launch ..       root %a, at 0
//   %b = alias of %a, 4..8    root %a, at 16, which for a rank's own rows is a number of the table of ranks
//   loop carries %i           the argument of the body; what the loop leaves is that, too
//   body captures %a          root %a
//
// Ranks that meet want what they meet with at one offset, so a rank's own rows are bytes of the whole only where no collective
// reads them, in whatever form.
//
//===----------------------------------------------------------------------===//
#include "BufferAssignment.h"

#include "cleave/Dialect/Exec/IR/Control.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

bool cleave::exec::isLoaded(Value value) {
  Operation *op = value.getDefiningOp();
  if (nn::isData(op) || isa_and_present<spmd::AxisIndexOp>(op))
    return true;
  return isa_and_present<PackOp, spmd::LocalSliceOp>(op) && isLoaded(op->getOperand(0)) &&
         !op->getOperand(0).getDefiningOp<PackOp>();
}

Value cleave::exec::lookThrough(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (getAliasOffset(op) != 0 || spmd::getBytes(op->getOperand(0).getType()) != spmd::getBytes(value.getType()))
      break;
    value = op->getOperand(0);
  }
  return value;
}

std::optional<SmallVector<unsigned>> cleave::exec::getConcatenated(KernelOp kernel) {
  Block &body = kernel.getBody().front();
  Operation *yield = body.getTerminator();
  auto concat =
      yield->getNumOperands() == 1 ? lookThrough(yield->getOperand(0)).getDefiningOp<nn::ConcatOp>() : nullptr;
  if (!concat)
    return std::nullopt;
  ArrayRef<int64_t> outer = concat.getResult().getType().getShape().take_front(concat.getDim());
  SmallVector<unsigned> parts;
  for (Value input : concat.getInputs()) {
    auto argument = dyn_cast<BlockArgument>(lookThrough(input));
    if (!argument)
      return std::nullopt;
    parts.push_back(argument.getArgNumber());
  }
  return llvm::all_of(outer, [](int64_t extent) { return extent == 1; }) ? std::optional(parts) : std::nullopt;
}

std::optional<SmallVector<spmd::AxisAttr>> cleave::exec::getRowAxes(ArrayAttr dims, ArrayRef<int64_t> local) {
  SmallVector<spmd::AxisAttr> axes;
  bool areRows = true;
  int64_t before = 1;
  for (auto [extent, list] : llvm::zip_equal(local, dims.getAsRange<ArrayAttr>())) {
    if (!list.empty() && (before != 1 || !axes.empty()))
      areRows = false;
    llvm::append_range(axes, list.getAsRange<spmd::AxisAttr>());
    before *= extent;
  }
  return areRows ? std::optional(axes) : std::nullopt;
}

/// True if the body reads `use` where it lies.
static bool isCaptured(EnterOp enter, OpOperand &use) {
  return use.getOperandNumber() >= enter->getNumOperands() - enter.getCaptured().size();
}

/// What a loop carries is what it leaves behind; null of anything else.
static Value getLeftBehind(Value value) {
  auto enter = value.getDefiningOp<EnterOp>();
  unsigned number = enter ? cast<OpResult>(value).getResultNumber() : 0;
  return enter && number < enter.getInitial().size() ? findEnd(enter)->getResult(number) : Value();
}

bool cleave::exec::feedsCollective(Value value, Operation *except) {
  SmallVector<Value> open = {value};
  while (!open.empty()) {
    Value seen = open.pop_back_val();
    if (Value left = getLeftBehind(seen))
      open.push_back(left);
    for (OpOperand &use : seen.getUses()) {
      Operation *user = use.getOwner();
      if (communicates(user) && user != except)
        return true;
      auto enter = dyn_cast<EnterOp>(user);
      if (getAliasOffset(user) || isa<spmd::LocalSliceOp>(user))
        open.push_back(user->getResult(0));
      else if (enter && isCaptured(enter, use))
        open.push_back(enter.getValues()[use.getOperandNumber() - (enter.getCondition() ? 1 : 0)]);
    }
  }
  return false;
}

/// A rank's own rows of a tensor are a view whose offset depends on the rank. What ranks do together wants it at one offset.
static bool isView(spmd::LocalSliceOp op) {
  return !feedsCollective(op.getResult()) && getRowAxes(op.getDims(), op.getResult().getType().getShape());
}

//===----------------------------------------------------------------------===//
// Roots
//===----------------------------------------------------------------------===//

/// In the order of the steps, so that the root of what an alias sees is known before that of the alias.
void BufferAssignment::findRoots() {
  NumberAttr zero = table.get(0);
  for (BlockArgument argument : block.getArguments())
    roots[argument] = {argument, zero};
  SmallVector<EnterOp> open;
  for (Operation *op : steps) {
    for (Value result : op->getResults())
      roots[result] = {result, zero};
    if (auto enter = dyn_cast<EnterOp>(op)) {
      open.push_back(enter);
      for (auto [value, result] :
           llvm::zip_equal(enter.getCaptured(), enter.getValues().drop_front(enter.getInitial().size())))
        roots[result] = Root(roots[value]);
    }
    if (auto leave = dyn_cast<LeaveOp>(op))
      for (auto [carried, result] : llvm::zip(open.pop_back_val().getValues(), leave.getValues()))
        roots[result] = {carried, zero};
    std::optional<int64_t> offset = getAliasOffset(op);
    auto slice = dyn_cast<spmd::LocalSliceOp>(op);
    bool isRow = slice && !isLoaded(slice.getResult()) && isView(slice);
    if (!offset && !isRow)
      continue;
    Value result = op->getResult(0);
    Root root = roots[op->getOperand(0)];
    if (isRow)
      root.offset =
          table.add(root.offset, table.get(*getRowAxes(slice.getDims(), slice.getResult().getType().getShape()),
                                           spmd::getBytes(result.getType())));
    else
      root.offset = table.add(root.offset, *offset * spmd::getElementBytes(getElementTypeOrSelf(result)));
    roots[result] = root;
  }
}

BufferAssignment::Root BufferAssignment::getRoot(Value value) const { return roots.find(value)->second; }

bool cleave::exec::isAllOf(Value value, const BufferAssignment::Root &root) {
  return root.value.getDefiningOp() && !isLoaded(root.value) && !root.offset.hasColumn() &&
         root.offset.getBase() == 0 && spmd::getBytes(value.getType()) == spmd::getBytes(root.value.getType());
}
