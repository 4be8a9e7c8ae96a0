//===- Turn.cpp - transposes in registers ---------------------------------===//
//
// Where the last dim of a result is another than the operand's, either loads or stores would go element by element. Instead
// vectors are read along the one, turned 16 x 16 in registers (Tile.h), and stored along the other:
//
//   operand   ─────▶ wide        result   ─────▶ tall
//         tall│ a b c                wide│ a d
//             ▼ d e f                    ▼ b e
//                                          c f
//
// Of a concatenation each operand goes by itself, so that no square is of two.
//
//===----------------------------------------------------------------------===//
#include "Turn.h"
#include "../Emitter.h"
#include "../Tile.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;

bool cleave::codegen::canTurn(nn::TransposeOp op, int64_t width) {
  return width > 1 && op.getPermutation().back() != int64_t(op.getPermutation().size()) - 1 &&
         getElementType(op).isF32();
}

namespace {

/// One value, transposed into a part of a buffer.
struct Turner {
  Emitter &e;
  nn::TransposeOp op;
  int64_t width;
  Value buffer;
  function_ref<Index(const Point &)> placeOf;
  ArrayRef<int64_t> order = op.getPermutation();
  int64_t last = int64_t(order.size()) - 1;
  /// Where the operand's last dim is in the result.
  int64_t wide = llvm::find(order, last) - order.begin();

  void run(Value piece, int64_t dim, int64_t start);
  Values load(Value piece, const Point &at, int64_t numTall, int64_t numWide);
};

} // namespace

/// Rows that do not exist are the last one again.
Values Turner::load(Value piece, const Point &at, int64_t numTall, int64_t numWide) {
  Values vectors;
  for (int64_t i = 0; i < width; ++i) {
    Point from(order.size());
    for (auto [to, source] : llvm::enumerate(order))
      from[source] = at[to];
    from[last].lane = 1;
    Index &row = from[order[last]];
    row.base = e.places.add(row.base, std::min(i, numTall - 1));
    vectors.push_back(e.withLanes(width, numWide, [&] { return e.eval(piece, from); }));
  }
  return e.withLanes(width, width, [&] { return transposeBlock(e, vectors); });
}

/// What lies from `start` on of the operand's dim `dim`.
void Turner::run(Value piece, int64_t dim, int64_t start) {
  SmallVector<int64_t> shape = llvm::map_to_vector(order, [&](int64_t from) { return getShape(piece)[from]; });
  SmallVector<int64_t> outer(shape);
  outer[wide] = outer[last] = 1;
  int64_t moved = llvm::find(order, dim) - order.begin();
  auto square = [&](const Point &at, int64_t numTall, int64_t numWide) {
    Values turned = load(piece, at, numTall, numWide);
    for (auto [i, vector] : llvm::enumerate(ArrayRef(turned).take_front(numWide))) {
      Point to = at;
      to[wide].base = e.places.add(to[wide].base, int64_t(i));
      to[last].lane = 1;
      to[moved].base = e.places.add(to[moved].base, start);
      e.withLanes(width, numTall, [&, vector = vector] {
        e.store(buffer, vector, placeOf(to));
        return 0;
      });
    }
  };
  e.overAll(outer, [&](const Point &point) {
    overBlocks(e, shape[wide], width, [&](Value first, int64_t numWide) {
      overBlocks(e, shape[last], width, [&](Value column, int64_t numTall) {
        Point at = point;
        at[wide] = {first};
        at[last] = {column};
        square(at, numTall, numWide);
      });
    });
  });
}

void cleave::codegen::turn(Emitter &e, nn::TransposeOp op, int64_t width, Value buffer,
                           function_ref<Index(const Point &)> placeOf) {
  Turner turner{e, op, width, buffer, placeOf};
  auto concat = op.getInput().getDefiningOp<nn::ConcatOp>();
  if (!concat)
    return turner.run(op.getInput(), 0, 0);
  int64_t start = 0;
  for (Value piece : concat.getInputs()) {
    turner.run(piece, concat.getDim(), start);
    start += getShape(piece)[concat.getDim()];
  }
}
