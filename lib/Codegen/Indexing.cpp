//===- Indexing.cpp - lowerings of gathers and scatters -------------------===//
//
// A gather is a point with an index that is evaluated. Scatters copy the input and apply the updates in order, in the
// compute type, and round once; sums of rows are sorted first (Host/SortedScatter.cpp).
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Indexing.h"
#include "Scatter.h"
#include "Tile.h"
#include "cleave/Codegen/Codegen.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Nn/IR/RowSums.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;
using Relation = ElementBuilder::Relation;

/// Lanes stay together along the dims behind the index.
static Value pullGather(Emitter &e, nn::GatherOp op, const Point &point) {
  int64_t dim = op.getDim(), rank = getShape(op.getIndices()).size();
  Point where(point.begin() + dim, point.begin() + dim + rank);
  if (!isUniform(where))
    return e.perLane(op.getResult(), point);
  Point source(point.begin(), point.begin() + dim);
  source.push_back({e.evalPlace(op.getIndices(), where, getShape(op.getInput())[dim])});
  source.append(point.begin() + dim + rank, point.end());
  return e.eval(op.getInput(), source);
}

static Value pullGatherElements(Emitter &e, nn::GatherElementsOp op, const Point &point) {
  if (!isUniform(point))
    return e.perLane(op.getResult(), point);
  Point source = point;
  source[op.getDim()] = {e.evalPlace(op.getIndices(), point, getShape(op.getInput())[op.getDim()])};
  return e.eval(op.getInput(), source);
}

Point cleave::codegen::pullTuple(Emitter &e, Value indices, const Point &tuple, ArrayRef<int64_t> shape,
                                 int64_t batchDims) {
  Point source(tuple.begin(), tuple.begin() + batchDims);
  for (int64_t i = 0; i < getShape(indices).back(); ++i) {
    Point at = tuple;
    at.push_back({e.places.number(i)});
    source.push_back({e.evalPlace(indices, at, shape[batchDims + i])});
  }
  return source;
}

static Value pullGatherNd(Emitter &e, nn::GatherNdOp op, const Point &point) {
  size_t tupleRank = getShape(op.getIndices()).size() - 1;
  Point tuple(point.begin(), point.begin() + tupleRank);
  if (!isUniform(tuple))
    return e.perLane(op.getResult(), point);
  Point source = pullTuple(e, op.getIndices(), tuple, getShape(op.getInput()), op.getBatchDims());
  source.append(point.begin() + tupleRank, point.end());
  return e.eval(op.getInput(), source);
}

/// Negative indices count from the end, those out of range meet no place.
static Value pullOneHot(Emitter &e, nn::OneHotOp op, const Point &point) {
  const Index &along = point[op.getDim()];
  if (!isUniform(point))
    return e.perLane(op.getResult(), point);
  Point at = point;
  at.erase(at.begin() + op.getDim());
  Type i64 = e.b.getI64Type();
  Value index = e.elements.convert(e.eval(op.getIndices(), at), getElementType(op.getIndices()), i64);
  Value depth = e.elements.integer(i64, op.getDepth());
  index = e.elements.select(e.elements.compare(Relation::Lt, index, 0.0), e.elements.add(index, depth), index);
  Value place = arith::IndexCastOp::create(e.b, e.loc, i64, along.base);
  Value isHot = e.elements.compare(Relation::Eq, index, place);
  return e.elements.select(isHot, e.eval(op.getValues(), {{e.places.number(1)}}),
                           e.eval(op.getValues(), {{e.places.number(0)}}));
}

//===----------------------------------------------------------------------===//
// Scatters
//===----------------------------------------------------------------------===//

Value cleave::codegen::joinUpdate(ElementBuilder &e, nn::ScatterKind kind, Value old, Value with, bool isUnsigned) {
  switch (kind) {
  case nn::ScatterKind::Set:
    return with;
  case nn::ScatterKind::Add:
    return e.add(old, with);
  case nn::ScatterKind::Mul:
    return e.mul(old, with);
  case nn::ScatterKind::Max:
    return e.extremum(true, old, with, isUnsigned);
  case nn::ScatterKind::Min:
    break;
  }
  return e.extremum(false, old, with, isUnsigned);
}

