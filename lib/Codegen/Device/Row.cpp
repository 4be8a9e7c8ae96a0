//===- Row.cpp - rows of reductions on devices ----------------------------===//
//
// A *team* of threads has a row (or as many rows as there are lanes). Each of its threads takes every n-th vector of the row, keeps
// what it evaluated in registers where that is little, and all of them meet at the end of a reduction:
//
//   S = [outer.., row]      lanes run along the row. Up to 32 threads meet by shuffles, more by one slot of shared memory a warp
//   S = [outer.., row, n]   lanes run along n. 16 threads of a column meet in shared memory, or a thread has it all
//
// Rows whose length is no multiple of a vector begin anywhere in memory, and are still read in aligned vectors: those that lie whole in
// the row, each by a thread, and up to a vector's elements before and behind them one by one by the team's first threads.
//
//   memory   |....|...x|xxxx|xxxx|xx..|....|       a row (x): an edge of one, two vectors, an edge of two
//
// Slots are written once in a kernel, so that a reduction has one barrier.
//
//===----------------------------------------------------------------------===//
#include "Templates.h"

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
  Value linear;  ///< where it lies among all rows, if that tells how it is aligned
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
  void shift(Value row);
  Piece getPiece(Value number, bool isFull);
  Piece getShifted(Value number, bool isFull);
  Piece getEdge();
  Values overRow(Values init, function_ref<Values(const Piece &, Values)> body);
  Point getPoint(const Piece &piece) const;
  Point getSingle(Value value) const;
  void reduce(Operation *op, const FoldLowering &fold);
  Values acrossTeam(Values values, function_ref<Values(Values, Values)> combine);
  Values acrossColumn(Values values, function_ref<Values(Values, Values)> combine);
  void when(Value x, Value y, function_ref<void()> body);
  void storeFull(ArrayRef<Result> whole);

  DeviceEmitter &e;
  ResultStore &store;
  func::FuncOp region;
  const Rows &rows;
  SmallVector<int64_t> kept;
  int64_t team = 1;       ///< threads
  int64_t width = 1;      ///< lanes, along the row or across rows
  Value member;           ///< this thread's number in its team
  bool isShifted = false; ///< rows begin anywhere
  Value rowStart, first, head,
      vectors;               ///< in memory: the row, its first whole vector; elements before it; whole vectors
  Value isRow;               ///< i1: the team has a row; none: all have
  Point stand;               ///< the row
  SmallVector<Piece> pieces; ///< of a row that is not walked by a loop
  std::optional<Piece> edge;
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

/// Teams in a block: whole warps, as many as leave no block with less, where that can be, and few where there are few rows.
static int64_t countTeams(int64_t team, int64_t count) {
  if (team > kWarp)
    return 1;
  int64_t perWarp = kWarp / team, warps = kBlock / kWarp;
  auto leavesRest = [&] { return count % perWarp == 0 && count / perWarp % warps != 0; };
  while (leavesRest() || (warps > 1 && count / perWarp / warps < kManyBlocks))
    --warps;
  return perWarp * warps;
}

/// A vector's elements, where rows are long enough for threads that take what is before and behind whole vectors; nothing where rows
/// begin at multiples of vectors.
static std::optional<int64_t> getShiftedLanes(func::FuncOp region, const Rows &rows) {
  int64_t extent = rows.shape[rows.dim], count = countElements(rows.shape);
  int64_t most = getDeviceLanes(region, 0), lanes = getDeviceLanes(region, extent);
  bool isRead = llvm::any_of(region.getArgumentTypes(),
                             [&](Type type) { return cast<RankedTensorType>(type).getNumElements() == count; });
  if (rows.dim + 1 != int64_t(rows.shape.size()) || lanes == most || extent < 16 * most || !isRead)
    return std::nullopt;
  return most;
}

void RowKernel::placeAlong() {
  int64_t extent = rows.shape[rows.dim];
  std::optional<int64_t> shifted = getShiftedLanes(region, rows);
  isShifted = shifted.has_value();
  width = shifted.value_or(getDeviceLanes(region, extent));
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
  for (Value place : e.places.delinearize(row, kept))
    stand.push_back({place});
  if (isShifted)
    shift(row);
}

static Value subtract(DeviceEmitter &e, Value x, Value y) { return arith::SubIOp::create(e.b, e.loc, x, y); }

/// Finds the vectors that lie whole in the row.
void RowKernel::shift(Value row) {
  PlaceBuilder &p = e.places;
  rowStart = p.mul(row, rows.shape[rows.dim]);
  first = p.mul(p.div(p.add(rowStart, width - 1), width), width);
  head = subtract(e, first, rowStart);
  vectors = p.div(subtract(e, p.number(rows.shape[rows.dim]), head), width);
}

/// What parts of all reductions take where columns are shared.
int64_t RowKernel::countSharedBytes() {
  int64_t bytes = 0;
  for (Operation *op : rows.swept)
    for (Value value : getLowerings().find(op)->fold->identity(e, op))
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
  for (Value place : e.places.delinearize(column, vectors))
    stand.push_back({place});
  stand.back() = {e.places.mul(stand.back().base, width), width > 1};
}

/// As getPiece, of the whole vectors of a row that begins anywhere.
Piece RowKernel::getShifted(Value number, bool isFull) {
  PlaceBuilder &p = e.places;
  Value vector = p.add(p.mul(number, team), member), isThere;
  if (!isFull) {
    isThere = p.isLess(vector, vectors);
    vector = arith::MinSIOp::create(e.b, e.loc, vector, p.add(vectors, -1));
  }
  Value linear = p.add(first, p.mul(vector, width));
  return {subtract(e, linear, rowStart), isThere, linear};
}

