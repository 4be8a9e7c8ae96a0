//===- Stacking.cpp - values that are computed alike, as one --------------===//
//
// Each op that the values have in common is made once, over a dim more, in front:
//
//   element by element    what is stacked lines up in front: [e, 1.., dims]
//   einsum                a letter more, of what is stacked and of the result
//   movement, rows        the dims that an attribute names are one further behind
//   lookup                in one table by all places, or in each table by the same places
//
// Weights become one parameter of references to where they are. Slices that follow each other in one value are that
// value, its dim taken apart. What cannot be made leaves nothing behind.
//
//===----------------------------------------------------------------------===//
#include "Stacking.h"

#include "Matching.h"
#include "cleave/Dialect/Nn/IR/NodeLoc.h"
#include "cleave/Dialect/Nn/IR/Pieces.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;

//===----------------------------------------------------------------------===//
// What is alike
//===----------------------------------------------------------------------===//

bool cleave::nn::asksForStack(spmd::PinOp pin) {
  std::optional<spmd::WishAttr> wish = pin.getWish();
  return wish && wish->getSharding().getDims().size() == getShape(pin.getInput()).size() + 1;
}

static bool isWholeLoad(LoadOp load) { return !load.isPart() && !load.getSharding(); }

/// The dim along which two slices of one value differ in their start alone; nothing if that is not all.
static std::optional<int64_t> getMovedDim(SliceOp lhs, SliceOp rhs) {
  if (lhs.getInput() != rhs.getInput() || lhs.getSizes() != rhs.getSizes() || lhs.getSteps() != rhs.getSteps())
    return std::nullopt;
  std::optional<int64_t> moved;
  for (auto [dim, starts] : llvm::enumerate(llvm::zip_equal(lhs.getStarts(), rhs.getStarts()))) {
    auto [from, to] = starts;
    if (from == to)
      continue;
    if (moved || lhs.getSteps()[dim] != 1)
      return std::nullopt;
    moved = dim;
  }
  return moved;
}

/// Ops that `stackOps` knows. Convolutions and attention of experts have not been seen: they are left apart, and so is what
/// an expert normalizes by itself.
static bool canBeStacked(Operation *op) {
  return op->hasTrait<Elementwise>() ||
         isa<EinsumOp, ReshapeOp, TransposeOp, BroadcastOp, ReduceOp, SoftmaxOp, SliceOp, GatherOp, DequantizeOp>(op);
}

/// Fails where it takes more than `budget` looks: what is shared below is looked at from above each time.
static bool areAlike(Value lhs, Value rhs, int64_t &budget) {
  if (lhs == rhs)
    return true;
  if (--budget < 0)
    return false;
  Operation *a = lhs.getDefiningOp(), *b = rhs.getDefiningOp();
  if (!a || !b || lhs.getType() != rhs.getType() || !isFree(lhs) || a->getName() != b->getName() ||
      a->getNumOperands() != b->getNumOperands())
    return false;
  if (auto load = dyn_cast<LoadOp>(a))
    return isWholeLoad(load) && isWholeLoad(cast<LoadOp>(b));
  if (isa<ConstantOp>(a))
    return true;
  if (auto pin = dyn_cast<spmd::PinOp>(a)) {
    auto other = cast<spmd::PinOp>(b);
    return pin.getInput().getDefiningOp<LoadOp>() && pin.getWish() == other.getWish() &&
           areAlike(pin.getInput(), other.getInput(), budget);
  }
  if (auto slice = dyn_cast<SliceOp>(a); slice && getMovedDim(slice, cast<SliceOp>(b)))
    return true;
  return canBeStacked(a) && a->getName().compareOpProperties(a->getPropertiesStorage(), b->getPropertiesStorage()) &&
         llvm::all_of_zip(a->getOperands(), b->getOperands(),
                          [&](Value x, Value y) { return ::areAlike(x, y, budget); });
}

bool cleave::nn::areAlike(Value lhs, Value rhs) {
  int64_t budget = 1000;
  return ::areAlike(lhs, rhs, budget);
}

//===----------------------------------------------------------------------===//
// Entry
//===----------------------------------------------------------------------===//