/// Whether two buffers begin elsewhere.
static Value areApart(Emitter &e, Value a, Value b) {
  auto getAddress = [&](Value buffer) { return memref::ExtractAlignedPointerAsIndexOp::create(e.b, e.loc, buffer); };
  return arith::CmpIOp::create(e.b, e.loc, arith::CmpIPredicate::ne, getAddress(a), getAddress(b));
}

void cleave::codegen::overVectors(Emitter &e, const Point &outer, ArrayRef<int64_t> shape, int64_t lanes,
                                  function_ref<void(const Point &)> body) {
  ArrayRef<int64_t> inner = shape.drop_front(outer.size());
  if (inner.empty())
    return body(outer);
  SmallVector<int64_t> lines(inner.drop_back());
  e.walk(lines, {}, [&](ArrayRef<Value> at, Values) {
    auto overLine = [&](Value from, int64_t active) {
      Point point = outer;
      for (Value place : at)
        point.push_back({place});
      point.push_back({from, lanes > 1});
      e.withLanes(lanes, active, [&] {
        body(point);
        return 0;
      });
    };
    int64_t whole = inner.back() / lanes * lanes;
    if (whole > 0)
      overBlocks(e, whole, lanes, [&](Value from, int64_t) { overLine(from, lanes); });
    if (inner.back() > whole)
      overLine(e.places.number(whole), inner.back() - whole);
    return Values();
  });
}

/// A copy of `input` in which the update at each point of `updates` meets what is at `getPlace(point)`, a point of the first dims of
/// `updates`: what lies behind these, if anything, is a slice that is updated as a whole, vector by vector.
static void scatter(Emitter &e, Value input, Value updates, nn::ScatterKind kind, Value result, int64_t outer,
                    function_ref<Point(const Point &)> getPlace) {
  ArrayRef<int64_t> shape = getShape(input), all = getShape(updates);
  Type element = getElementType(input), compute = ElementBuilder::getComputeType(element);
  bool isWide = compute != ElementBuilder::getHeldType(element) && kind != nn::ScatterKind::Set;
  Value sums = isWide ? e.allocate(compute, countElements(shape)) : result;
  Type kept = isWide ? compute : element;
  // As everywhere, four bytes a lane at least.
  unsigned bits = ElementBuilder::getStoredType(kept).getIntOrFloatBitWidth();
  int64_t lanes = e.getVectorLanes(e.b.getIntegerType(std::max(bits, 32u)));
  auto evalWide = [&](Value value, const Point &point) {
    Value number = e.eval(value, point);
    return isWide ? e.elements.widen(number) : number;
  };
  auto copy = [&] {
    overVectors(e, {}, shape, lanes,
                [&](const Point &point) { e.store(sums, evalWide(input, point), e.places.linearize(point, shape)); });
  };
  // In place what is not updated is there already.
  if (isa<BlockArgument>(input) && !isWide)
    e.when(areApart(e, e.getBuffer(input), result), copy);
  else
    copy();
  auto update = [&](const Point &from, const Point &to) {
    Index at = e.places.linearize(to, shape);
    Value with = evalWide(updates, from);
    if (kind != nn::ScatterKind::Set)
      with = joinUpdate(e.elements, kind, e.load(sums, kept, at), with, element.isUnsignedInteger());
    e.store(sums, with, at);
  };
  e.overAll(all.take_front(outer), [&](const Point &point) {
    // Of a slice the place is looked up once.
    Point place = getPlace(point);
    overVectors(e, point, all, lanes, [&](const Point &from) {
      Point to = place;
      to.append(from.begin() + outer, from.end());
      update(from, to);
    });
  });
  if (isWide)
    overVectors(e, {}, shape, lanes, [&](const Point &point) {
      Index at = e.places.linearize(point, shape);
      e.store(result, e.elements.narrow(e.load(sums, kept, at), element), at);
    });
}

