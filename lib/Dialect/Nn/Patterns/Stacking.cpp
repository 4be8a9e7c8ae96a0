//===- Stacking.cpp - values that are computed alike, as one --------------===//
//
// Each op that the values have in common is made once, over a dim more, in front, as the op says (`StackOpInterface`).
//
// Weights become one parameter of references to where they are. Slices that follow each other in one value are that
// value, its dim taken apart. What cannot be made leaves nothing behind.
//
//===----------------------------------------------------------------------===//
#include "Stacking.h"

#include "Matching.h"
#include "cleave/Dialect/Nn/IR/NodeLoc.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "cleave/Dialect/Nn/IR/Pieces.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;

//===----------------------------------------------------------------------===//
// What is alike
//===----------------------------------------------------------------------===//

bool cleave::nn::asksForStack(spmd::PinOp pin) {
  std::optional<spmd::AnnotationAttr> annotation = pin.getAnnotation();
  return annotation && annotation->getSharding().getDims().size() == getShape(pin.getInput()).size() + 1;
}

static bool isFullLoad(LoadOp load) { return !load.isPart() && !load.getSharding(); }

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

/// Convolutions and attention of experts have not been seen: they are left apart, and so is what an expert normalizes by itself.
static bool canBeStacked(Operation *op) { return op->hasTrait<Elementwise>() || isa<StackOpInterface>(op); }

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
    return isFullLoad(load) && isFullLoad(cast<LoadOp>(b));
  if (isa<ConstantOp>(a))
    return true;
  if (auto pin = dyn_cast<spmd::PinOp>(a)) {
    auto other = cast<spmd::PinOp>(b);
    return pin.getInput().getDefiningOp<LoadOp>() && pin.getAnnotation() == other.getAnnotation() &&
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
  for (Operation *op : llvm::reverse(f.created))
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

/// For what is made in place of `op`.
Composer &Stacker::at(Operation *op) { return f.at(getInnerLoc(op->getLoc())); }

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
  RankedTensorType type = getStackedType(values.front(), count);
  if (type.getRank() < 2)
    return {};
  std::string name = makeStarred(names);
  Location loc = NameLoc::get(builder.getStringAttr(name));
  OpBuilder top(builder.getContext());
  auto param = ParamOp::create(top, loc, name, type, builder.getArrayAttr(parts), StringAttr());
  symbols.insert(param, symbols.getOp()->getRegion(0).front().begin());
  params.push_back(param);
  auto load = LoadOp::create(builder, loc, type, param.getSymName());
  f.created.push_back(load);
  return load;
}

/// An annotation for the stack, or for each of its parts: then the dim in front is open.
Value Stacker::stackPins(ArrayRef<Value> values) {
  auto first = values.front().getDefiningOp<spmd::PinOp>();
  auto load = map(llvm::map_to_vector(values, [](Value value) -> Value {
                return value.getDefiningOp<spmd::PinOp>().getInput();
              })).value;
  if (!load)
    return {};
  for (Value value : values)
    stackedPins.push_back(value.getDefiningOp<spmd::PinOp>());
  std::optional<spmd::AnnotationAttr> annotation = first.getAnnotation();
  if (annotation && annotation->getSharding().getDims().size() == getShape(values.front()).size()) {
    spmd::ShardingAttr one = annotation->getSharding();
    SmallVector<spmd::DimShardingAttr> dims{
        spmd::DimShardingAttr::get(builder.getContext(), {}, /*isOpen=*/true, /*priority=*/0)};
    llvm::append_range(dims, one.getDims());
    auto all = spmd::ShardingAttr::get(builder.getContext(), one.getMesh(), dims, one.getPartial(),
                                       one.getPartialKind(), one.getReplicated(), one.getUneven());
    annotation =
        spmd::AnnotationAttr::get(builder.getContext(), all, annotation->getPlace(), annotation->getPatternPlace());
  }
  auto name = builder.getStringAttr(load.getDefiningOp<LoadOp>().getParam());
  auto pin = spmd::PinOp::create(builder, first.getLoc(), load, name, annotation.value_or(spmd::AnnotationAttr()));
  f.created.push_back(pin);
  return pin;
}

/// Small ones only: what an expert is called by, a bias that the importer keeps in the program.
Value Stacker::stackConstants(ArrayRef<Value> values) {
  constexpr int64_t kMostElements = 1 << 16;
  RankedTensorType type = getStackedType(values.front(), count);
  if (type.getNumElements() > kMostElements)
    return {};
  SmallVector<Attribute> elements;
  for (Value value : values) {
    auto dense = dyn_cast<DenseElementsAttr>(value.getDefiningOp<ConstantOp>().getValue());
    if (!dense)
      return {};
    llvm::append_range(elements, dense.getValues<Attribute>());
  }
  return at(values.front().getDefiningOp()).literal(DenseElementsAttr::get(type, elements));
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
  at(first);
  Value whole = f.slice(first.getInput(), first.getStarts(), sizes, first.getSteps());
  sizes[dim] = size;
  sizes.insert(sizes.begin() + dim, count);
  return f.moveDim(f.reshape(whole, sizes), dim, 0);
}

//===----------------------------------------------------------------------===//
// What is the same
//===----------------------------------------------------------------------===//

Value Stacker::stackOps(Operation *first, ArrayRef<Mapped> operands) {
  Values values = llvm::map_to_vector(operands, [](const Mapped &operand) { return operand.value; });
  auto isStacked = llvm::map_to_vector(operands, [](const Mapped &operand) { return operand.isStacked; });
  auto stackable = dyn_cast<StackOpInterface>(first);
  Composer &compose = at(first);
  return stackable ? stackable.stack(compose, values, isStacked, count)
                   : stackAligned(compose, first, values, isStacked, count);
}
