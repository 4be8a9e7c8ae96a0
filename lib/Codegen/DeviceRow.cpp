//===- DeviceRow.cpp - rows of reductions on devices -----------------------===//
//
// A *team* of threads has a row (or as many rows as there are lanes). Each of its threads takes every n-th vector of the row, keeps
// what it evaluated in registers where that is little, and all of them meet at the end of a reduction:
//
//   S = [outer.., row]      lanes run along the row. Up to 32 threads meet by shuffles, more by one slot of shared memory a warp
//   S = [outer.., row, n]   lanes run along n. 16 threads of a column meet in shared memory, or a thread has it all
//
// Slots are written once in a kernel, so that a reduction has one barrier.
//
//===----------------------------------------------------------------------===//
#include "DeviceTemplates.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include <numeric>

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;

namespace {

/// A thread's vector of its row.
struct Piece {
  Value place;
  Value isThere; ///< i1; none: always
};

class RowKernel {
public:
  RowKernel(DeviceEmitter &e, ResultStore &store, func::FuncOp region, const Rows &rows)
      : e(e), store(store), region(region), rows(rows), kept(rows.getKeptShape()) {}
  void run(ArrayRef<Result> results);

private:
  bool isAlong() const { return rows.dim + 1 == int64_t(rows.shape.size()); }
  void placeAlong();
  void placeAcross();
  int64_t countSharedBytes();
  Piece getPiece(Value number, bool isWhole);
  Values overRow(Values init, function_ref<Values(const Piece &, Values)> body);
  Point getPoint(const Piece &piece) const;
  Point getSingle(Value value) const;
  void reduce(Operation *op, const FoldForm &fold);
  Values acrossTeam(Values values, function_ref<Values(Values, Values)> combine);
  Values acrossColumn(Values values, function_ref<Values(Values, Values)> combine);
  void when(Value x, Value y, function_ref<void()> body);

  DeviceEmitter &e;
  ResultStore &store;
  func::FuncOp region;
  const Rows &rows;
  SmallVector<int64_t> kept;
  int64_t team = 1;  ///< threads
  int64_t width = 1; ///< lanes, along the row or across rows
  Value member;      ///< this thread's number in its team
  Value isRow;       ///< i1: the team has a row; none: all have
  Point stand;       ///< the row
};

} // namespace

/// Straight code for so many vectors of a thread.
static constexpr int64_t kMaxUnrolled = 8;
/// Threads of a block of small teams.
static constexpr int64_t kBlock = 256;
/// Threads that share a column.
static constexpr int64_t kSplit = 16;

/// As many threads as give each some 32 elements at most, within a block; few for short rows.
static int64_t chooseTeam(int64_t extent, int64_t width) {
  int64_t team = 1;
  while (team < kWarp && team * width < extent)
    team *= 2;
  while (team >= kWarp && team < 1024 && team * 32 < extent && team * width * 2 <= extent)
    team *= 2;
  return team;
}

/// Teams in a block: whole warps, and as many as leave no block with less, where that can be.
static int64_t countTeams(int64_t team, int64_t count) {
  if (team > kWarp)
    return 1;
  int64_t perWarp = kWarp / team, most = kBlock / kWarp;
  if (count % perWarp)
    return perWarp * most;
  while (count / perWarp % most)
    --most;
  return perWarp * most;
}

void RowKernel::placeAlong() {
  int64_t extent = rows.shape[rows.dim];
  width = getDeviceLanes(region, extent);
  team = chooseTeam(extent, width);
  int64_t count = countElements(kept), perBlock = countTeams(team, count);
  e.launch(llvm::divideCeil(count, perBlock), team * perBlock);
  Value row = e.places.add(e.places.mul(e.getBlock(), perBlock), e.places.div(e.getThread(), team));
  if (team > kWarp)
    row = e.getBlock();
  if (count % perBlock) {
    isRow = e.places.isLess(row, count);
    row = e.places.clamp(row, 0, count - 1);
  }
  member = e.places.rem(e.getThread(), team);
  if (team > kWarp)
    member = e.getThread();
  for (Value place : e.places.delinearise(row, kept))
    stand.push_back({place});
}

/// What parts of all reductions take where columns are shared.
int64_t RowKernel::countSharedBytes() {
  int64_t bytes = 0;
  for (Operation *op : rows.swept)
    for (Value value : getForms().find(op)->fold->identity(e, op))
      bytes += kSplit * kWarp * width * llvm::divideCeil(getElementTypeOrSelf(value).getIntOrFloatBitWidth(), 8);
  return bytes;
}

