//===- PairTile.cpp - sums of products of bf16 ----------------------------===//
//
// LLVM's intrinsics are called as they are; it chooses registers for tiles, and configures them where a kernel begins. A
// tile's sums stay in their register while the depth is walked, as those of vectors do.
//
//   numbers, row-major       pairs, side by side for neighboring columns
//     r0  01 23 45 ..          k01  c0 c1 c2 .. c15
//     r1  01 23 45 ..          k23  c0 c1 c2 .. c15        a row of a tile is 64 bytes of either
//
// Registers of tiles have one shape each for as long as a kernel runs, so all tiles of a kernel have as many rows, and none
// is shorter at the end: eight registers would not suffice for two shapes.
//
//===----------------------------------------------------------------------===//
#include "PairTile.h"
#include "../Emitter.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;

//===----------------------------------------------------------------------===//
// Pairs
//===----------------------------------------------------------------------===//

/// Memory knows no pairs: twice as many halves are loaded as one vector.
Value cleave::codegen::loadPairs(Emitter &e, Value buffer, Value place) {
  int64_t lanes = e.getLanes();
  if (cast<MemRefType>(buffer.getType()).getElementType().isInteger(32))
    return e.load(buffer, e.b.getI32Type(), {place, lanes > 1});
  auto halves = VectorType::get({2 * lanes}, cast<MemRefType>(buffer.getType()).getElementType());
  Value loaded = vector::LoadOp::create(e.b, e.loc, halves, buffer, place);
  Value pairs = vector::BitCastOp::create(e.b, e.loc, VectorType::get({lanes}, e.b.getI32Type()), loaded);
  return lanes > 1 ? pairs : Value(vector::ExtractOp::create(e.b, e.loc, pairs, 0));
}

/// The low or high halves of pairs as f32: bf16 is the upper half of f32.
static Value widenHalf(Emitter &e, Value pairs, bool isHigh) {
  Type type = pairs.getType();
  Value bits = isHigh ? Value(arith::AndIOp::create(e.b, e.loc, pairs, e.elements.integer(type, -65536)))
                      : arith::ShLIOp::create(e.b, e.loc, pairs, e.elements.integer(type, 16));
  return e.elements.bitcast(bits, e.b.getF32Type());
}

/// The instruction is there for vectors of the full width alone.
static bool hasDot(Emitter &e) { return e.getHost().hasPairProducts() && e.getLanes() == 16; }

/// The processor adds both products of a lane to its sum, and flushes denormals to zero on the way.
static Value dot(Emitter &e, Value x, Value y, Value sum) {
  auto halves = VectorType::get({2 * e.getLanes()}, e.b.getBF16Type());
  SmallVector<Value> operands{sum};
  for (Value pairs : {x, y})
    operands.push_back(vector::BitCastOp::create(e.b, e.loc, halves, pairs));
  return LLVM::CallIntrinsicOp::create(e.b, e.loc, sum.getType(), e.b.getStringAttr("llvm.x86.avx512bf16.dpbf16ps.512"),
                                       operands)
      .getResult(0);
}

Value cleave::codegen::roundToHalves(Emitter &e, Value vector) {
  if (e.getHost().roundsToHalves() && e.getLanes() == 16) {
    auto type = VectorType::get({16}, e.b.getBF16Type());
    auto name = e.b.getStringAttr("llvm.x86.avx512bf16.cvtneps2bf16.512");
    vector = LLVM::CallIntrinsicOp::create(e.b, e.loc, type, name, ValueRange{vector}).getResult(0);
  } else {
    vector = e.elements.narrow(vector, e.b.getBF16Type());
  }
  return e.elements.bitcast(vector, e.b.getI16Type());
}

/// Calls `body` for steps of the depth with the numbers that they begin at.
static Values overDepth(Emitter &e, const PairBlock &block, int64_t step, Values init,
                        function_ref<Values(ArrayRef<Value>, Values)> body) {
  auto at = [&](ArrayRef<Value> index, Values carried) {
    SmallVector<Value> k(index);
    k.back() = e.places.mul(k.back(), step);
    return body(k, carried);
  };
  if (block.end)
    return e.loop(e.places.number(0), e.places.div(block.end, step), 1, init,
                  [&](Value index, Values carried) { return at(index, carried); });
  SmallVector<int64_t> steps(block.depth);
  steps.back() /= step;
  return e.walk(steps, init, at);
}

