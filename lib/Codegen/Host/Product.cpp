//===- Product.cpp - a batch of matrix products ---------------------------===//
//
//   batch, outer rows, outer columns
//     blocks of 256 rows
//       panels of some vectors of columns          fits the second cache, with all of its depth; the next one is on its way
//         blocks of rows                           numbers of A come from the first cache
//           depth                                  Tile.h
//
// bf16 in pairs goes the same way, with a block of sums of its own shape (PairTile.h):
//
//         blocks of 32 rows x 2 vectors              two by two tiles, where the processor has them and the depth is a multiple
//                                                    of 32; by way of memory, as all blocks of several rows, to the sink
//         blocks as above                            pair by pair else: half as many steps of the depth
//
// On demand f32 goes that way, too, split into two numbers of bf16 each (SplitTile.h).
//
// Where columns do not lie side by side in either operand (q k^T), a panel is transposed into memory of its own first.
//
//===----------------------------------------------------------------------===//
#include "Product.h"
#include "../Emitter.h"
#include "PairTile.h"
#include "SplitTile.h"
#include "cleave/Dialect/Exec/IR/Exec.h"
#include "cleave/Dialect/Nn/IR/Ops/Contraction.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;

//===----------------------------------------------------------------------===//
// Axes
//===----------------------------------------------------------------------===//

/// How the i-th dim of a kind lies in an operand; one that has none of the kind stands still.
static ViewDim dimOf(const View &view, ArrayRef<int64_t> places, size_t i) {
  return i < places.size() ? view.dims[places[i]] : ViewDim();
}

/// One axis a dim; `in` says where their extents stand in `shape`.
static SmallVector<Axis> makeAxes(const exec::MatmulDims::OperandDims &places, const View &a, const View &b,
                                  ArrayRef<int64_t> shape, ArrayRef<int64_t> in) {
  SmallVector<Axis> axes;
  for (size_t i = 0; i < in.size(); ++i) {
    Axis axis{shape[in[i]], dimOf(a, places.lhs, i), dimOf(b, places.rhs, i), {}};
    if (i < places.result.size())
      axis.parts.push_back({places.result[i], axis.extent});
    axes.push_back(axis);
  }
  return axes;
}

/// What is done with both operands exchanged.
static exec::MatmulDims exchange(exec::MatmulDims dims) {
  std::swap(dims.rows, dims.columns);
  for (auto *places : {&dims.batch, &dims.rows, &dims.columns, &dims.depth})
    std::swap(places->lhs, places->rhs);
  return dims;
}

/// True if `minor` follows `major` in memory without a gap.
static bool follows(const ViewDim &major, const ViewDim &minor, int64_t extent) {
  return !major.width && !minor.width && major.stride == minor.stride * extent;
}

/// Largest strides outside; then neighbors become one. `lanes` columns have to lie in one dim of the result.
static void order(SmallVector<Axis> &axes, bool byB, int64_t lanes) {
  auto key = [&](const Axis &axis) {
    const ViewDim &dim = byB ? axis.b : axis.a;
    return dim.width ? 0 : dim.stride; // panels are walked last
  };
  llvm::erase_if(axes, [](const Axis &axis) { return axis.extent == 1; });
  for (auto *next = axes.begin(); next != axes.end(); ++next) // stays in order where equal
    std::rotate(llvm::upper_bound(llvm::make_range(axes.begin(), next), *next,
                                  [&](const Axis &x, const Axis &y) { return key(x) > key(y); }),
                next, next + 1);
  for (size_t i = axes.size(); i-- > 1;) {
    Axis &major = axes[i - 1], &minor = axes[i];
    if (!follows(major.a, minor.a, minor.extent) || !follows(major.b, minor.b, minor.extent) ||
        minor.extent % lanes != 0)
      continue;
    minor.extent *= major.extent;
    minor.parts.insert(minor.parts.begin(), major.parts.begin(), major.parts.end());
    axes.erase(axes.begin() + i - 1);
  }
  if (axes.empty())
    axes.emplace_back();
}

