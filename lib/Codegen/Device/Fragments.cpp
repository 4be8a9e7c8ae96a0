//===- Fragments.cpp - products that a warp makes together ----------------===//
//
// Of four matrices of 8 x 16 bytes that ldmatrix loads, lane l brings the address of row l % 8 of matrix l / 8. For rows the
// second matrix is the next 8 rows and the third the next half of the depth; for columns it is the other way round, so that two
// words each belong to 8 columns. tf32 that lies along rows or columns is loaded number by number, for ldmatrix turns 16 bits only.
//
//===----------------------------------------------------------------------===//
#include "Fragments.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace cleave::codegen;

Fragments::Fragments(DeviceEmitter &e, Type element)
    : e(e), element(element), unit(128 / element.getIntOrFloatBitWidth()) {
  assert(canMultiply(element) && "a type without fragments");
  PlaceBuilder &p = e.places;
  lane = p.rem(e.getThread(), kWarp);
  group = p.div(lane, 4);
  inGroup = p.rem(lane, 4);
  column = p.mul(inGroup, 2);
}

/// Words of tf32 that are not along the depth are each lane's own.
Value Fragments::getLanePlace(const FragmentTile &tile) const {
  PlaceBuilder &p = e.places;
  auto place = [&](Value outer, Value depth) {
    Value slow = tile.alongDepth ? outer : depth, fast = tile.alongDepth ? depth : outer;
    return p.add(p.mul(slow, tile.pitch), fast);
  };
  if (element.isF32() && !tile.alongDepth)
    return place(group, tile.inOrderOfSums ? column : inGroup);
  Value row = p.rem(lane, 8), second = p.rem(p.div(lane, 8), 2), third = p.div(lane, 16);
  Value inOuter = tile.isColumns ? third : second, inDepth = tile.isColumns ? second : third;
  // The 8 rows of a matrix in memory are along the outer dim, or along the depth.
  return tile.alongDepth ? place(p.add(row, p.mul(inOuter, 8)), p.mul(inDepth, unit))
                         : place(p.mul(inOuter, unit), p.add(row, p.mul(inDepth, 8)));
}

Value Fragments::toWord(Value piece) {
  auto word = VectorType::get({1}, e.b.getI32Type());
  return vector::ExtractOp::create(e.b, e.loc, vector::BitCastOp::create(e.b, e.loc, word, piece), 0);
}

/// The product would cut bits off.
Value Fragments::round(Value number) {
  return NVVM::ConvertFloatToTF32Op::create(e.b, e.loc, e.b.getI32Type(), number, NVVM::FPRoundingMode::RNA);
}

Values Fragments::load(const FragmentTile &tile, Value place) {
  Values words;
  if (element.isF32() && !tile.alongDepth) {
    for (int64_t i = 0; i < 4; ++i) {
      int64_t inOuter = tile.isColumns ? i / 2 : i % 2, inDepth = tile.isColumns ? i % 2 : i / 2;
      int64_t offset = tile.at(8 * inOuter, tile.inOrderOfSums ? inDepth : unit * inDepth);
      Value number = e.asScalar([&] { return e.load(tile.memory, element, {e.places.add(place, offset)}); });
      words.push_back(number);
    }
  } else {
    Type stored = ElementBuilder::getStoredType(element);
    auto type = VectorType::get({4, 32 / stored.getIntOrFloatBitWidth()}, stored);
    Value loaded = nvgpu::LdMatrixOp::create(e.b, e.loc, type, tile.memory, place, /*transpose=*/!tile.alongDepth,
                                             /*numTiles=*/4);
    for (int64_t i = 0; i < 4; ++i) {
      Value piece = vector::ExtractOp::create(e.b, e.loc, loaded, i);
      words.push_back(element.isF32() ? Value(vector::ExtractOp::create(e.b, e.loc, piece, 0)) : toWord(piece));
    }
  }
  if (element.isF32())
    for (Value &word : words)
      word = round(word);
  return words;
}

void Fragments::multiply(ValueRange rows, ValueRange columns, MutableArrayRef<Value> sums) {
  NVVM::MMATypes kind = element.isF16()    ? NVVM::MMATypes::f16
                        : element.isBF16() ? NVVM::MMATypes::bf16
                                           : NVVM::MMATypes::tf32;
  // f16 comes as pairs, the others as words.
  auto prepare = [&](ValueRange words) {
    auto pair = VectorType::get({2}, e.b.getF16Type());
    return llvm::map_to_vector<4>(words, [&](Value word) {
      return element.isF16() ? Value(LLVM::BitcastOp::create(e.b, e.loc, pair, word)) : word;
    });
  };
  Type f32 = e.b.getF32Type();
  auto type = LLVM::LLVMStructType::getLiteral(e.b.getContext(), {f32, f32, f32, f32});
  Value made = NVVM::MmaOp::create(e.b, e.loc, type, prepare(rows), prepare(columns), ValueRange(sums),
                                   ArrayRef<int64_t>{kRows, kColumns, getDepth()}, std::nullopt, std::nullopt,
                                   std::array<NVVM::MMATypes, 2>{kind, kind},
                                   std::array<NVVM::MMALayout, 2>{NVVM::MMALayout::row, NVVM::MMALayout::col});
  for (auto [i, sum] : llvm::enumerate(sums))
    sum = LLVM::ExtractValueOp::create(e.b, e.loc, made, int64_t(i));
}

/// Of tf32 the two columns of a lane count as the t-th and the (t + 4)-th of the depth.
Values Fragments::toRows(ValueRange sums) {
  if (element.isF32())
    return {round(sums[0]), round(sums[2]), round(sums[1]), round(sums[3])};
  Values rows;
  for (; !sums.empty(); sums = sums.drop_front(2))
    rows.push_back(pack(sums[0], sums[1]));
  return rows;
}

/// A word of two neighbors.
Value Fragments::pack(Value low, Value high) {
  return e.withLanes(2, 2, [&] {
    Value pair =
        vector::FromElementsOp::create(e.b, e.loc, VectorType::get({2}, e.b.getF32Type()), ValueRange{low, high});
    Value halves = e.elements.narrow(pair, element);
    return toWord(element.isBF16() ? e.elements.bitcast(halves, e.b.getI16Type()) : halves);
  });
}
