//===- Kernel.cpp - templates of kernels for the host ---------------------===//
//
// One thread, vectors of the processor's width, the last of a row with the lanes that exist. Two templates:
//
//   map   every result element by itself, in loops over the result's dims
//   row   rows along a dim that is reduced: a sweep over the row for each reduction, then one that stores
//
//          S = [outer.., row]      lanes run along the row, and meet at the end of a reduction
//          S = [outer.., row, n]   lanes run along n: a row per lane, nothing meets
//
// Short rows are swept without a loop, so that what one sweep has evaluated the next one finds in registers. Of long ones
// what was computed, and is needed again, is kept in a buffer of one row.
//
//===----------------------------------------------------------------------===//
#include "../Emitter.h"
#include "../Expand.h"
#include "../Results.h"
#include "../Schedule.h"
#include "../View.h"
#include "Turn.h"
#include "cleave/Codegen/Codegen.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;

namespace {

class HostKernel {
public:
  HostKernel(func::FuncOp region, const HostTarget &target)
      : region(region), target(target), schedule(region), rows(schedule.rows),
        e(region.getContext(), region.getLoc(), target), store(e) {}
  void emit(StringRef name, ModuleOp kernels, bool reports);

private:
  void makeFunction(StringRef name, ModuleOp kernels, bool reports);
  int64_t getWidth();
  /// Calls `body` in a loop over vectors of a row of `extent` elements, with lanes set.
  void overVectors(int64_t extent, function_ref<void(Index)> body);
  void overDims(ArrayRef<int64_t> shape, size_t dim, int64_t skip, Point &point, function_ref<void()> body);

  void fill();
  void runAnchor();
  void map(ArrayRef<Result> results);
  void mapPieces(nn::ConcatOp op, Value buffer);

  // Rows.
  int64_t countTogether(ArrayRef<Result> wanted);
  void overRows(ArrayRef<Result> wanted);
  void sweep(ArrayRef<Result> wanted);
  void materialize(Operation *op, const FoldLowering &fold, Value buffer);
  void reduceTogether(Operation *op, const FoldLowering &fold);
  void keepRow(Value value);
  Values acrossLanes(Operation *op, const FoldLowering &fold, Values vectors);
  using Body = function_ref<Values(Point, Values)>;
  Values overRow(int64_t ways, function_ref<Values()> init, function_ref<Values(Values, Values)> join, Body body);
  Point pointAt(Value position, int64_t lane);

  func::FuncOp region;
  const HostTarget &target;
  Schedule schedule;
  Rows rows;   ///< those that the kernel walks
  Point stand; ///< where it stands in their other dims
  Emitter e;
  ResultStore store;
  SmallVector<Result> results;
  int64_t width = 1;
  bool isAlongLanes() const { return rows.dim + 1 == int64_t(rows.shape.size()); }
};

} // namespace

/// Straight code for so many vectors a row.
static constexpr int64_t kMostUnrolledVectors = 8;
/// Independent sums, so that one addition need not wait for the one before.
static constexpr int64_t kWays = 4;
/// So many elements are added to one sum, then the sums: each addition rounds by what is there already.
static constexpr int64_t kMostInOne = 64;

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

/// All elements in one row.
static MemRefType flatten(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return MemRefType::get({tensor.getNumElements()}, ElementBuilder::getStoredType(tensor.getElementType()));
}

/// The function around it all, with a buffer for each argument and result.
void HostKernel::makeFunction(StringRef name, ModuleOp kernels, bool reports) {
  Operation *end = region.front().getTerminator();
  SmallVector<Type> types;
  for (Type type : region.getArgumentTypes())
    types.push_back(flatten(type));
  for (Type type : end->getOperandTypes())
    types.push_back(flatten(type));
  if (reports)
    types.push_back(getReportType(region.getContext()));
  e.b.setInsertionPointToEnd(kernels.getBody());
  auto func = func::FuncOp::create(e.b, e.loc, name, e.b.getFunctionType(types, {}));
  Block *body = func.addEntryBlock();
  e.b.setInsertionPointToEnd(body);
  func::ReturnOp::create(e.b, e.loc);
  e.start(body);
  unsigned count = region.getNumArguments();
  for (auto [argument, buffer] : llvm::zip(region.getArguments(), body->getArguments()))
    e.bind(argument, buffer);
  auto buffers = body->getArguments().drop_front(count);
  if (reports)
    e.reportTo(buffers.back());
  for (auto [value, buffer] : llvm::zip_equal(schedule.results, reports ? buffers.drop_back() : buffers))
    results.push_back({value, buffer});
}