Value Stacker::stack(ArrayRef<Value> values, bool mustBeAskedFor) {
  count = values.size();
  Mapped mapped = map(values);
  if (mapped.value && mapped.isStacked && (!mustBeAskedFor || llvm::any_of(stackedPins, asksForStack)))
    return mapped.value;
  for (Operation *op : llvm::reverse(created))
    op->erase();
  for (ParamOp param : params)
    symbols.erase(param);
  stackedPins.clear();
  return {};
}

/// What experts have in common is asked for from several sides, and made once.
Stacker::Mapped Stacker::map(ArrayRef<Value> values) {
  if (llvm::all_equal(values))
    return {values.front(), false};
  std::vector<void *> key;
  for (Value value : values)
    key.push_back(value.getAsOpaquePointer());
  auto found = known.find(key);
  return found != known.end() ? found->second : known[key] = makeMapped(values);
}

Stacker::Mapped Stacker::makeMapped(ArrayRef<Value> values) {
  Operation *first = values.front().getDefiningOp();
  if (isa<LoadOp>(first))
    return {stackWeights(values), true};
  if (isa<spmd::PinOp>(first))
    return {stackPins(values), true};
  if (isa<ConstantOp>(first))
    return {stackConstants(values), true};
  if (auto slice = dyn_cast<SliceOp>(first);
      slice && slice.getInput() == values.back().getDefiningOp<SliceOp>().getInput())
    return {stackSlices(values), true};
  SmallVector<Mapped> operands;
  for (unsigned index = 0; index < first->getNumOperands(); ++index) {
    Values column = llvm::map_to_vector(values, [&](Value value) { return value.getDefiningOp()->getOperand(index); });
    operands.push_back(map(column));
    if (!operands.back().value)
      return {};
  }
  return {stackOps(first, operands), true};
}

//===----------------------------------------------------------------------===//
// What differs
//===----------------------------------------------------------------------===//

RankedTensorType Stacker::getStackedType(Value value) const {
  SmallVector<int64_t> shape{count};
  llvm::append_range(shape, getShape(value));
  return RankedTensorType::get(shape, getElementType(value));
}

Value Stacker::toShape(Value value, ArrayRef<int64_t> shape) {
  if (getShape(value) == shape)
    return value;
  auto type = RankedTensorType::get(shape, getElementType(value));
  return note(ReshapeOp::create(builder, getInnerLoc(value.getLoc()), type, value));
}

/// What all of `names` have in common, in front and behind, with a star for the rest.
static std::string makeStarred(ArrayRef<StringRef> names) {
  StringRef front = names.front(), back = names.front();
  for (StringRef name : names) {
    front =
        front.take_while([&, index = size_t(0)](char c) mutable { return index < name.size() && name[index++] == c; });
    size_t same = 0;
    while (same < std::min(back.size(), name.size()) && back[back.size() - 1 - same] == name[name.size() - 1 - same])
      ++same;
    back = back.take_back(same);
  }
  size_t shortest = llvm::min_element(names, [](StringRef a, StringRef b) { return a.size() < b.size(); })->size();
  back = back.take_back(std::min(back.size(), shortest - std::min(front.size(), shortest)));
  return (front + "*" + back).str();
}

/// A parameter of references: nothing is read before a rank needs it.
Value Stacker::stackWeights(ArrayRef<Value> values) {
  SmallVector<Attribute> parts;
  SmallVector<StringRef> names;
  for (Value value : values) {
    auto param = symbols.lookup<ParamOp>(value.getDefiningOp<LoadOp>().getParam());
    if (!param || isStack(param))
      return {};
    parts.push_back(param.getValue());
    names.push_back(param.getSymName());
  }
  RankedTensorType type = getStackedType(values.front());
  if (type.getRank() < 2)
    return {};
  std::string name = makeStarred(names);
  Location loc = NameLoc::get(builder.getStringAttr(name));
  OpBuilder top(builder.getContext());
  auto param = ParamOp::create(top, loc, name, type, builder.getArrayAttr(parts), StringAttr());
  symbols.insert(param, symbols.getOp()->getRegion(0).front().begin());
  params.push_back(param);
  return note(LoadOp::create(builder, loc, type, param.getSymName()));
}