/// Element by element: neighbors may go anywhere.
static void fillScatterElements(Emitter &e, nn::ScatterElementsOp op, ValueRange buffers) {
  int64_t rank = getShape(op.getUpdates()).size();
  scatter(e, op.getInput(), op.getUpdates(), op.getKind(), buffers[0], rank, [&](const Point &point) {
    Point at = point;
    at[op.getDim()] = {e.evalPlace(op.getIndices(), point, getShape(op.getInput())[op.getDim()])};
    return at;
  });
}

/// Slice by slice.
static void fillScatterNd(Emitter &e, nn::ScatterNdOp op, ValueRange buffers) {
  int64_t tupleRank = getShape(op.getIndices()).size() - 1;
  scatter(e, op.getInput(), op.getUpdates(), op.getKind(), buffers[0], tupleRank,
          [&](const Point &point) { return pullTuple(e, op.getIndices(), point, getShape(op.getInput()), 0); });
}

/// One element (or lanes of a slice) after all updates that meet it, in their order: what threads do of few updates, each for itself.
/// `meet(at)` says whether the update at position `at` of `extents` comes here, and where it lies among the updates.
static Value pullScatter(Emitter &e, Value input, Value updates, nn::ScatterKind kind, const Point &point,
                         ArrayRef<int64_t> extents, function_ref<std::pair<Value, Point>(ArrayRef<Value>)> meet) {
  Type element = getElementType(input), compute = ElementBuilder::getComputeType(element);
  bool isSet = kind == nn::ScatterKind::Set;
  auto widen = [&](Value value) { return isSet ? value : e.elements.widen(value); };
  Type type = e.withLanes(isSet ? ElementBuilder::getHeldType(element) : compute);
  Values all = e.walk(extents, {widen(e.eval(input, point))}, [&](ArrayRef<Value> at, Values old) {
    auto [isHere, from] = meet(at);
    Point source = from;
    auto change = [&] {
      Value with = widen(e.eval(updates, source));
      return isSet ? with : joinUpdate(e.elements, kind, old[0], with, element.isUnsignedInteger());
    };
    return Values{e.choose(isHere, type, change, [&] { return old[0]; })};
  });
  return e.elements.narrow(all[0], ElementBuilder::getHeldType(element));
}

/// Updates lie beside the element, in dims that may be shorter than the input's.
static Value pullScatterElements(Emitter &e, nn::ScatterElementsOp op, const Point &point) {
  if (!isUniform(point))
    return e.perLane(op.getResult(), point);
  int64_t dim = op.getDim();
  ArrayRef<int64_t> shape = getShape(op.getInput()), updates = getShape(op.getUpdates());
  PlaceBuilder &p = e.places;
  return pullScatter(e, op.getInput(), op.getUpdates(), op.getKind(), point, {updates[dim]}, [&](ArrayRef<Value> step) {
    Point at = point;
    at[dim] = {step[0]};
    Value isHere;
    for (int64_t other = 0; other < int64_t(shape.size()); ++other) {
      if (other == dim || shape[other] == updates[other])
        continue;
      Value isInside = p.isLess(at[other].base, updates[other]);
      isHere = isHere ? e.elements.both(isHere, isInside) : isInside;
      at[other].base = p.clamp(at[other].base, 0, std::max<int64_t>(updates[other] - 1, 0));
    }
    Value place = e.evalPlace(op.getIndices(), at, shape[dim]);
    Value isSame = arith::CmpIOp::create(e.b, e.loc, arith::CmpIPredicate::eq, place, point[dim].base);
    return std::make_pair(isHere ? e.elements.both(isHere, isSame) : isSame, at);
  });
}