/// As many lanes as the smallest elements fill a register with, counting four bytes at least.
int64_t HostKernel::getWidth() {
  int64_t least = 8;
  auto note = [&](Type type) {
    unsigned bits = cast<RankedTensorType>(type).getElementTypeBitWidth();
    least = std::min<int64_t>(least, std::max<int64_t>(bits / 8, 4));
  };
  llvm::for_each(region.getArgumentTypes(), note);
  for (Operation &op : region.front())
    llvm::for_each(op.getResultTypes(), note);
  return target.getVectorBytes() / least;
}

void HostKernel::emit(StringRef name, ModuleOp kernels, bool reports) {
  makeFunction(name, kernels, reports);
  width = getWidth();
  fill();
  if (schedule.anchor)
    runAnchor();
  if (!rows.swept.empty() && !results.empty()) {
    overRows(results);
    results.clear();
  }
  // Results of one shape share their loops.
  while (!results.empty()) {
    ArrayRef<int64_t> first = getShape(results.front().value);
    auto hasShape = [&](const Result &result) { return getShape(result.value) == first; };
    map(llvm::to_vector(llvm::make_filter_range(results, hasShape)));
    llvm::erase_if(results, hasShape);
  }
  e.finish();
}

/// Whole vectors in a loop, then one with the lanes that are left.
void HostKernel::overVectors(int64_t extent, function_ref<void(Index)> body) {
  auto call = [&](Index index, int64_t lanes, int64_t active) {
    e.withLanes(lanes, active, [&] {
      body(index);
      return 0;
    });
  };
  if (extent == 1 || width == 1)
    return e.loop(extent, [&](Value position) { call({position}, 1, 1); });
  int64_t whole = extent / width * width;
  if (whole == width)
    call({e.places.number(0), 1}, width, width);
  else if (whole > 0)
    e.loop(e.places.number(0), e.places.number(whole), width, {}, [&](Value position, Values) {
      call({position, 1}, width, width);
      return Values();
    });
  if (extent > whole)
    call({e.places.number(whole), 1}, width, extent - whole);
}

/// Loops over the dims from `dim` on but `skip`, the last one by vectors, filling in `point`. A negative `skip` is none of them.
void HostKernel::overDims(ArrayRef<int64_t> extents, size_t dim, int64_t skip, Point &point,
                          function_ref<void()> body) {
  if (dim == extents.size())
    return body();
  auto next = [&](Index index) {
    point.push_back(index);
    overDims(extents, dim + 1, skip, point, body);
    point.pop_back();
  };
  // Vectors are along the last dim that has more than one element: parts of a concat that are one wide, say.
  auto isOneFrom = [&](size_t first) {
    return skip < 0 && llvm::all_of(extents.drop_front(first), [](int64_t extent) { return extent == 1; });
  };
  if (int64_t(dim) == skip || (dim > 0 && isOneFrom(dim)))
    return next({e.places.number(0)});
  if (dim + 1 == extents.size() || isOneFrom(dim + 1))
    return overVectors(extents[dim], next);
  e.loop(extents[dim], [&](Value position) { next({position}); });
}

//===----------------------------------------------------------------------===//
// Fill, map
//===----------------------------------------------------------------------===//

/// A reduction alone, row by row.
void HostKernel::materialize(Operation *op, const FoldLowering &fold, Value buffer) {
  rows = {{op}, SmallVector<int64_t>(getShape(op->getOperand(0))), fold.getDims(op).front()};
  overRows(Result{op->getResult(0), buffer});
  rows = schedule.rows;
}

/// In the order of the program.
void HostKernel::fill() {
  for (Operation *op : schedule.filled) {
    const Lowering *lowering = getLowerings().find(op);
    SmallVector<Value> buffers;
    for (Value value : op->getResults()) {
      auto found = llvm::find_if(results, [&](const Result &result) { return result.value == value; });
      buffers.push_back(found == results.end()
                            ? e.allocate(flatten(value.getType()).getElementType(), countElements(getShape(value)))
                            : found->buffer);
    }
    if (lowering->isTiled(op))
      lowering->tile->run(e, op, [&](const Point &point, Value value) {
        e.store(buffers.front(), value, e.places.linearize(point, getShape(op->getResult(0))));
      });
    else if (lowering->fill)
      lowering->fill(e, op, buffers);
    else if (lowering->fold && lowering->fold->getDims(op).size() == 1)
      materialize(op, *lowering->fold, buffers.front());
    else
      map({Result{op->getResult(0), buffers.front()}});
    for (auto [value, buffer] : llvm::zip_equal(op->getResults(), buffers))
      e.bind(value, buffer);
    llvm::erase_if(results, [&](const Result &result) { return llvm::is_contained(buffers, result.buffer); });
  }
}