/// A column is shared where there are too few to keep the device busy, and rows are long.
void RowKernel::placeAcross() {
  width = getDeviceLanes(region, rows.shape.back());
  SmallVector<int64_t> vectors(kept);
  vectors.back() /= width;
  constexpr int64_t many = 64 << 10, shared = 40 << 10;
  int64_t count = countElements(vectors);
  if (rows.shape[rows.dim] >= 4 * kSplit && count < many && countSharedBytes() <= shared)
    team = kSplit;
  int64_t perBlock = team > 1 ? kWarp : kBlock;
  e.launch(llvm::divideCeil(count, perBlock), perBlock * team);
  Value column = e.places.add(e.places.mul(e.getBlock(), perBlock), e.places.rem(e.getThread(), perBlock));
  if (team == 1)
    column = e.getGlobalThread();
  member = team == 1 ? e.places.number(0) : e.places.div(e.getThread(), perBlock);
  if (count % perBlock) {
    isRow = e.places.isLess(column, count);
    column = e.places.clamp(column, 0, count - 1);
  }
  for (Value place : e.places.delinearise(column, vectors))
    stand.push_back({place});
  stand.back() = {e.places.mul(stand.back().base, width), width > 1};
}

/// Vector `number` of this thread. One behind the end is read where the last one is.
Piece RowKernel::getPiece(Value number, bool isWhole) {
  int64_t lanes = isAlong() ? width : 1, extent = rows.shape[rows.dim];
  Value place = e.places.add(e.places.mul(number, team * lanes), e.places.mul(member, lanes));
  if (isWhole)
    return {place, {}};
  return {e.places.clamp(place, 0, extent - lanes), e.places.isLess(place, extent)};
}

Values RowKernel::overRow(Values carried, function_ref<Values(const Piece &, Values)> body) {
  int64_t step = team * (isAlong() ? width : 1), extent = rows.shape[rows.dim], count = llvm::divideCeil(extent, step);
  if (count > kMaxUnrolled)
    return e.loop(e.places.number(0), e.places.number(count), 1, carried,
                  [&](Value number, Values inner) { return body(getPiece(number, extent % step == 0), inner); });
  for (int64_t number = 0; number < count; ++number)
    carried = body(getPiece(e.places.number(number), (number + 1) * step <= extent), carried);
  return carried;
}

Point RowKernel::getPoint(const Piece &piece) const {
  Point point = stand;
  point[rows.dim] = {piece.place, isAlong() && width > 1};
  return point;
}

/// Where the row's only element of a value is; the reduced dim may have been dropped.
Point RowKernel::getSingle(Value value) const {
  Point point = stand;
  if (getShape(value).size() < rows.shape.size())
    point.erase(point.begin() + rows.dim);
  return point;
}

//===----------------------------------------------------------------------===//
// Meeting
//===----------------------------------------------------------------------===//

/// Warps by shuffles, then their results; the slots of as many warps as there are lie in a warp.
Values RowKernel::acrossTeam(Values values, function_ref<Values(Values, Values)> combine) {
  values = e.acrossWarp(values, std::min(team, kWarp), combine);
  if (team <= kWarp)
    return values;
  int64_t warps = team / kWarp;
  PlaceBuilder &p = e.places;
  Value lane = p.rem(e.getThread(), kWarp);
  SmallVector<Value> slots;
  for (Value value : values)
    slots.push_back(e.share(ElementBuilder::getStoredType(value.getType()), warps));
  e.when(p.isLess(lane, 1), [&] {
    for (auto [value, slot] : llvm::zip_equal(values, slots))
      e.store(slot, value, {p.div(e.getThread(), kWarp)});
  });
  e.barrier();
  for (auto [value, slot] : llvm::zip_equal(values, slots))
    value = e.load(slot, value.getType(), {p.rem(lane, warps)});
  return e.acrossWarp(values, warps, combine);
}