/// A wish for the stack, or for each of its parts: then the dim in front is open.
Value Stacker::stackPins(ArrayRef<Value> values) {
  auto first = values.front().getDefiningOp<spmd::PinOp>();
  auto load = map(llvm::map_to_vector(values, [](Value value) -> Value {
                return value.getDefiningOp<spmd::PinOp>().getInput();
              })).value;
  if (!load)
    return {};
  for (Value value : values)
    stackedPins.push_back(value.getDefiningOp<spmd::PinOp>());
  std::optional<spmd::WishAttr> wish = first.getWish();
  if (wish && wish->getSharding().getDims().size() == getShape(values.front()).size()) {
    spmd::ShardingAttr one = wish->getSharding();
    SmallVector<spmd::DimShardingAttr> dims{
        spmd::DimShardingAttr::get(builder.getContext(), {}, /*isOpen=*/true, /*priority=*/0)};
    llvm::append_range(dims, one.getDims());
    auto all = spmd::ShardingAttr::get(builder.getContext(), one.getMesh(), dims, one.getPartial(),
                                       one.getPartialKind(), one.getReplicated(), one.getUneven());
    wish = spmd::WishAttr::get(builder.getContext(), all, wish->getPlace(), wish->getPatternPlace());
  }
  auto name = builder.getStringAttr(load.getDefiningOp<LoadOp>().getParam());
  return note(spmd::PinOp::create(builder, first.getLoc(), load, name, wish.value_or(spmd::WishAttr())));
}

/// Small ones only: what an expert is called by, a bias that the importer keeps in the program.
Value Stacker::stackConstants(ArrayRef<Value> values) {
  constexpr int64_t kMostElements = 1 << 16;
  RankedTensorType type = getStackedType(values.front());
  if (type.getNumElements() > kMostElements)
    return {};
  SmallVector<Attribute> elements;
  for (Value value : values) {
    auto dense = dyn_cast<DenseElementsAttr>(value.getDefiningOp<ConstantOp>().getValue());
    if (!dense)
      return {};
    llvm::append_range(elements, dense.getValues<Attribute>());
  }
  Location loc = getInnerLoc(values.front().getLoc());
  return note(ConstantOp::create(builder, loc, DenseElementsAttr::get(type, elements)));
}

/// Slices that follow each other: the dim that they cut, taken apart, and its major part in front.
Value Stacker::stackSlices(ArrayRef<Value> values) {
  auto first = values.front().getDefiningOp<SliceOp>();
  std::optional<int64_t> moved = getMovedDim(first, values[1].getDefiningOp<SliceOp>());
  if (!moved)
    return {};
  int64_t dim = *moved, size = first.getSizes()[dim], start = first.getStarts()[dim];
  for (auto [index, value] : llvm::enumerate(values))
    if (value.getDefiningOp<SliceOp>().getStarts()[dim] != start + static_cast<int64_t>(index) * size)
      return {};
  SmallVector<int64_t> sizes(first.getSizes());
  sizes[dim] = count * size;
  Location loc = getInnerLoc(first.getLoc());
  Value whole = note(SliceOp::create(builder, loc, first.getInput(), first.getStarts(), sizes, first.getSteps()));
  sizes[dim] = size;
  sizes.insert(sizes.begin() + dim, count);
  SmallVector<int64_t> order{dim};
  for (int64_t i = 0, rank = sizes.size(); i < rank; ++i)
    if (i != dim)
      order.push_back(i);
  return note(TransposeOp::create(builder, loc, toShape(whole, sizes), order));
}

//===----------------------------------------------------------------------===//
// What is the same
//===----------------------------------------------------------------------===//

/// Dims one further behind.
static SmallVector<int64_t> moveBack(ArrayRef<int64_t> dims) {
  return llvm::map_to_vector(dims, [](int64_t dim) { return dim + 1; });
}

static SmallVector<int64_t> putInFront(int64_t number, ArrayRef<int64_t> numbers) {
  SmallVector<int64_t> result{number};
  llvm::append_range(result, numbers);
  return result;
}

