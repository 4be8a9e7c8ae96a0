//===- Tile.cpp - sums of products in blocks of a device ------------------===//
//
// Two ways to multiply what lies in shared memory:
//
//   lanes   a thread has 8 x 8 or 4 x 4 sums; of four of the depth it loads its rows and columns, 16 bytes at a time, whichever
//           way they lie, and multiplies each with each, fused
//   warps   a warp has up to 64 x 32 sums as fragments (Device/Fragments.h): f16, bf16, and f32 where fewer bits are enough
//
// Which block: the largest of which there are enough to keep a device busy. Where there are few, threads share the depth.
//
//===----------------------------------------------------------------------===//
#include "Fragments.h"
#include "TileKernel.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace cleave::codegen;

namespace {

class LaneTile : public TileKernel {
public:
  using TileKernel::TileKernel;

private:
  int64_t getTeam() const override { return 1; }
  void begin() override;
  Values makeSums() override;
  void multiply(std::array<Value, 2> stages, Values &sums) override;
  int64_t getRowsEachPass() const override { return blocking.rowsEach == 8 ? 2 : 4; }
  Value getRow(int64_t pass, Value row) override;
  void put(int64_t pass, ValueRange sums, Value memory, int64_t pitch, Value first) override;

  static constexpr int64_t kWide = 4;
  int64_t countEach(unsigned side) const { return side == 0 ? blocking.rowsEach : blocking.columnsEach; }
  /// Threads along a side.
  int64_t countTeams(unsigned side) const { return parts[side].extent / countEach(side); }
  /// How far element `i` of a thread lies from its first. Along the depth threads take every n-th, else four at a time.
  int64_t getOffset(unsigned side, int64_t i) const {
    return source.sides[side].alongDepth ? i * countTeams(side) : i / kWide * kWide * countTeams(side) + i % kWide;
  }
  Values loadAlong(unsigned side, Value place, int64_t depth);

  Value starts[2];
};

class WarpTile : public TileKernel {
public:
  WarpTile(DeviceEmitter &e, TileSource &source, Blocking blocking)
      : TileKernel(e, source, blocking), fragments(e, source.element) {}

private:
  int64_t getTeam() const override { return kWarp; }
  void begin() override;
  Values makeSums() override;
  void multiply(std::array<Value, 2> stages, Values &sums) override;
  int64_t getRowsEachPass() const override { return Fragments::kRows; }
  Value getRow(int64_t pass, Value row) override;
  void put(int64_t pass, ValueRange sums, Value memory, int64_t pitch, Value first) override;

  int64_t countColumns() const { return blocking.columnsEach / Fragments::kColumns; }

  Fragments fragments;
  FragmentTile tiles[2];
  Value starts[2];
};

} // namespace

//===----------------------------------------------------------------------===//
// Lanes
//===----------------------------------------------------------------------===//

/// Groups take turns, four of the depth at a time.
void LaneTile::begin() {
  PlaceBuilder &p = e.places;
  for (unsigned side : {0, 1}) {
    bool alongDepth = source.sides[side].alongDepth;
    Value team = side == 0 ? teamRow : teamColumn;
    starts[side] = p.add(p.mul(team, alongDepth ? parts[side].pitch : kWide),
                         p.mul(group, kWide * (alongDepth ? 1 : parts[side].pitch)));
  }
}

/// A vector for each four columns of a row.
Values LaneTile::makeSums() {
  Value zero = e.withLanes(kWide, kWide, [&] { return e.elements.number(e.withLanes(compute), 0); });
  return Values(blocking.rowsEach * blocking.columnsEach / kWide, zero);
}

/// Four of the depth of all elements of a side, element by element if they lie along it, else depth by depth.
Values LaneTile::loadAlong(unsigned side, Value place, int64_t depth) {
  PlaceBuilder &p = e.places;
  const Part &part = parts[side];
  bool alongDepth = source.sides[side].alongDepth;
  Values loaded;
  auto load = [&](int64_t offset) {
    Value at = p.add(place, offset + depth * (alongDepth ? 1 : part.pitch));
    loaded.push_back(e.elements.widen(e.load(part.memory, source.element, {at, 1})));
  };
  for (int64_t i = 0; alongDepth && i < countEach(side); ++i)
    load(getOffset(side, i) * part.pitch);
  for (int64_t i = 0; !alongDepth && i < kWide; ++i)
    for (int64_t first = 0; first < countEach(side); first += kWide)
      load(i * part.pitch + getOffset(side, first));
  return loaded;
}