/// True for numbers whose pairs lie side by side, and vectors of pairs in panels: what `exec-pack-weights` makes of a weight
/// in bf16, and a row-major operand has anyway. Of an odd depth the last pair would reach into the next row. Everything else is
/// read number by number, which is right for any strides.
static bool hasPairs(const Product &product, const View &a, const View &b, int64_t lanes) {
  const Axis &inner = product.depth.back(), &last = product.columns.back();
  bool isNarrow =
      getElementType(a.base).isBF16() && getElementType(b.base).isBF16() && getElementType(product.result).isF32();
  bool fits = last.b.width == lanes || (last.b.width % lanes == 0 && lanes < kTileRows);
  return isNarrow && lanes > 1 && last.extent > 1 && inner.extent % 2 == 0 && inner.a.stride == 1 && !inner.a.width &&
         inner.b.width == 2 && inner.b.panel == 2 * last.b.width && last.b.stride == 2 && fits &&
         !product.rows.back().a.width;
}

/// The product with the first operand giving numbers, or, exchanged, the second.
static Product make(nn::EinsumOp op, const exec::MatmulDims &dims, bool isExchanged, int64_t lanes) {
  Product product{op.getInputs()[isExchanged], op.getInputs()[!isExchanged], op.getResult(), {}, {}, {}, {}, false};
  View a = View::get(product.a), b = View::get(product.b);
  ArrayRef<int64_t> shapeA = getShape(product.a), shapeB = getShape(product.b);
  product.batch = makeAxes(dims.batch, a, b, shapeA, dims.batch.lhs);
  product.rows = makeAxes(dims.rows, a, b, shapeA, dims.rows.lhs);
  product.columns = makeAxes(dims.columns, a, b, shapeB, dims.columns.rhs);
  product.depth = makeAxes(dims.depth, a, b, shapeA, dims.depth.lhs);
  order(product.batch, true, 1);
  order(product.rows, false, 1);
  order(product.columns, true, lanes);
  order(product.depth, true, 1);
  const Axis &last = product.columns.back();
  product.isPaired = hasPairs(product, a, b, lanes);
  product.mustPack = !product.isPaired && last.extent > 1 && (last.b.stride != 1 || last.b.width % lanes != 0);
  return product;
}

/// Elements along all axes.
static int64_t countExtent(ArrayRef<Axis> axes) {
  int64_t count = 1;
  for (const Axis &axis : axes)
    count *= axis.extent;
  return count;
}

/// Vectors multiplied, elements packed, elements of the result that are stored one by one.
static int64_t estimate(const Product &product, int64_t lanes) {
  int64_t rows = countExtent(product.rows), depth = countExtent(product.depth), all = countExtent(product.columns);
  int64_t extent = product.columns.back().extent;
  int64_t vectors = all / std::max<int64_t>(extent, 1) * llvm::divideCeil(extent, lanes);
  int64_t cost = vectors * rows * depth + (product.mustPack ? all * depth / 4 : 0);
  ArrayRef<std::pair<int64_t, int64_t>> parts = product.columns.back().parts;
  int64_t rank = getShape(product.result).size();
  bool isSideBySide = extent == 1 || (!parts.empty() && parts.back().first == rank - 1);
  return cost + (isSideBySide ? 0 : rows * all);
}