/// What is computed of a block is stored when the block is there.
void HostKernel::runAnchor() {
  auto isAnchored = [&](const Result &result) { return schedule.anchor.has(result.value); };
  SmallVector<Result> group(llvm::make_filter_range(results, isAnchored));
  Operation *op = schedule.anchor.op;
  store.runAnchor(schedule.anchor, group, [&](TileSink sink) { getLowerings().find(op)->tile->run(e, op, sink); });
  llvm::erase_if(results, isAnchored);
}

/// A transpose behind `value`, perhaps with some dims as one, that is stored square by square; null if there is none.
static nn::TransposeOp findTurned(Value value, int64_t width) {
  Value moved = value;
  while (auto reshape = moved.getDefiningOp<nn::ReshapeOp>())
    moved = reshape.getInput();
  auto op = moved.getDefiningOp<nn::TransposeOp>();
  bool isMerged = llvm::all_of(matchDims(getShape(moved), getShape(value)),
                               [](const DimGroup &group) { return group.toEnd - group.to == 1; });
  return op && isMerged && canTurn(op, width) ? op : nn::TransposeOp();
}

/// Each operand by itself, in vectors along its own rows. Of parts of a line (what is in windows, one number a tap) all are
/// stored of a row before the next row: each by itself would bring the whole result into the first cache once for each operand.
void HostKernel::mapPieces(nn::ConcatOp op, Value buffer) {
  int64_t start = 0, dim = op.getDim();
  constexpr int64_t lineBytes = 64;
  auto placeOf = [&](Point to) {
    to[dim].base = e.places.add(to[dim].base, start);
    return e.places.linearize(to, getShape(op));
  };
  auto isPartOfLine = [&](Value operand) {
    int64_t bytes = flatten(operand.getType()).getElementTypeBitWidth() / 8;
    return countElements(getShape(operand).drop_front(dim)) * bytes < lineBytes && !findTurned(operand, width);
  };
  size_t outer = dim > 1 && llvm::all_of(op.getInputs(), isPartOfLine) ? dim - 1 : 0;
  e.walk(getShape(op).take_front(outer), {}, [&](ArrayRef<Value> at, Values) {
    start = 0;
    for (Value operand : op.getInputs()) {
      Point point = llvm::map_to_vector<4>(at, [](Value place) { return Index{place}; });
      if (nn::TransposeOp turned = findTurned(operand, width))
        turn(e, turned, width, buffer,
             [&](const Point &to) { return placeOf(*reshapePoint(e, to, getShape(turned), getShape(operand))); });
      else
        overDims(getShape(operand), outer, -1, point, [&] { e.store(buffer, e.eval(operand, point), placeOf(point)); });
      start += getShape(operand)[dim];
    }
    return Values();
  });
}

void HostKernel::map(ArrayRef<Result> group) {
  Operation *op = group.size() == 1 ? group.front().value.getDefiningOp() : nullptr;
  if (auto concat = dyn_cast_if_present<nn::ConcatOp>(op))
    return mapPieces(concat, group.front().buffer);
  if (auto transpose = dyn_cast_if_present<nn::TransposeOp>(op); transpose && canTurn(transpose, width))
    return turn(e, transpose, width, group.front().buffer,
                [&](const Point &at) { return e.places.linearize(at, getShape(transpose)); });
  Point point;
  overDims(getShape(group.front().value), 0, -1, point,
           [&] { store.storeAll(group, [&](const Result &) { return point; }); });
}

//===----------------------------------------------------------------------===//
// Row
//===----------------------------------------------------------------------===//