/// Whole slices are updated; lanes within one stay together.
static Value pullScatterNd(Emitter &e, nn::ScatterNdOp op, const Point &point) {
  ArrayRef<int64_t> shape = getShape(op.getInput()), indices = getShape(op.getIndices());
  int64_t depth = indices.back();
  if (!isUniform(Point(point.begin(), point.begin() + depth)))
    return e.perLane(op.getResult(), point);
  ArrayRef<int64_t> tuples = indices.drop_back();
  return pullScatter(e, op.getInput(), op.getUpdates(), op.getKind(), point, tuples, [&](ArrayRef<Value> places) {
    Point at;
    for (Value place : places)
      at.push_back({place});
    Value isHere = e.elements.constant(e.b.getBoolAttr(true));
    for (auto [dim, index] : llvm::enumerate(pullTuple(e, op.getIndices(), at, shape, 0)))
      isHere = e.elements.both(
          isHere, arith::CmpIOp::create(e.b, e.loc, arith::CmpIPredicate::eq, index.base, point[dim].base));
    at.append(point.begin() + depth, point.end());
    return std::make_pair(isHere, at);
  });
}

//===----------------------------------------------------------------------===//
// What may be out of range
//===----------------------------------------------------------------------===//

/// How many places each component of the indices is for; none of an op whose indices may be anything.
static ArrayRef<int64_t> getExtents(nn::LookupOpInterface lookup) {
  auto along = [](auto op) { return getShape(op.getInput()).slice(op.getDim(), 1); };
  auto tuple = [](auto op, int64_t first) {
    return getShape(op.getInput()).slice(first, getShape(op.getIndices()).back());
  };
  return llvm::TypeSwitch<Operation *, ArrayRef<int64_t>>(lookup)
      .Case<nn::GatherOp, nn::GatherElementsOp, nn::ScatterElementsOp>(along)
      .Case([&](nn::GatherNdOp op) { return tuple(op, op.getBatchDims()); })
      .Case([&](nn::ScatterNdOp op) { return tuple(op, 0); })
      .Default(ArrayRef<int64_t>());
}

/// True if the numbers are known, and in range.
static bool areInside(Value indices, ArrayRef<int64_t> extents) {
  if (auto iota = indices.getDefiningOp<nn::IotaOp>(); iota && extents.size() == 1) {
    int64_t first = iota.getStart(), count = getShape(iota)[iota.getDim()];
    int64_t last = first + (count - 1) * iota.getStep();
    return count == 0 || (std::min(first, last) >= -extents[0] && std::max(first, last) < extents[0]);
  }
  auto constant = indices.getDefiningOp<nn::ConstantOp>();
  auto numbers = constant ? dyn_cast<DenseIntElementsAttr>(constant.getValue()) : nullptr;
  return numbers && llvm::all_of(llvm::enumerate(numbers.getValues<APInt>()), [&](auto item) {
           int64_t number = item.value().getSExtValue(), extent = extents[item.index() % extents.size()];
           return number >= -extent && number < extent;
         });
}

bool cleave::codegen::mayReport(Block &region) {
  return llvm::any_of(region, [](Operation &op) {
    auto lookup = dyn_cast<nn::LookupOpInterface>(op);
    ArrayRef<int64_t> extents = lookup ? getExtents(lookup) : ArrayRef<int64_t>();
    return !extents.empty() && !areInside(lookup.getIndices(), extents);
  });
}

void cleave::codegen::registerIndexing(LoweringTable &table) {
  table.addPull<nn::GatherOp>(pullGather);
  table.addPull<nn::GatherElementsOp>(pullGatherElements);
  table.addPull<nn::GatherNdOp>(pullGatherNd);
  table.addPull<nn::OneHotOp>(pullOneHot);
  table.addFill<nn::ScatterElementsOp>(fillScatterElements);
  table.addFill<nn::ScatterNdOp>(fillScatterNd);
  table.addPull<nn::ScatterElementsOp>(pullScatterElements);
  table.addPull<nn::ScatterNdOp>(pullScatterNd);
  table.addTile<nn::ScatterNdOp>({nn::sumsRows, runSortedScatter});
  table.addDeviceTile<nn::ScatterElementsOp>({canRunDeviceScatter, runDeviceScatter});
  table.addDeviceTile<nn::ScatterNdOp>({canRunDeviceScatter, runDeviceScatter});
}