/// Either operand may give the vectors; the estimate decides.
std::optional<Product> Product::get(Operation *op, int64_t lanes) {
  auto einsum = cast<nn::EinsumOp>(op);
  std::optional<exec::MatmulDims> dims =
      exec::MatmulDims::get(einsum.getEquation(), TypeRange(einsum.getInputs().getTypes()));
  if (!dims)
    return std::nullopt;
  Product straight = make(einsum, *dims, false, lanes), turned = make(einsum, exchange(*dims), true, lanes);
  return estimate(straight, lanes) <= estimate(turned, lanes) ? straight : turned;
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

/// Rows that go by while one panel of columns stays in the second cache.
static constexpr int64_t kMostRows = 256;

namespace {
class ProductLoops {
public:
  ProductLoops(Emitter &e, const Product &product, TileSink sink)
      : e(e), product(product), sink(sink), a(e, product.a), b(e, product.b), rows(product.rows.back()),
        columns(product.columns.back()), point(getShape(product.result).size(), Index{e.places.number(0)}) {}
  void run();

private:
  /// Sets the index of an axis in the point of the result.
  void stand(const Axis &axis, Value at, int64_t lane = 0);
  void matrix(Value placeA, Value placeB);
  void panel(Value placeA, Value placeB, Value column, int64_t vectors, int64_t numRows);
  bool wantsPanels() const;
  bool wantsRows() const;
  void pack(Value placeB, Value column, int64_t vectors);
  void packStraight(Value placeB, Value column, int64_t vectors);
  void packTurned(Value placeB, Value column, int64_t vectors);
  void packRows(Value placeA, int64_t numRows);
  bool fetchesAhead() const;
  void fetchAhead(Value placeB, Value row, Value column, ArrayRef<Value> k);
  bool canSplit() const;
  void splitRows(Value placeA, int64_t numRows);
  void tile(Value placeA, Value placeB, Value inBlock, Value column, TileShape shape);
  Value loadVector(Value placeB, Value column, int64_t v, ArrayRef<Value> k);
  Value locateNumber(Value placeA, Value row, int64_t r, ArrayRef<Value> k);
  Value locateVector(Value placeB, Value column, int64_t v, ArrayRef<Value> k);
  Values sum(Value placeA, Value placeB, Value inBlock, Value column, TileShape shape);
  void chooseShape();
  void finish(const Values &sums, Value row, Value column, TileShape shape);
  void finishBlock(Value row, Value column, TileShape shape, int64_t first);
  void handOutRow(Value row, Value column, TileShape shape, function_ref<Value(int64_t)> sum);
  void handOut(Value sum, Value column);
  int64_t getActive(int64_t vector, Value column) const;

  Emitter &e;
  const Product &product;
  TileSink sink;
  Operand a, b;
  const Axis &rows, &columns;
  int64_t lanes = 1;
  TileShape shape{1, 1};
  SmallVector<int64_t> depth;
  Type compute = ElementBuilder::getComputeType(getElementType(product.result));
  bool isPacked = false;           ///< panels are copied first
  Value packed, packedRows, block; ///< a panel; numbers of a block of rows, if they are copied; sums on their way out
  std::optional<SplitTile> split;
  Value firstRow; ///< of the block of rows
  Point point;
};
} // namespace

/// Axes of several dims of the result go back into these.
void ProductLoops::stand(const Axis &axis, Value at, int64_t lane) {
  SmallVector<int64_t> extents;
  for (auto [dim, extent] : axis.parts)
    extents.push_back(extent);
  SmallVector<Value> indices = e.places.delinearize(at, extents);
  for (auto [part, index] : llvm::zip_equal(axis.parts, indices))
    point[part.first] = {index};
  if (!axis.parts.empty())
    point[axis.parts.back().first].lane = lane;
}

/// Few rows are bound by memory, and gain nothing.
bool ProductLoops::canSplit() const {
  auto isWide = [](Value value) { return getElementType(View::get(value).base).isF32(); };
  const Axis &inner = product.depth.back();
  return e.getHost().splitsProducts() && canTile(e, inner.extent) && lanes == kTileRows &&
         rows.extent >= 2 * kTileRows && isWide(product.a) && isWide(product.b) && compute.isF32() &&
         inner.a.stride == 1 && !inner.a.width && !rows.a.width;
}

/// Two by two tiles share what they load; few rows are one tile, by more columns.
void ProductLoops::chooseShape() {
  int64_t vectors = llvm::divideCeil(columns.extent, lanes);
  if ((product.isPaired && canTile(e, product.depth.back().extent)) || canSplit())
    shape = {std::min(rows.extent, 2 * kTileRows), std::min<int64_t>(vectors, rows.extent > kTileRows ? 2 : 4)};
  else
    shape = chooseTile(e.getNumRegisters(), {rows.extent, vectors, countExtent(product.depth) * lanes * 4});
}

/// Memory of its own is made where the kernel begins, once for all loops.
void ProductLoops::run() {
  if (product.isEmpty())
    return;
  lanes = columns.extent == 1 ? 1 : e.getVectorLanes(compute);
  chooseShape();
  for (const Axis &axis : product.depth)
    depth.push_back(axis.extent);
  isPacked = product.mustPack || wantsPanels();
  if (isPacked)
    packed = e.allocate(compute, countElements(depth) * shape.vectors * lanes);
  if (canSplit())
    split.emplace(e, depth, std::min(rows.extent, kMostRows), shape.vectors);
  if (wantsRows())
    packedRows =
        e.allocate(compute, countElements(depth) * llvm::alignTo(std::min(rows.extent, kMostRows), shape.rows));
  if (shape.rows > 1 || product.isPaired)
    block = e.allocate(compute, (shape.rows + (product.isPaired || split ? kTileRows : 0)) * shape.vectors * lanes);
  SmallVector<const Axis *> outer;
  SmallVector<int64_t> extents;
  for (ArrayRef<Axis> axes :
       {ArrayRef(product.batch), ArrayRef(product.rows).drop_back(), ArrayRef(product.columns).drop_back()})
    for (const Axis &axis : axes) {
      outer.push_back(&axis);
      extents.push_back(axis.extent);
    }
  e.walk(extents, {}, [&](ArrayRef<Value> at, Values) {
    Value placeA = a.getOrigin(), placeB = b.getOrigin();
    for (auto [axis, index] : llvm::zip_equal(outer, at)) {
      stand(*axis, index);
      placeA = e.places.add(placeA, a.along(axis->a, index).base);
      placeB = e.places.add(placeB, b.along(axis->b, index).base);
    }
    matrix(placeA, placeB);
    return Values();
  });
}

/// How far apart elements of a dim are, in bytes; 0 in panels, which lie one behind the other.
static int64_t getBytesApart(const ViewDim &dim, Value operand) {
  return dim.width ? 0 : dim.stride * getElementType(View::get(operand).base).getIntOrFloatBitWidth() / 8;
}

/// True where rows of a panel are so far apart that each is on a page of its own, or all of them in more memory than the second cache
/// has sets for, and so many blocks of rows walk the panel that a copy of it is worth its while: it costs less than half a block.
bool ProductLoops::wantsPanels() const {
  constexpr int64_t farApart = 2 << 10, farInAll = 2 << 20, fewestBlocks = 8;
  int64_t apart = getBytesApart(product.depth.back().b, product.b), steps = countElements(depth);
  return !product.isPaired && !canSplit() && lanes > 1 && !columns.b.width && columns.b.stride == 1 && steps >= lanes &&
         rows.extent >= fewestBlocks * shape.rows && (apart >= farApart || apart * steps >= farInAll);
}

/// True where numbers of a row are apart and those of neighboring rows are not, as in the gradient of a weight: a block of rows reads a
/// small part of each line that it touches, unless the numbers of its rows are brought together first.
bool ProductLoops::wantsRows() const {
  constexpr int64_t farApart = 1 << 10, fewestPanels = 3;
  return !product.isPaired && !canSplit() && lanes > 1 && shape.rows > 1 && !rows.a.width && rows.a.stride == 1 &&
         countElements(depth) >= lanes && columns.extent >= fewestPanels * shape.vectors * lanes &&
         getBytesApart(product.depth.back().a, product.a) >= farApart;
}

/// A packed panel serves all rows; where these are packed or split, too, a block of them.
void ProductLoops::matrix(Value placeA, Value placeB) {
  int64_t rowsPerBlock =
      isPacked && !split && !packedRows ? rows.extent : std::max<int64_t>(1, kMostRows / shape.rows) * shape.rows;
  int64_t whole = columns.extent / lanes / shape.vectors * shape.vectors;
  overBlocks(e, rows.extent, rowsPerBlock, [&](Value first, int64_t numRows) {
    firstRow = first;
    if (split)
      splitRows(placeA, numRows);
    if (packedRows)
      packRows(placeA, numRows);
    auto panelAt = [&](Value column, int64_t vectors) {
      if (isPacked)
        pack(placeB, column, vectors);
      if (split)
        split->setVectors(vectors, [&](int64_t v, ArrayRef<Value> k) { return loadVector(placeB, column, v, k); });
      panel(placeA, placeB, column, vectors, numRows);
    };
    if (whole > 0)
      overBlocks(e, whole * lanes, shape.vectors * lanes,
                 [&](Value column, int64_t) { panelAt(column, shape.vectors); });
    if (int64_t rest = columns.extent - whole * lanes)
      panelAt(e.places.number(whole * lanes), llvm::divideCeil(rest, lanes));
  });
}

void ProductLoops::splitRows(Value placeA, int64_t numRows) {
  split->setNumbers(numRows, [&](Value row, ArrayRef<Value> k) {
    return a.load(locateNumber(placeA, e.places.add(firstRow, row), 0, k));
  });
}

/// Blocks of rows against one panel, which stays in the second cache.
void ProductLoops::panel(Value placeA, Value placeB, Value column, int64_t vectors, int64_t numRows) {
  overBlocks(e, numRows, shape.rows,
             [&](Value inBlock, int64_t height) { tile(placeA, placeB, inBlock, column, {height, vectors}); });
}

/// Lanes of vector `vector` of a panel that exist. A panel that lacks some begins at a known column.
int64_t ProductLoops::getActive(int64_t vector, Value column) const {
  std::optional<int64_t> known = PlaceBuilder::getKnown(column);
  return known ? std::min(lanes, columns.extent - *known - vector * lanes) : lanes;
}

/// Columns side by side, as in panels of one vector; what lies behind the last column is never read by a result.
void ProductLoops::pack(Value placeB, Value column, int64_t vectors) {
  const Axis &inner = product.depth.back();
  // Of a few steps squares are mostly empty.
  bool isFull = getActive(vectors - 1, column) == lanes && 2 * inner.extent >= lanes;
  if (product.mustPack && inner.b.stride == 1 && !inner.b.width && isFull && compute.isF32() && lanes > 1)
    return packTurned(placeB, column, vectors);
  if (!columns.b.width)
    return packStraight(placeB, column, vectors);
  e.walk(depth, {}, [&](ArrayRef<Value> k, Values) {
    Value place = placeB;
    for (auto [axis, index] : llvm::zip_equal(product.depth, k))
      place = e.places.add(place, b.along(axis.b, index).base);
    Value to = e.places.mul(e.places.linearize(k, depth), lanes);
    int64_t count = (vectors - 1) * lanes + getActive(vectors - 1, column);
    e.asScalar([&] {
      e.loop(count, [&](Value lane) {
        OffsetPlace from = b.along(columns.b, e.places.add(column, lane));
        Value number = b.load(e.places.add(place, from.base));
        Value vector = e.places.mul(e.places.div(lane, lanes), countElements(depth) * lanes);
        e.store(packed, number, {e.places.add(e.places.add(to, vector), e.places.rem(lane, lanes))});
      });
      return 0;
    });
    return Values();
  });
}

/// A vector at a time, from columns as far apart as they are. Lanes behind the last column hold anything that is a number.
void ProductLoops::packStraight(Value placeB, Value column, int64_t vectors) {
  e.walk(depth, {}, [&](ArrayRef<Value> k, Values) {
    Value to = e.places.mul(e.places.linearize(k, depth), lanes);
    for (int64_t v = 0; v < vectors; ++v) {
      Value vector = e.withLanes(lanes, getActive(v, column),
                                 [&] { return b.load(locateVector(placeB, column, v, k), columns.b.stride); });
      e.withLanes(lanes, lanes, [&] {
        e.store(packed, vector, {e.places.add(to, v * countElements(depth) * lanes), 1});
        return 0;
      });
    }
    return Values();
  });
}

/// Blocks of rows one behind the other, and in them the numbers of a step of the depth side by side, as they are read:
///
///   rows 0..7: k = 0  1  2 ..  |  rows 8..15: k = 0  1  2 ..
///
/// Some steps at a time, so that a line is still near when the next rows take their part of it.
void ProductLoops::packRows(Value placeA, int64_t numRows) {
  constexpr int64_t stepsAtOnce = 8; // their lines may all share a set of the first cache
  PlaceBuilder &p = e.places;
  int64_t steps = countElements(depth);
  auto pack = [&](Value inBlock, int64_t height, ArrayRef<Value> k) {
    Value from = locateNumber(placeA, p.add(firstRow, inBlock), 0, k);
    Value to = p.add(p.mul(inBlock, steps), p.mul(p.linearize(k, depth), shape.rows));
    for (int64_t row = 0; row < height; row += lanes)
      e.withLanes(lanes, std::min(lanes, height - row), [&] {
        e.store(packedRows, a.load(p.add(from, row)), {p.add(to, row), 1});
        return 0;
      });
  };
  e.walk(ArrayRef(depth).drop_back(), {}, [&](ArrayRef<Value> outer, Values) {
    overBlocks(e, depth.back(), stepsAtOnce, [&](Value first, int64_t count) {
      overBlocks(e, numRows, shape.rows, [&](Value inBlock, int64_t height) {
        e.loop(count, [&](Value step) {
          SmallVector<Value> k(outer);
          k.push_back(p.add(first, step));
          pack(inBlock, height, k);
        });
      });
    });
    return Values();
  });
}

/// Squares of the depth and the columns, turned in registers; the last one ends with the depth, whatever it begins with. A depth
/// shorter than a vector, as the 9 places of a kernel are that lie side by side in a weight, is a part of a square.
void ProductLoops::packTurned(Value placeB, Value column, int64_t vectors) {
  int64_t size = countElements(depth) * lanes, height = std::min(lanes, depth.back());
  SmallVector<int64_t> steps(depth);
  steps.back() = llvm::divideCeil(depth.back(), lanes);
  e.walk(steps, {}, [&](ArrayRef<Value> step, Values) {
    SmallVector<Value> k(step);
    k.back() = e.places.mul(k.back(), lanes);
    if (depth.back() > lanes && depth.back() % lanes != 0)
      k.back() = e.places.clamp(k.back(), 0, depth.back() - lanes);
    Value place = placeB;
    for (auto [axis, index] : llvm::zip_equal(product.depth, k))
      place = e.places.add(place, b.along(axis.b, index).base);
    Value to = e.places.mul(e.places.linearize(k, depth), lanes);
    for (int64_t v = 0; v < vectors; ++v)
      e.withLanes(lanes, lanes, [&] {
        Values square;
        for (int64_t lane = 0; lane < lanes; ++lane) {
          OffsetPlace from = b.along(columns.b, column, v * lanes + lane);
          Value at = e.places.add(e.places.add(place, from.base), from.constant);
          square.push_back(e.withLanes(lanes, height, [&] { return b.load(at); }));
        }
        Values turned = transposeBlock(e, square);
        for (auto [lane, vector] : llvm::enumerate(ArrayRef(turned).take_front(height)))
          e.store(packed, vector, {e.places.add(to, v * size + int64_t(lane) * lanes), 1});
        return 0;
      });
    return Values();
  });
}

/// What does not change along the depth is added first, so that it is computed outside of it.
Value ProductLoops::locateNumber(Value placeA, Value row, int64_t r, ArrayRef<Value> k) {
  PlaceBuilder &p = e.places;
  OffsetPlace place = a.along(rows.a, row, r);
  Value at = p.add(placeA, place.base);
  for (auto [axis, index] : llvm::zip_equal(product.depth, k))
    at = p.add(at, a.along(axis.a, index).base);
  return p.add(at, place.constant);
}

Value ProductLoops::locateVector(Value placeB, Value column, int64_t v, ArrayRef<Value> k) {
  PlaceBuilder &p = e.places;
  OffsetPlace place = b.along(columns.b, column, v * lanes);
  Value at = p.add(placeB, place.base);
  for (auto [axis, index] : llvm::zip_equal(product.depth, k))
    at = p.add(at, b.along(axis.b, index).base);
  return p.add(at, place.constant);
}

/// True if panels of weights come from memory one after the other, each for several blocks of rows.
bool ProductLoops::fetchesAhead() const {
  constexpr int64_t fewest = 4, most = 256;
  return columns.b.width == lanes && lanes > 1 && rows.extent >= fewest * shape.rows && rows.extent <= most;
}

/// Asks for the next panel, line by line, so that all of it has come when the last block of rows is done with this one.
void ProductLoops::fetchAhead(Value placeB, Value row, Value column, ArrayRef<Value> k) {
  PlaceBuilder &p = e.places;
  int64_t apart = llvm::divideCeil(shape.vectors * lanes, llvm::divideCeil(rows.extent, shape.rows));
  OffsetPlace next = b.along(columns.b, column, shape.vectors * lanes);
  Value steps = p.add(p.mul(p.div(row, shape.rows), countElements(depth)), p.linearize(k, depth));
  b.prefetch(p.add(p.add(p.add(placeB, next.base), p.mul(steps, apart)), next.constant));
}

/// As many columns as there are lanes, side by side.
Value ProductLoops::loadVector(Value placeB, Value column, int64_t v, ArrayRef<Value> k) {
  PlaceBuilder &p = e.places;
  int64_t active = columns.b.width || isPacked ? lanes : getActive(v, column);
  return e.withLanes(lanes, active, [&] {
    if (!isPacked)
      return b.load(locateVector(placeB, column, v, k));
    return e.load(packed, compute,
                  {p.add(p.mul(p.linearize(k, depth), lanes), v * countElements(depth) * lanes), lanes > 1});
  });
}

Values ProductLoops::sum(Value placeA, Value placeB, Value inBlock, Value column, TileShape own) {
  PlaceBuilder &p = e.places;
  Value row = p.add(firstRow, inBlock), base = p.mul(inBlock, countElements(depth));
  auto scalar = [&](int64_t r, ArrayRef<Value> k) {
    if (packedRows)
      return e.load(packedRows, compute, {p.add(p.add(base, p.mul(p.linearize(k, depth), shape.rows)), r)});
    return a.load(locateNumber(placeA, row, r, k));
  };
  auto vector = [&](int64_t v, ArrayRef<Value> k) {
    if (v == 0 && fetchesAhead())
      fetchAhead(placeB, row, column, k);
    return loadVector(placeB, column, v, k);
  };
  Values none(own.rows * own.vectors, e.elements.number(e.withLanes(compute), 0));
  return sumDeepTile(e, own, depth, none, scalar, vector);
}

/// Of pairs all sums go by way of memory. There are places for rows in front of the block.
void ProductLoops::tile(Value placeA, Value placeB, Value inBlock, Value column, TileShape own) {
  int64_t apart = own.vectors * lanes;
  Value row = e.places.add(firstRow, inBlock);
  if (split) {
    split->multiply(own, rows.extent, inBlock, block, e.places.number(kTileRows * apart), apart);
    return finishBlock(row, column, own, kTileRows);
  }
  if (!product.isPaired)
    return finish(e.withLanes(lanes, lanes, [&] { return sum(placeA, placeB, inBlock, column, own); }), row, column,
                  own);
  auto number = [&](int64_t r, ArrayRef<Value> k) { return locateNumber(placeA, row, r, k); };
  auto vector = [&](int64_t v, ArrayRef<Value> k) { return locateVector(placeB, column, v, k); };
  multiplyPairs(e, {own,
                    rows.extent,
                    {depth.begin(), depth.end()},
                    Value(),
                    a.getBuffer(),
                    rows.a.stride,
                    number,
                    b.getBuffer(),
                    vector,
                    block,
                    e.places.number(kTileRows * apart),
                    apart});
  finishBlock(row, column, own, kTileRows);
}

/// Sums of one row go on as they are.
void ProductLoops::finish(const Values &sums, Value row, Value column, TileShape own) {
  if (own.rows == 1)
    return handOutRow(row, column, own, [&](int64_t v) { return sums[v]; });
  for (auto [i, sum] : llvm::enumerate(sums))
    e.withLanes(lanes, lanes, [&, i = i, sum = sum] {
      e.store(block, sum, {e.places.number(int64_t(i) * lanes), lanes > 1});
      return 0;
    });
  finishBlock(row, column, own, 0);
}

/// By way of memory in the first cache: what is done with a sum is written once a vector, not once a sum. The block's first
/// row is row `first` in that memory.
void ProductLoops::finishBlock(Value row, Value column, TileShape own, int64_t first) {
  PlaceBuilder &p = e.places;
  e.loop(own.rows, [&](Value r) {
    handOutRow(p.add(row, r), column, own, [&](int64_t v) {
      Value place = p.add(p.mul(p.add(r, first), own.vectors * lanes), v * lanes);
      return e.withLanes(lanes, lanes, [&] { return e.load(block, compute, {place, lanes > 1}); });
    });
  });
}

void ProductLoops::handOutRow(Value row, Value column, TileShape own, function_ref<Value(int64_t)> sum) {
  stand(rows, row);
  for (int64_t v = 0; v < own.vectors; ++v)
    e.withLanes(lanes, getActive(v, column), [&] {
      handOut(sum(v), e.places.add(column, v * lanes));
      return 0;
    });
}

/// Rounded once, behind the whole sum.
void ProductLoops::handOut(Value sum, Value column) {
  stand(columns, column, lanes > 1);
  sink(point, e.elements.narrow(sum, ElementBuilder::getHeldType(getElementType(product.result))));
}

void cleave::codegen::runProduct(Emitter &e, const Product &product, TileSink sink) {
  ProductLoops(e, product, sink).run();
}