void LaneTile::multiply(std::array<Value, 2> stages, Values &sums) {
  PlaceBuilder &p = e.places;
  int64_t vectors = blocking.columnsEach / kWide, rowVectors = blocking.rowsEach / kWide;
  bool rowsAlong = source.sides[0].alongDepth, columnsAlong = source.sides[1].alongDepth;
  Value rowPlace = p.add(stages[0], starts[0]), columnPlace = p.add(stages[1], starts[1]);
  e.withLanes(kWide, kWide, [&] {
    for (int64_t depth = 0; depth < blocking.depth; depth += kWide * blocking.groups) {
      Values rows = loadAlong(0, rowPlace, depth), columns = loadAlong(1, columnPlace, depth);
      for (int64_t i = 0; i < kWide; ++i)
        for (int64_t v = 0; v < vectors; ++v) {
          Values each;
          for (int64_t lane = 0; columnsAlong && lane < kWide; ++lane)
            each.push_back(e.takeLanes(columns[v * kWide + lane], i, 1));
          Value column = columnsAlong ? Value(vector::FromElementsOp::create(e.b, e.loc, e.withLanes(compute), each))
                                      : columns[i * vectors + v];
          for (int64_t row = 0; row < blocking.rowsEach; ++row) {
            Value number = rowsAlong ? e.takeLanes(rows[row], i, 1)
                                     : e.takeLanes(rows[i * rowVectors + row / kWide], row % kWide, 1);
            Value &sum = sums[row * vectors + v];
            sum = e.elements.fma(e.splat(number), column, sum);
          }
        }
    }
    return 0;
  });
}

Value LaneTile::getRow(int64_t pass, Value row) {
  PlaceBuilder &p = e.places;
  int64_t each = getRowsEachPass();
  Value team = p.div(row, each), within = p.rem(row, each);
  bool alongDepth = source.sides[0].alongDepth;
  return p.add(p.add(p.mul(team, alongDepth ? 1 : kWide), p.mul(within, alongDepth ? countTeams(0) : 1)),
               getOffset(0, pass * each));
}

void LaneTile::put(int64_t pass, ValueRange sums, Value memory, int64_t pitch, Value first) {
  PlaceBuilder &p = e.places;
  int64_t each = getRowsEachPass(), vectors = blocking.columnsEach / kWide;
  bool columnsAlong = source.sides[1].alongDepth;
  Value start = p.add(p.mul(p.add(first, p.mul(teamRow, each)), pitch), p.mul(teamColumn, columnsAlong ? 1 : kWide));
  e.withLanes(kWide, kWide, [&] {
    for (int64_t row = 0; row < each; ++row)
      for (int64_t v = 0; v < vectors; ++v) {
        Value place = p.add(start, row * pitch + getOffset(1, v * kWide));
        e.store(memory, sums[(pass * each + row) * vectors + v], {place, columnsAlong ? countTeams(1) : 1});
      }
    return 0;
  });
}

//===----------------------------------------------------------------------===//
// Warps
//===----------------------------------------------------------------------===//

/// Groups take turns, a fragment of the depth at a time.
void WarpTile::begin() {
  PlaceBuilder &p = e.places;
  for (unsigned side : {0, 1}) {
    tiles[side] = {parts[side].memory, parts[side].pitch, source.sides[side].alongDepth, side == 1};
    int64_t apart = tiles[side].at(side == 0 ? blocking.rowsEach : blocking.columnsEach, 0);
    starts[side] =
        p.add(fragments.getLanePlace(tiles[side]), p.add(p.mul(side == 0 ? teamRow : teamColumn, apart),
                                                         p.mul(group, tiles[side].at(0, fragments.getDepth()))));
  }
}

Values WarpTile::makeSums() {
  int64_t blocks = blocking.rowsEach / Fragments::kRows * countColumns();
  return Values(blocks * Fragments::kSums, e.elements.number(compute, 0));
}