/// Both halves of a vector are widened once for all rows.
static void multiplyVectors(Emitter &e, const PairBlock &block) {
  bool isDot = hasDot(e);
  auto [rows, width, cost] = block.shape;
  Values none(rows * width, e.elements.number(e.withLanes(e.b.getF32Type()), 0));
  Values sums = overDepth(e, block, 2, none, [&, rows = rows, width = width](ArrayRef<Value> k, Values carried) {
    Values vectors, high;
    for (int64_t v = 0; v < width; ++v)
      vectors.push_back(loadPairs(e, block.pairs, block.vector(v, k)));
    if (!isDot)
      for (Value &vector : vectors) {
        high.push_back(widenHalf(e, vector, true));
        vector = widenHalf(e, vector, false);
      }
    for (int64_t row = 0; row < rows; ++row) {
      Value number = e.splat(e.asScalar([&] { return loadPairs(e, block.numbers, block.number(row, k)); }));
      Value low = isDot ? number : widenHalf(e, number, false);
      Value upper = isDot ? Value() : widenHalf(e, number, true);
      for (int64_t v = 0; v < width; ++v) {
        Value &sum = carried[row * width + v];
        sum = isDot ? dot(e, low, vectors[v], sum) : e.elements.fma(low, vectors[v], sum);
        if (!isDot)
          sum = e.elements.fma(upper, high[v], sum);
      }
    }
    return carried;
  });
  for (auto [i, sum] : llvm::enumerate(sums)) {
    int64_t place = int64_t(i) / width * block.outApart + int64_t(i) % width * e.getLanes();
    e.store(block.out, sum, {e.places.add(block.place, place), e.getLanes() > 1});
  }
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

namespace {
/// Where a tile begins, and how many places of its buffer rows are apart.
struct TilePlace {
  Value buffer, place;
  int64_t apart;
};

/// Calls of the intrinsics, for tiles of one number of rows. They take rows and bytes of a row with each call: what LLVM
/// configures registers by.
class Tiles {
public:
  Tiles(Emitter &e, int64_t rows) : e(e), rows(number(rows)) {}

  Type getType() const { return LLVM::LLVMX86AMXType::get(e.b.getContext()); }
  Value zero() { return call("llvm.x86.tilezero.internal", {rows, bytes}); }
  Value loadNumbers(const TilePlace &from) { return load(rows, from); }
  Value loadPairs(const TilePlace &from) { return load(number(kTileRows), from); }
  Value multiply(Value x, Value y, Value sum) {
    return call("llvm.x86.tdpbf16ps.internal", {rows, bytes, bytes, sum, x, y});
  }
  void store(Value sum, const TilePlace &to) {
    SmallVector<Value> operands{rows, bytes, getPointer(to), getApart(to), sum};
    LLVM::CallIntrinsicOp::create(e.b, e.loc, e.b.getStringAttr("llvm.x86.tilestored64.internal"), operands);
  }

private:
  Value number(int64_t value) { return e.elements.integer(e.b.getI16Type(), value); }
  Value call(StringRef name, ArrayRef<Value> operands) {
    return LLVM::CallIntrinsicOp::create(e.b, e.loc, getType(), e.b.getStringAttr(name), operands).getResult(0);
  }
  Value load(Value count, const TilePlace &from) {
    return call("llvm.x86.tileloadd64.internal", {count, bytes, getPointer(from), getApart(from)});
  }
  static int64_t getBytes(const TilePlace &place) {
    return cast<MemRefType>(place.buffer.getType()).getElementTypeBitWidth() / 8;
  }
  Value getApart(const TilePlace &place) { return e.elements.integer(e.b.getI64Type(), place.apart * getBytes(place)); }
  /// LLVM takes the way by an integer back.
  Value getPointer(const TilePlace &place) {
    auto toInteger = [&](Value value) {
      return arith::IndexCastOp::create(e.b, e.loc, e.b.getI64Type(), value).getResult();
    };
    auto type = LLVM::LLVMPointerType::get(e.b.getContext());
    Value begin = toInteger(memref::ExtractAlignedPointerAsIndexOp::create(e.b, e.loc, place.buffer));
    begin = LLVM::IntToPtrOp::create(e.b, e.loc, type, begin);
    return LLVM::GEPOp::create(e.b, e.loc, type, cast<MemRefType>(place.buffer.getType()).getElementType(), begin,
                               ValueRange{toInteger(place.place)});
  }

  Emitter &e;
  Value rows, bytes = number(64);
};
} // namespace

bool cleave::codegen::usesTiles(ModuleOp kernels) {
  return kernels
      .walk([](LLVM::CallIntrinsicOp call) {
        return call.getIntrin().starts_with("llvm.x86.tile") ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

bool cleave::codegen::canTile(Emitter &e, int64_t depth) {
  return e.getHost().hasTiles() && e.getVectorLanes(e.b.getF32Type()) == kTileRows && depth % kTileDepth == 0;
}

/// Tiles of numbers are loaded once for all columns of a step: of eight registers two by two tiles take four for sums, two
/// for numbers, and one or two for pairs.
///
/// All tiles have as many rows: the last one begins early enough, and computes some rows a second time.
static void multiplyTiles(Emitter &e, const PairBlock &block) {
  int64_t height = std::min(kTileRows, block.allRows), width = block.shape.vectors;
  int64_t tall = (block.shape.rows + height - 1) / height;
  int64_t pairBits = cast<MemRefType>(block.pairs.getType()).getElementTypeBitWidth();
  auto getFirst = [&](int64_t tile) { return std::min(tile * height, block.shape.rows - height); };
  Tiles tiles(e, height);
  Values sums;
  for (int64_t i = 0; i < tall * width; ++i)
    sums.push_back(tiles.zero());
  sums = overDepth(e, block, kTileDepth, sums, [&](ArrayRef<Value> k, Values carried) {
    Values loaded;
    for (int64_t tile = 0; tile < tall; ++tile)
      loaded.push_back(tiles.loadNumbers({block.numbers, block.number(getFirst(tile), k), block.apart}));
    for (int64_t v = 0; v < width; ++v) {
      Value columns = tiles.loadPairs({block.pairs, block.vector(v, k), 32 * kTileRows / pairBits});
      for (int64_t tile = 0; tile < tall; ++tile) {
        Value &sum = carried[tile * width + v];
        sum = tiles.multiply(loaded[tile], columns, sum);
      }
    }
    return carried;
  });
  for (auto [i, sum] : llvm::enumerate(sums)) {
    int64_t place = getFirst(int64_t(i) / width) * block.outApart + int64_t(i) % width * kTileRows;
    tiles.store(sum, {block.out, e.places.add(block.place, place), block.outApart});
  }
}

void cleave::codegen::multiplyPairs(Emitter &e, const PairBlock &block) {
  int64_t lanes = e.getVectorLanes(e.b.getF32Type());
  if (canTile(e, block.depth.back()))
    return multiplyTiles(e, block);
  e.withLanes(lanes, lanes, [&] {
    multiplyVectors(e, block);
    return 0;
  });
}