/// Every thread of a column combines all parts, in one order.
Values RowKernel::acrossColumn(Values values, function_ref<Values(Values, Values)> combine) {
  if (team == 1)
    return values;
  PlaceBuilder &p = e.places;
  Value column = p.mul(p.rem(e.getThread(), kWarp), width);
  SmallVector<Value> parts;
  auto at = [&](Value number) { return Index{p.add(p.mul(number, kWarp * width), column), width > 1}; };
  for (Value value : values) {
    parts.push_back(e.share(ElementBuilder::getStoredType(getElementTypeOrSelf(value)), team * kWarp * width));
    e.store(parts.back(), value, at(member));
  }
  e.barrier();
  Values sum;
  for (int64_t number = 0; number < team; ++number) {
    Values next;
    for (auto [value, part] : llvm::zip_equal(values, parts))
      next.push_back(e.load(part, getElementTypeOrSelf(value), at(p.number(number))));
    sum = number == 0 ? next : combine(sum, next);
  }
  return sum;
}

/// What is behind the end of a row counts as the identity.
void RowKernel::reduce(Operation *op, const FoldForm &fold) {
  Value operand = op->getOperand(0);
  auto combine = [&](Values x, Values y) { return fold.combine(e, op, x, y); };
  Values sum = overRow(fold.identity(e, op), [&](const Piece &piece, Values carried) {
    Point point = getPoint(piece);
    Values lifted = fold.lift(e, op, e.eval(operand, point), point[rows.dim]);
    if (piece.isThere)
      for (auto [value, none] : llvm::zip_equal(lifted, fold.identity(e, op)))
        value = arith::SelectOp::create(e.b, e.loc, piece.isThere, value, none);
    return combine(carried, lifted);
  });
  auto finish = [&] {
    e.remember(op->getResult(0), getSingle(op->getResult(0)), fold.finish(e, op, sum));
    return 0;
  };
  if (!isAlong()) {
    sum = acrossColumn(sum, combine);
    return void(finish());
  }
  // Lanes as a tree, one by one: there are few.
  SmallVector<Values> lanes;
  for (int64_t lane = 0; lane < width; ++lane) {
    Values &each = lanes.emplace_back();
    for (Value value : sum)
      each.push_back(width == 1 ? value : e.takeLanes(value, lane, 1));
  }
  e.asScalar([&] {
    for (; lanes.size() > 1; lanes.resize(lanes.size() / 2))
      for (size_t lane = 0; lane < lanes.size() / 2; ++lane)
        lanes[lane] = combine(lanes[lane], lanes[lane + lanes.size() / 2]);
    sum = acrossTeam(lanes.front(), combine);
    return finish();
  });
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

void RowKernel::when(Value x, Value y, function_ref<void()> body) {
  Value both = !x ? y : !y ? x : e.elements.both(x, y);
  both ? e.when(both, body) : body();
}

/// Reductions in the order of the program, for one may need another; then results. Results of one element a row come last, by one
/// thread.
void RowKernel::run(ArrayRef<Result> results) {
  isAlong() ? placeAlong() : placeAcross();
  SmallVector<Result> whole, single;
  for (const Result &result : results) {
    bool isWhole = getShape(result.value) == ArrayRef(rows.shape) && rows.shape[rows.dim] != 1;
    (isWhole ? whole : single).push_back(result);
  }
  e.withLanes(width, width, [&] {
    for (Operation *op : rows.swept)
      reduce(op, *getForms().find(op)->fold);
    if (!whole.empty())
      overRow({}, [&](const Piece &piece, Values) {
        when(piece.isThere, isRow, [&] { store.storeAll(whole, [&](const Result &) { return getPoint(piece); }); });
        return Values();
      });
    return 0;
  });
  int64_t lanes = isAlong() ? 1 : width;
  e.withLanes(lanes, lanes, [&] {
    Value isFirst = team > 1 ? e.places.isLess(member, 1) : Value();
    if (!single.empty())
      when(isFirst, isRow,
           [&] { store.storeAll(single, [&](const Result &result) { return getSingle(result.value); }); });
    return 0;
  });
}

/// Of blocks, whatever they are, and of teams.
bool cleave::codegen::readsOwnElements(func::FuncOp region, const Rows &rows) {
  int64_t count = countElements(rows.getKeptShape()), extent = rows.shape[rows.dim];
  int64_t lanes = getDeviceLanes(region, rows.shape.back());
  if (rows.dim + 1 < int64_t(rows.shape.size()))
    return count / lanes % kBlock == 0 && (extent % kSplit == 0 || extent < 4 * kSplit);
  int64_t team = chooseTeam(extent, lanes);
  return count % countTeams(team, count) == 0 && extent % (team * lanes) == 0;
}

void cleave::codegen::runRows(DeviceEmitter &e, ResultStore &store, func::FuncOp region, const Rows &rows,
                              ArrayRef<Result> results) {
  RowKernel(e, store, region, rows).run(results);
}