void WarpTile::multiply(std::array<Value, 2> stages, Values &sums) {
  PlaceBuilder &p = e.places;
  Value places[2] = {p.add(stages[0], starts[0]), p.add(stages[1], starts[1])};
  for (int64_t depth = 0; depth < blocking.depth; depth += blocking.groups * fragments.getDepth()) {
    SmallVector<Values> loaded[2];
    for (unsigned side : {0, 1})
      for (int64_t at = 0; at < (side == 0 ? blocking.rowsEach : blocking.columnsEach); at += Fragments::kRows)
        loaded[side].push_back(fragments.load(tiles[side], p.add(places[side], tiles[side].at(at, depth))));
    MutableArrayRef<Value> rest(sums);
    for (const Values &rows : loaded[0])
      for (const Values &columns : loaded[1])
        for (int64_t half : {0, 2}) {
          fragments.multiply(rows, ArrayRef(columns).slice(half, 2), rest.take_front(Fragments::kSums));
          rest = rest.drop_front(Fragments::kSums);
        }
  }
}

Value WarpTile::getRow(int64_t pass, Value row) {
  PlaceBuilder &p = e.places;
  return p.add(p.add(p.mul(p.div(row, Fragments::kRows), blocking.rowsEach), p.rem(row, Fragments::kRows)),
               pass * Fragments::kRows);
}

void WarpTile::put(int64_t pass, ValueRange sums, Value memory, int64_t pitch, Value first) {
  PlaceBuilder &p = e.places;
  Value row = p.add(p.add(first, p.mul(teamRow, Fragments::kRows)), fragments.getRow());
  Value column = p.add(p.mul(teamColumn, blocking.columnsEach), fragments.getColumn());
  Value start = p.add(p.mul(row, pitch), column);
  sums = sums.drop_front(pass * countColumns() * Fragments::kSums);
  auto pair = VectorType::get({2}, compute);
  e.withLanes(2, 2, [&] {
    for (int64_t i = 0; i < countColumns(); ++i)
      for (int64_t half : {0, 1}) {
        Value two = vector::FromElementsOp::create(e.b, e.loc, pair, sums.slice(i * Fragments::kSums + 2 * half, 2));
        e.store(memory, two, {p.add(start, half * 8 * pitch + i * Fragments::kColumns), 1});
      }
    return 0;
  });
}

//===----------------------------------------------------------------------===//
// Which
//===----------------------------------------------------------------------===//

/// The last two are for what is small, and for few rows.
static Blocking choose(const TileSource &source, ArrayRef<Blocking> from) {
  int64_t rows = source.sides[0].count, columns = source.sides[1].count;
  for (const Blocking &blocking : from.drop_back(2)) {
    int64_t blocks =
        source.batches * llvm::divideCeil(rows, blocking.rows) * llvm::divideCeil(columns, blocking.columns);
    if (blocks >= kManyBlocks && 2 * rows > blocking.rows && 2 * columns > blocking.columns)
      return blocking;
  }
  return rows <= from.back().rows ? from.back() : from[from.size() - 2];
}

void cleave::codegen::runTile(DeviceEmitter &e, TileSource &source) {
  int64_t bits = source.element.getIntOrFloatBitWidth();
  if (bits == 16 || source.isShort) {
    // Depths of 64, 128 and 256 bytes.
    int64_t deep = 512 / bits;
    Blocking known[] = {{128, 128, deep, 64, 32, 1},
                        {128, 64, deep, 32, 32, 1},
                        {64, 64, deep, 32, 32, 1},
                        {32, 32, 2 * deep, 32, 32, 4},
                        {16, 32, 4 * deep, 16, 32, 4}};
    return WarpTile(e, source, choose(source, known)).run();
  }
  Blocking known[] = {{128, 128, 8, 8, 8, 1},
                      {128, 64, 16, 8, 8, 1},
                      {64, 64, 16, 4, 4, 1},
                      {32, 32, 16, 4, 4, 2},
                      {16, 64, 32, 4, 4, 2}};
  // Sums of f64 are two registers each.
  LaneTile(e, source, choose(source, ArrayRef(known).drop_front(bits == 64 ? 2 : 0))).run();
}