/// Rows side by side begin where one vector's end: of a long row each step is on another line, and often on another page, of
/// which a vector of rows reads a quarter or less. More vectors at once read more of it, as long as all sums stay in registers.
/// Each row's sum is what it was.
int64_t HostKernel::countTogether(ArrayRef<Result> wanted) {
  int64_t extent = rows.shape.back(), length = rows.shape[rows.dim];
  // Of each step what is in memory is loaded, and some arithmetic done; what is there once a row does not matter.
  std::function<bool(Value)> isCheap = [&](Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || e.getBuffer(value) || countElements(getShape(value)) < countElements(rows.shape))
      return true;
    bool isArithmetic = op->hasTrait<nn::OneInstruction>() || isa<nn::ReshapeOp, nn::BroadcastOp>(op);
    return isArithmetic && llvm::all_of(op->getOperands(), isCheap);
  };
  bool isAllCheap = llvm::all_of(wanted, [&](const Result &result) { return isCheap(result.value); }) &&
                    llvm::all_of(rows.swept, [&](Operation *op) { return isCheap(op->getOperand(0)); });
  if (isAlongLanes() || length <= kMostUnrolledVectors || !isAllCheap)
    return 1;
  int64_t most = e.getNumRegisters() / 2 / (kWays * int64_t(rows.swept.size())), count = 1;
  while (2 * count <= most && 2 * count * width <= extent)
    count *= 2;
  return count;
}

void HostKernel::overRows(ArrayRef<Result> wanted) {
  int64_t together = countTogether(wanted);
  width *= together;
  overDims(rows.shape, 0, rows.dim, stand, [&] { sweep(wanted); });
  width /= together;
}

/// One row (or as many as there are lanes): its reductions in the order of the program, for one may need another; the results
/// that are rows; results of one element. All are evaluated before any is stored.
void HostKernel::sweep(ArrayRef<Result> wanted) {
  for (Operation *op : rows.swept)
    reduceTogether(op, *getLowerings().find(op)->fold);
  SmallVector<Result> whole, single;
  for (const Result &result : wanted) {
    bool isFull = getShape(result.value) == ArrayRef(rows.shape) && rows.shape[rows.dim] != 1;
    (isFull ? whole : single).push_back(result);
  }
  if (!whole.empty())
    overRow(
        1, [] { return Values(); }, [](Values, Values) { return Values(); },
        [&](Point point, Values) {
          store.storeAll(whole, [&](const Result &) { return point; });
          return Values();
        });
  store.storeAll(single, [&](const Result &result) {
    Point point = stand;
    if (getShape(result.value).size() < rows.shape.size())
      point.erase(point.begin() + rows.dim);
    return point;
  });
  e.rows.clear();
}

Point HostKernel::pointAt(Value position, int64_t lane) {
  Point point = stand;
  point[rows.dim] = {position, lane};
  return point;
}

/// Calls `body` for all of the row, with carried values in up to `ways` independent sets, which `join` brings together.
Values HostKernel::overRow(int64_t ways, function_ref<Values()> init, function_ref<Values(Values, Values)> join,
                           Body body) {
  int64_t lanes = isAlongLanes() ? width : 1, extent = rows.shape[rows.dim], whole = extent / lanes;
  auto at = [&](Value position, Values carried) {
    auto call = [&] { return body(pointAt(position, lanes > 1), carried); };
    return isAlongLanes() ? e.withLanes(lanes, lanes, call) : call();
  };
  SmallVector<Values> sums;
  for (int64_t way = 0; way < ways; ++way)
    sums.push_back(init());
  size_t count = sums.front().size();
  auto getWay = [&](const Values &all, int64_t way) { return Values(ArrayRef(all).slice(way * count, count)); };
  auto joinWays = [&](const Values &x, const Values &y) {
    return isAlongLanes() ? e.withLanes(lanes, lanes, [&] { return join(x, y); }) : join(x, y);
  };
  int64_t done = 0;
  if (whole > kMostUnrolledVectors) {
    done = whole / ways * ways;
    Values flat;
    for (const Values &sum : sums)
      llvm::append_range(flat, sum);
    auto over = [&](Value from, Value to, Values carried) {
      return e.loop(from, to, ways * lanes, carried, [&](Value position, Values each) {
        Values next;
        for (int64_t way = 0; way < ways; ++way)
          llvm::append_range(next, at(e.places.add(position, way * lanes), getWay(each, way)));
        return next;
      });
    };
    int64_t block = kMostInOne * ways * lanes, blocks = count == 0 ? 0 : done * lanes / block;
    // Of one block there is nothing to add up.
    blocks = blocks > 1 ? blocks : 0;
    if (blocks > 0)
      flat = e.loop(e.places.number(0), e.places.number(blocks * block), block, flat, [&](Value start, Values all) {
        Values own, next;
        for (int64_t way = 0; way < ways; ++way)
          llvm::append_range(own, init());
        own = over(start, e.places.add(start, block), own);
        for (int64_t way = 0; way < ways; ++way)
          llvm::append_range(next, joinWays(getWay(all, way), getWay(own, way)));
        return next;
      });
    if (blocks * block < done * lanes)
      flat = over(e.places.number(blocks * block), e.places.number(done * lanes), flat);
    for (int64_t way = 0; way < ways; ++way)
      sums[way] = getWay(flat, way);
  }
  for (; done < whole; ++done)
    sums[done % ways] = at(e.places.number(done * lanes), sums[done % ways]);
  if (int64_t rest = extent - whole * lanes)
    sums[0] = e.withLanes(lanes, rest, [&] { return body(pointAt(e.places.number(whole * lanes), 1), sums[0]); });
  Values sum = sums.front();
  for (int64_t way = 1; way < ways; ++way)
    sum = joinWays(sum, sums[way]);
  return sum;
}

