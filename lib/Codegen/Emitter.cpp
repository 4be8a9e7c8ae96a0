//===- Emitter.cpp - kernels by pulling -----------------------------------===//
//
// A value is looked up in memory, then in buffers, then computed by its op's lowering. Of a vector that hangs over the end
// of a row only the active lanes touch memory; the others hold anything.
//
//===----------------------------------------------------------------------===//
#include "Emitter.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace cleave::codegen;

/// Kernels are built into one block; its terminator stays where it is, and numbers stand at its head.
void Emitter::start(Block *block) {
  entry = block;
  elements.startAt(block);
  places.startAt(block);
  b.setInsertionPoint(block->getTerminator());
  memory.assign(1, {});
}

//===----------------------------------------------------------------------===//
// Lanes
//===----------------------------------------------------------------------===//

Type Emitter::withLanes(Type element) const { return lanes == 1 ? element : VectorType::get({lanes}, element); }

Value Emitter::splat(Value scalar) {
  return lanes == 1 ? scalar : Value(vector::BroadcastOp::create(b, loc, withLanes(scalar.getType()), scalar));
}

/// A part of a vector; a single lane is a scalar, for vectors of one element do not occur.
Value Emitter::takeLanes(Value vector, int64_t from, int64_t count) {
  if (count == 1)
    return vector::ExtractOp::create(b, loc, vector, from);
  return vector::ExtractStridedSliceOp::create(b, loc, vector, ArrayRef<int64_t>{from}, ArrayRef<int64_t>{count},
                                               ArrayRef<int64_t>{1});
}

Value Emitter::getActiveMask() {
  assert(active < lanes && "all lanes exist");
  SmallVector<bool> mask(lanes, false);
  std::fill_n(mask.begin(), active, true);
  return elements.constant(DenseElementsAttr::get(VectorType::get({lanes}, b.getI1Type()), mask));
}

Value Emitter::getLaneNumbers(int64_t step, Type type) {
  type = type ? type : b.getI64Type();
  if (lanes == 1)
    return elements.integer(type, 0);
  SmallVector<Attribute> numbers;
  for (int64_t lane = 0; lane < lanes; ++lane)
    numbers.push_back(b.getIntegerAttr(type, lane * step));
  return elements.constant(DenseElementsAttr::get(VectorType::get({lanes}, type), numbers));
}

/// As a tree, so that the order is the same for all widths that halve into it.
Value Emitter::acrossLanes(Value vector, function_ref<Value(Value, Value)> combine) {
  auto type = dyn_cast<VectorType>(vector.getType());
  for (int64_t half = type ? type.getNumElements() / 2 : 0; half > 0; half /= 2)
    vector = combine(takeLanes(vector, 0, half), takeLanes(vector, half, half));
  return vector;
}

Value Emitter::perLane(Type element, const Point &point, function_ref<Value(const Point &)> fn) {
  SmallVector<Value> each;
  for (int64_t lane = 0; lane < active; ++lane) {
    Point at;
    for (const Index &index : point)
      at.push_back({places.add(index.base, lane * index.lane)});
    each.push_back(asScalar([&] { return fn(at); }));
  }
  if (lanes == 1)
    return each.front();
  // Vectors of bf16 are put together from their bits.
  bool isBits = element.isBF16();
  for (Value &lane : each)
    lane = isBits ? elements.bitcast(lane, b.getI16Type()) : lane;
  each.resize(lanes, each.front());
  auto type = cast<VectorType>(withLanes(each.front().getType()));
  Value vector = vector::FromElementsOp::create(b, loc, type, each);
  return isBits ? elements.bitcast(vector, element) : vector;
}