Value Stacker::stackOps(Operation *first, ArrayRef<Mapped> operands) {
  Value input = operands.front().value;
  Location loc = getInnerLoc(first->getLoc());
  if (auto einsum = dyn_cast<EinsumOp>(first))
    return stackEinsum(einsum, operands);
  if (auto gather = dyn_cast<GatherOp>(first))
    return stackGather(gather, operands);
  if (auto dequantize = dyn_cast<DequantizeOp>(first))
    return stackDequantize(dequantize, operands);
  if (isa<ReshapeOp>(first))
    return toShape(input, getStackedType(first->getResult(0)).getShape());
  if (auto transpose = dyn_cast<TransposeOp>(first))
    return note(TransposeOp::create(builder, loc, input, putInFront(0, moveBack(transpose.getPermutation()))));
  if (auto reduce = dyn_cast<ReduceOp>(first))
    return note(
        ReduceOp::create(builder, loc, reduce.getKind(), input, moveBack(reduce.getDims()), reduce.getKeepDims()));
  if (auto slice = dyn_cast<SliceOp>(first))
    return note(SliceOp::create(builder, loc, input, putInFront(0, slice.getStarts()),
                                putInFront(count, slice.getSizes()), putInFront(1, slice.getSteps())));
  if (auto softmax = dyn_cast<SoftmaxOp>(first))
    return note(SoftmaxOp::create(builder, loc, input, softmax.getDim() + 1));
  return stackAligned(first, operands);
}

/// Numpy lines dims up at the end; the new one stands in front of all.
Value Stacker::stackAligned(Operation *first, ArrayRef<Mapped> operands) {
  size_t rank = getShape(first->getResult(0)).size();
  Values aligned;
  for (const Mapped &operand : operands) {
    aligned.push_back(operand.value);
    if (!operand.isStacked)
      continue;
    ArrayRef<int64_t> shape = getShape(operand.value);
    SmallVector<int64_t> wide(rank + 2 - shape.size(), 1);
    wide.front() = shape.front();
    llvm::append_range(wide, shape.drop_front());
    aligned.back() = toShape(operand.value, wide);
  }
  Operation *made = builder.clone(*first);
  created.push_back(made);
  made->setLoc(getInnerLoc(first->getLoc()));
  made->setOperands(aligned);
  made->getResult(0).setType(getStackedType(first->getResult(0)));
  return made->getResult(0);
}

/// What all share has no letter for the experts, so it is read once for all of them.
Value Stacker::stackEinsum(EinsumOp op, ArrayRef<Mapped> operands) {
  StringRef letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  size_t free = letters.find_if([&](char letter) { return !op.getEquation().contains(letter); });
  if (free == StringRef::npos)
    return {};
  EinsumTerms terms = *parseEinsum(op.getEquation());
  SmallVector<std::string> read;
  Values inputs;
  for (auto [term, operand] : llvm::zip_equal(terms.inputs, operands)) {
    read.push_back((operand.isStacked ? std::string(1, letters[free]) : "") + term.str());
    inputs.push_back(operand.value);
  }
  std::string equation = llvm::join(read, ",") + "->" + letters[free] + terms.result.str();
  return note(EinsumOp::create(builder, getInnerLoc(op.getLoc()), getStackedType(op.getResult()), inputs, equation));
}

/// Places of each expert in one table, or the same places in a table of each: not both, which would be a lookup with a
/// batch dim.
Value Stacker::stackGather(GatherOp op, ArrayRef<Mapped> operands) {
  const Mapped &table = operands[0], &places = operands[1];
  Location loc = getInnerLoc(op.getLoc());
  int64_t dim = op.getDim();
  if (table.isStacked && places.isStacked)
    return {};
  if (table.isStacked)
    return note(GatherOp::create(builder, loc, table.value, places.value, dim + 1));
  Value found = note(GatherOp::create(builder, loc, table.value, places.value, dim));
  if (dim == 0)
    return found;
  SmallVector<int64_t> order{dim};
  for (int64_t i = 0, rank = getShape(found).size(); i < rank; ++i)
    if (i != dim)
      order.push_back(i);
  return note(TransposeOp::create(builder, loc, found, order));
}

/// Each expert may have one scale, or those of its blocks; one for each of its rows or columns has no op.
Value Stacker::stackDequantize(DequantizeOp op, ArrayRef<Mapped> operands) {
  bool isByExpert = operands[1].isStacked;
  bool hasBlocks = op.getBlock() > 0;
  bool fits = hasBlocks ? isByExpert : !isByExpert || getShape(operands[1].value).size() == 1;
  if (!operands[0].isStacked || !fits || (operands.size() > 2 && operands[2].isStacked != isByExpert))
    return {};
  return note(DequantizeOp::create(builder, getInnerLoc(op.getLoc()), getStackedType(op.getResult()), operands[0].value,
                                   operands[1].value, operands.size() > 2 ? operands[2].value : Value(),
                                   isByExpert && !hasBlocks ? 0 : op.getDim() + 1, op.getBlock()));
}