/// This thread's element before or behind the whole vectors. There are fewer than two vectors of them.
Piece RowKernel::getEdge() {
  PlaceBuilder &p = e.places;
  if (edge)
    return *edge;
  Value behind = p.add(p.mul(vectors, width),
                       member); // head elements less than the place behind the last vector, and as many more
  Value place = p.select(p.isLess(member, head), member, behind);
  edge = Piece{p.clamp(place, 0, rows.shape[rows.dim] - 1), p.isLess(place, rows.shape[rows.dim]), {}};
  return *edge;
}

/// Vector `number` of this thread. One behind the end is read where the last one is.
Piece RowKernel::getPiece(Value number, bool isFull) {
  if (isShifted)
    return getShifted(number, isFull);
  int64_t lanes = isAlong() ? width : 1, extent = rows.shape[rows.dim];
  Value place = e.places.add(e.places.mul(number, team * lanes), e.places.mul(member, lanes));
  if (isFull)
    return {place, {}, {}};
  return {e.places.clamp(place, 0, extent - lanes), e.places.isLess(place, extent), {}};
}

Values RowKernel::overRow(Values carried, function_ref<Values(const Piece &, Values)> body) {
  int64_t step = team * (isAlong() ? width : 1), extent = rows.shape[rows.dim];
  // Of a row that begins anywhere, so many vectors may and must be whole.
  int64_t most = isShifted ? extent / width * width : extent, least = isShifted ? extent - width + 1 : extent;
  int64_t count = llvm::divideCeil(most, step);
  if (count > kMaxUnrolled)
    return e.loop(e.places.number(0), e.places.number(count), 1, carried, [&](Value number, Values inner) {
      return body(getPiece(number, !isShifted && extent % step == 0), inner);
    });
  for (int64_t number = 0; number < count; ++number) {
    // The same place in each sweep: what was evaluated there is known.
    if (number == int64_t(pieces.size()))
      pieces.push_back(getPiece(e.places.number(number), (number + 1) * step <= least));
    carried = body(pieces[number], carried);
  }
  return carried;
}

Point RowKernel::getPoint(const Piece &piece) const {
  Point point = stand;
  point[rows.dim] = {piece.place, isAlong() && e.getLanes() > 1};
  if (piece.linear)
    e.places.know(point, rows.shape, piece.linear);
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
void RowKernel::reduce(Operation *op, const FoldLowering &fold) {
  Value operand = op->getOperand(0);
  auto combine = [&](Values x, Values y) { return fold.combine(e, op, x, y); };
  auto lift = [&](const Piece &piece) {
    Point point = getPoint(piece);
    Values lifted = fold.lift(e, op, e.eval(operand, point), point[rows.dim]);
    if (piece.isThere)
      for (auto [value, none] : llvm::zip_equal(lifted, fold.identity(e, op)))
        value = arith::SelectOp::create(e.b, e.loc, piece.isThere, value, none);
    return lifted;
  };
  Values sum =
      overRow(fold.identity(e, op), [&](const Piece &piece, Values carried) { return combine(carried, lift(piece)); });
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
    if (isShifted)
      lanes.front() = combine(lanes.front(), lift(getEdge()));
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

void RowKernel::storeFull(ArrayRef<Result> whole) {
  auto storePiece = [&](const Piece &piece) {
    when(piece.isThere, isRow, [&] { store.storeAll(whole, [&](const Result &) { return getPoint(piece); }); });
  };
  overRow({}, [&](const Piece &piece, Values) {
    storePiece(piece);
    return Values();
  });
  if (isShifted)
    e.asScalar([&] {
      storePiece(getEdge());
      return 0;
    });
}

/// Reductions in the order of the program, for one may need another; then results. Results of one element a row come last, by one
/// thread.
void RowKernel::run(ArrayRef<Result> results) {
  isAlong() ? placeAlong() : placeAcross();
  SmallVector<Result> whole, single;
  for (const Result &result : results) {
    bool isFull = getShape(result.value) == ArrayRef(rows.shape) && rows.shape[rows.dim] != 1;
    (isFull ? whole : single).push_back(result);
  }
  e.withLanes(width, width, [&] {
    for (Operation *op : rows.swept)
      reduce(op, *getLowerings().find(op)->fold);
    if (!whole.empty())
      storeFull(whole);
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

int64_t cleave::codegen::countRowBlocks(func::FuncOp region, const Rows &rows) {
  int64_t count = countElements(rows.getKeptShape()), extent = rows.shape[rows.dim];
  int64_t lanes = getShiftedLanes(region, rows).value_or(getDeviceLanes(region, rows.shape.back()));
  if (rows.dim + 1 < int64_t(rows.shape.size()))
    return llvm::divideCeil(count / lanes, extent >= 4 * kSplit ? kWarp : kBlock);
  return llvm::divideCeil(count, countTeams(chooseTeam(extent, lanes), count));
}

/// Of blocks, whatever they are, and of teams.
bool cleave::codegen::readsOwnElements(func::FuncOp region, const Rows &rows) {
  int64_t count = countElements(rows.getKeptShape()), extent = rows.shape[rows.dim];
  int64_t lanes = getDeviceLanes(region, rows.shape.back());
  if (rows.dim + 1 < int64_t(rows.shape.size()))
    return count / lanes % kBlock == 0 && (extent % kSplit == 0 || extent < 4 * kSplit);
  if (getShiftedLanes(region, rows))
    return false;
  int64_t team = chooseTeam(extent, lanes);
  return count % countTeams(team, count) == 0 && extent % (team * lanes) == 0;
}

void cleave::codegen::runRows(DeviceEmitter &e, ResultStore &store, func::FuncOp region, const Rows &rows,
                              ArrayRef<Result> results) {
  RowKernel(e, store, region, rows).run(results);
}