/// Lanes as a tree, in a fixed order.
Values HostKernel::acrossLanes(Operation *op, const FoldLowering &fold, Values vectors) {
  for (int64_t half = width / 2; half > 0; half /= 2) {
    auto part = [&](int64_t from) {
      Values values;
      for (Value vector : vectors)
        values.push_back(e.takeLanes(vector, from, half));
      return values;
    };
    Values low = part(0), high = part(half);
    vectors = e.withLanes(half, half, [&] { return fold.combine(e, op, low, high); });
  }
  return vectors;
}

/// Keeps the row of a computed value that other ops need too, where the row is too long for registers.
void HostKernel::keepRow(Value value) {
  int64_t lanes = isAlongLanes() ? 1 : e.getLanes(), vectors = rows.shape[rows.dim] / (isAlongLanes() ? width : 1);
  constexpr int64_t maxKept = int64_t{256} << 10;
  if (vectors <= kMostUnrolledVectors || isa<BlockArgument>(value) || value.hasOneUse() || e.rows.contains(value) ||
      getElementType(value).isInteger(1) || rows.shape[rows.dim] * lanes > maxKept)
    return;
  Type element = flatten(value.getType()).getElementType();
  e.rows[value] = {e.allocate(element, rows.shape[rows.dim] * lanes), stand, rows.dim, lanes, e.getActive(), false};
}

/// Reduces a row, and remembers the result at the point where the row stands. Lanes that do not exist count as the identity.
void HostKernel::reduceTogether(Operation *op, const FoldLowering &fold) {
  Value operand = op->getOperand(0);
  keepRow(operand);
  auto kept = e.rows.find(operand);
  bool isNew = kept != e.rows.end() && !kept->second.isFilled;
  int64_t lanes = isAlongLanes() ? width : e.getLanes(), active = isAlongLanes() ? width : e.getActive();
  auto init = [&] { return e.withLanes(lanes, active, [&] { return fold.identity(e, op); }); };
  auto join = [&](Values x, Values y) { return fold.combine(e, op, x, y); };
  bool isMany = rows.shape[rows.dim] / (isAlongLanes() ? width : 1) >= kWays;
  Values sum = overRow(isMany ? kWays : 1, init, join, [&](Point point, Values carried) {
    Value element = e.eval(operand, point);
    if (isNew)
      e.storeInRow(operand, point, element);
    Values lifted = fold.lift(e, op, element, point[rows.dim]);
    if (isAlongLanes() && e.getActive() < e.getLanes())
      for (auto [value, none] : llvm::zip_equal(lifted, fold.identity(e, op)))
        value = e.elements.select(e.getActiveMask(), value, none);
    return fold.combine(e, op, carried, lifted);
  });
  if (isNew)
    e.rows[operand].isFilled = true;
  if (isAlongLanes() && width > 1)
    sum = acrossLanes(op, fold, sum);
  Point at = stand;
  if (getShape(op->getResult(0)).size() < rows.shape.size())
    at.erase(at.begin() + rows.dim);
  auto finish = [&] {
    e.remember(op->getResult(0), at, fold.finish(e, op, sum));
    return 0;
  };
  isAlongLanes() ? e.asScalar(finish) : finish();
}

void cleave::codegen::emitHostKernel(Block &block, StringRef name, ModuleOp kernels, const HostTarget &target,
                                     bool reports) {
  [[maybe_unused]] std::string reason;
  assert(canEmit(block, reason) && "no kernel");
  OwningOpRef<func::FuncOp> region = expandRegion(block);
  mergeDims(*region);
  HostKernel(*region, target).emit(name, kernels, reports);
}