Value Emitter::perLane(Value value, const Point &point) {
  return perLane(ElementBuilder::getHeldType(getElementType(value)), point,
                 [&](const Point &at) { return eval(value, at); });
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// Positions are equal if they are one value: numbers are made once, and loops hand one value to all that stand in them.
Emitter::Key Emitter::keyOf(Value value, const Point &point) const {
  Key key{intptr_t(value.getAsOpaquePointer()), lanes, active};
  for (const Index &index : point)
    key.insert(key.end(), {intptr_t(index.base.getAsOpaquePointer()), index.lane});
  return key;
}

/// What is the same in all lanes is computed once and spread.
Value Emitter::eval(Value value, const Point &point) {
  if (lanes > 1 && isUniform(point))
    return splat(evalScalar(value, point));
  Key key = keyOf(value, point);
  for (const auto &scope : llvm::reverse(memory))
    if (auto found = scope.find(key); found != scope.end())
      return found->second;
  Value result = compute(value, point);
  memory.back()[key] = result;
  return result;
}

Value Emitter::evalScalar(Value value, const Point &point) {
  return asScalar([&] { return eval(value, point); });
}

Value Emitter::toPlace(Value index) { return arith::IndexCastOp::create(b, loc, b.getIndexType(), index); }

/// One comparison, whose branch nobody takes. Any of several indices may be the one that is told.
void Emitter::reportOutside(Value index, int64_t extent) {
  Type type = index.getType();
  if (!report || isAsking || !llvm::isIntN(type.getIntOrFloatBitWidth(), extent))
    return;
  using Predicate = arith::CmpIPredicate;
  auto compare = [&](Predicate predicate, Value x, int64_t number) -> Value {
    return arith::CmpIOp::create(b, loc, predicate, x, elements.integer(type, number));
  };
  Value wrapped = arith::AddIOp::create(b, loc, index, elements.integer(type, extent));
  Value counted = arith::SelectOp::create(b, loc, compare(Predicate::slt, index, 0), wrapped, index);
  when(compare(Predicate::uge, counted, extent), [&] {
    Type i64 = b.getI64Type();
    Value wide = type == i64 ? index : Value(arith::ExtSIOp::create(b, loc, i64, index));
    // Threads may do so at once.
    auto put = [&](Value number, int64_t at) {
      memref::AtomicRMWOp::create(b, loc, arith::AtomicRMWKind::assign, number, report, places.number(at));
    };
    put(wide, 0);
    put(elements.integer(i64, extent + 1), 1);
  });
}

/// Nothing is read out of bounds, whatever the data say.
Value Emitter::evalPlace(Value value, const Point &point, int64_t extent) {
  Value index = evalScalar(value, point);
  reportOutside(index, extent);
  index = toPlace(index);
  index = places.select(places.isLess(index, 0), places.add(index, extent), index);
  return places.clamp(index, 0, extent - 1);
}

/// Where in its stored row a value's point lies, if it lies in the row that the template stands in.
std::optional<Index> Emitter::findInRow(Value value, const Point &point) {
  auto found = rows.find(value);
  if (found == rows.end() || !found->second.isFilled)
    return std::nullopt;
  const Row &row = found->second;
  for (size_t dim = 0; dim < point.size(); ++dim)
    if (int64_t(dim) != row.dim && (point[dim].base != row.row[dim].base || point[dim].lane != row.row[dim].lane))
      return std::nullopt;
  const Index &along = point[row.dim];
  if (row.lanes == 1)
    return along;
  if (lanes != row.lanes || active != row.active || along.lane != 0)
    return std::nullopt;
  return Index{places.mul(along.base, row.lanes), 1};
}

Value Emitter::compute(Value value, const Point &point) {
  Type element = getElementType(value);
  if (std::optional<Index> at = findInRow(value, point))
    return load(rows.find(value)->second.buffer, element, *at);
  if (auto found = buffers.find(value); found != buffers.end())
    return load(found->second, element, places.linearize(point, getShape(value)));
  Operation *op = value.getDefiningOp();
  const Lowering *lowering = getLowerings().find(op);
  if (lowering->element)
    return computeElements(op, lowering->element, point);
  if (lowering->fold)
    return reduceAlone(op, *lowering->fold, point);
  return lowering->pull(*this, op, point);
}

Point Emitter::broadcast(const Point &point, ArrayRef<int64_t> from) {
  Point at(point.end() - from.size(), point.end());
  for (auto [index, extent] : llvm::zip_equal(at, from))
    if (extent == 1)
      index = {places.number(0)};
  return at;
}

/// Widens, computes, rounds once: what the evaluator does with an op.
Value Emitter::computeElements(Operation *op, const ElementLowering &lowering, const Point &point) {
  SmallVector<Value> operands;
  // What is not broadcast is wanted at just this point: its elements may be known there and nowhere else.
  for (Value operand : op->getOperands())
    operands.push_back(elements.widen(
        eval(operand, getShape(operand) == getShape(op->getResult(0)) ? point : broadcast(point, getShape(operand)))));
  return elements.narrow(lowering(elements, op, operands),
                         ElementBuilder::getHeldType(getElementType(op->getResult(0))));
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value Emitter::loadStrided(Value buffer, Index at) {
  SmallVector<Value> each;
  for (int64_t lane = 0; lane < active; ++lane)
    each.push_back(memref::LoadOp::create(b, loc, buffer, places.add(at.base, lane * at.lane)));
  each.resize(lanes, each.front());
  auto type = cast<VectorType>(withLanes(each.front().getType()));
  return vector::FromElementsOp::create(b, loc, type, each);
}

Value Emitter::loadVector(Value buffer, Value at) {
  Type stored = cast<MemRefType>(buffer.getType()).getElementType();
  return vector::LoadOp::create(b, loc, cast<VectorType>(withLanes(stored)), buffer, at);
}
void Emitter::storeVector(Value buffer, Value value, Value at) { vector::StoreOp::create(b, loc, value, buffer, at); }

/// Bools are bytes in memory.
Value Emitter::load(Value buffer, Type element, Index at) {
  Type stored = cast<MemRefType>(buffer.getType()).getElementType();
  Value value;
  if (isAsking) {
    if (isLarge(buffer))
      memref::PrefetchOp::create(b, loc, buffer, at.base, /*isWrite=*/false, kFirstCache, /*isDataCache=*/true);
    return elements.number(withLanes(ElementBuilder::getHeldType(element)), 0);
  }
  if (lanes == 1) {
    value = memref::LoadOp::create(b, loc, buffer, at.base);
  } else if (at.lane != 1) {
    value = loadStrided(buffer, at);
  } else if (active == lanes) {
    value = loadVector(buffer, at.base);
  } else {
    auto type = cast<VectorType>(withLanes(stored));
    value = vector::MaskedLoadOp::create(b, loc, type, buffer, at.base, getActiveMask(), elements.number(type, 0));
  }
  if (element.isInteger(1))
    return elements.compare(ElementBuilder::Relation::Ne, value, 0.0);
  return element.isBF16() ? elements.bitcast(value, element) : value;
}

/// As load, the other way; of lanes apart only the active ones.
void Emitter::store(Value buffer, Value value, Index at) {
  if (isAsking)
    return;
  Type stored = cast<MemRefType>(buffer.getType()).getElementType();
  if (getElementTypeOrSelf(value).isBF16())
    value = elements.bitcast(value, stored);
  if (getElementTypeOrSelf(value) != stored)
    value = arith::ExtUIOp::create(b, loc, withLanes(stored), value);
  if (lanes == 1)
    return void(memref::StoreOp::create(b, loc, value, buffer, at.base));
  if (at.lane != 1) {
    for (int64_t lane = 0; lane < active; ++lane)
      memref::StoreOp::create(b, loc, vector::ExtractOp::create(b, loc, value, lane), buffer,
                              places.add(at.base, lane * at.lane));
    return;
  }
  if (active == lanes)
    return storeVector(buffer, value, at.base);
  vector::MaskedStoreOp::create(b, loc, buffer, at.base, getActiveMask(), value);
}

void Emitter::ask(function_ref<void()> body) {
  isAsking = true;
  scoped([&] {
    body();
    return 0;
  });
  isAsking = false;
}

/// A part of the second cache.
bool Emitter::isLarge(Value buffer) {
  auto type = cast<MemRefType>(buffer.getType());
  return isa<BlockArgument>(buffer) && type.getNumElements() * type.getElementTypeBitWidth() / 8 > 256 << 10;
}

void Emitter::storeInRow(Value value, const Point &point, Value element) {
  const Row &row = rows.find(value)->second;
  const Index &along = point[row.dim];
  store(row.buffer, element, row.lanes == 1 ? along : Index{places.mul(along.base, row.lanes), 1});
}

/// On the stack where small, else from the C library. Between guards all of it is allocated, and nothing is left free in front or behind
/// for an alignment, as a byte outside would be in there.
Value Emitter::allocate(Type element, int64_t count) {
  constexpr int64_t maxOnStack = int64_t{16} << 10;
  bool isGuarded = getHost().guardsScratch();
  OpBuilder::InsertionGuard guard(b);
  auto type = MemRefType::get({count}, element);
  IntegerAttr alignment = isGuarded ? IntegerAttr() : b.getI64IntegerAttr(64);
  b.setInsertionPointToStart(entry);
  if (count <= maxOnStack && !isGuarded)
    return memref::AllocaOp::create(b, loc, type, alignment);
  allocated.push_back(memref::AllocOp::create(b, loc, type, alignment));
  return allocated.back();
}

/// Only when all is built, since what is built goes to the end of the kernel.
void Emitter::finish() {
  b.setInsertionPoint(entry->getTerminator());
  for (Value buffer : allocated)
    memref::DeallocOp::create(b, loc, buffer);
}

/// Private to the module; one table where the same numbers are wanted twice.
Value Emitter::makeTable(DenseElementsAttr numbers) {
  Value &made = tables[numbers];
  if (made)
    return made;
  Operation *module = entry->getParentOp()->getParentWithTrait<OpTrait::SymbolTable>();
  auto kernel = cast<SymbolOpInterface>(entry->getParentOp()).getName();
  auto type = MemRefType::get({numbers.getNumElements()}, numbers.getElementType(), MemRefLayoutAttrInterface{},
                              getTableSpace());
  numbers = numbers.reshape(RankedTensorType::get(type.getShape(), type.getElementType()));
  std::string name;
  for (unsigned count = 0; name.empty() || SymbolTable::lookupSymbolIn(module, name); ++count)
    name = (kernel + "_table" + Twine(count)).str();
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&module->getRegion(0).front());
  memref::GlobalOp::create(b, loc, name, b.getStringAttr("private"), type, numbers, /*constant=*/true,
                           /*alignment=*/b.getI64IntegerAttr(64));
  b.setInsertionPointToStart(entry);
  return made = memref::GetGlobalOp::create(b, loc, type, name);
}

//===----------------------------------------------------------------------===//
// Control
//===----------------------------------------------------------------------===//

/// What the body evaluates is forgotten behind the loop: its values do not exist there.
Values Emitter::loop(Value from, Value to, int64_t step, Values init, function_ref<Values(Value, Values)> body) {
  auto op = scf::ForOp::create(b, loc, from, to, places.number(step), init);
  OpBuilder::InsertionGuard guard(b);
  if (init.empty())
    b.setInsertionPoint(op.getBody()->getTerminator());
  else
    b.setInsertionPointToEnd(op.getBody());
  Values next = scoped([&] { return body(op.getInductionVar(), Values(op.getRegionIterArgs())); });
  if (!init.empty())
    scf::YieldOp::create(b, loc, next);
  return Values(op.getResults());
}

/// A single round needs no loop, and what it evaluates stays known.
Values Emitter::loop(int64_t count, Values init, function_ref<Values(Value, Values)> body) {
  if (count == 0)
    return init;
  if (count == 1)
    return body(places.number(0), init);
  return loop(places.number(0), places.number(count), 1, init, body);
}

void Emitter::loop(int64_t count, function_ref<void(Value)> body) {
  loop(count, {}, [&](Value position, Values) {
    body(position);
    return Values();
  });
}

/// A nest of loops, with values carried through all of them.
Values Emitter::walk(ArrayRef<int64_t> extents, Values init, function_ref<Values(ArrayRef<Value>, Values)> body) {
  SmallVector<Value> at;
  std::function<Values(Values)> nest = [&](Values carried) -> Values {
    if (at.size() == extents.size())
      return body(at, carried);
    return loop(extents[at.size()], carried, [&](Value position, Values inner) {
      at.push_back(position);
      Values next = nest(inner);
      at.pop_back();
      return next;
    });
  };
  return nest(init);
}

void Emitter::forAll(ArrayRef<int64_t> extents, function_ref<void(const Point &)> body) { overAll(extents, body); }

void Emitter::overAll(ArrayRef<int64_t> shape, function_ref<void(const Point &)> body) {
  walk(shape, {}, [&](ArrayRef<Value> at, Values) {
    Point point;
    for (Value place : at)
      point.push_back({place});
    body(point);
    return Values();
  });
}

void Emitter::when(Value condition, function_ref<void()> body) {
  auto op = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(op.thenBlock());
  scoped([&] {
    body();
    return 0;
  });
}

void Emitter::unless(Value condition, function_ref<void()> body) {
  Value yes = arith::ConstantIntOp::create(b, loc, 1, 1);
  when(arith::XOrIOp::create(b, loc, condition, yes), body);
}

Value Emitter::choose(Value condition, Type type, function_ref<Value()> yes, function_ref<Value()> no) {
  auto op = scf::IfOp::create(b, loc, type, condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(op.thenBlock());
  scf::YieldOp::create(b, loc, scoped(yes));
  b.setInsertionPointToStart(op.elseBlock());
  scf::YieldOp::create(b, loc, scoped(no));
  return op.getResult(0);
}

Value Emitter::reduceAlone(Operation *op, const FoldLowering &fold, const Point &point) {
  Value operand = op->getOperand(0);
  ArrayRef<int64_t> shape = getShape(operand);
  SmallVector<int64_t> dims = fold.getDims(op), extents;
  for (int64_t dim : dims)
    extents.push_back(shape[dim]);
  bool keeps = getShape(op->getResult(0)).size() == shape.size();
  Values sum = walk(extents, fold.identity(*this, op), [&](ArrayRef<Value> reduced, Values carried) {
    Point at;
    for (size_t dim = 0, kept = 0; dim < shape.size(); ++dim) {
      const int64_t *found = llvm::find(dims, int64_t(dim));
      if (found == dims.end())
        at.push_back(point[kept++]);
      else {
        at.push_back({reduced[found - dims.begin()]});
        kept += keeps;
      }
    }
    Index place{dims.size() == 1 ? reduced[0] : Value()};
    return fold.combine(*this, op, carried, fold.lift(*this, op, eval(operand, at), place));
  });
  return fold.finish(*this, op, sum);
}
