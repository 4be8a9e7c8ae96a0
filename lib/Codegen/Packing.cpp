//===- Packing.cpp - lowerings of exec.pack and exec.unpack ---------------===//
//
// Element by element, for whoever has no template for panels. What lies behind the end of a dim in a panel is 0.
//
//===----------------------------------------------------------------------===//
#include "Emitter.h"
#include "cleave/Dialect/Exec/IR/Exec.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;

int64_t cleave::codegen::getPanelWidth(const HostTarget &target, Type element) {
  return target.getVectorBytes() * 8 / ElementBuilder::getComputeType(element).getIntOrFloatBitWidth();
}

/// Where an element of the plain tensor lies in the packed one.
static Point locate(Emitter &e, const exec::Layout &layout, const Point &plain) {
  PlaceBuilder &p = e.places;
  Point packed;
  for (int64_t dim : layout.order)
    packed.push_back(plain[dim]);
  if (layout.width == 0)
    return packed;
  Value last = packed.pop_back_val().base, depth = packed.back().base;
  packed.back() = {p.div(depth, layout.interleave)};
  packed.insert(packed.begin() + layout.batch, Index{p.div(last, layout.width)});
  packed.push_back({p.rem(last, layout.width)});
  packed.push_back({p.rem(depth, layout.interleave)});
  return packed;
}

/// Neighbors may lie in two panels, so lanes go one by one.
static Value pullUnpack(Emitter &e, exec::UnpackOp op, const Point &point) {
  if (!isUniform(point) && op.getLayout().width)
    return e.perLane(op.getResult(), point);
  return e.eval(op.getInput(), locate(e, op.getLayout(), point));
}

/// The place of each dim in the packed tensor, and whether all of them are inside: k and n are put together from panel and
/// place in it, and may lie behind the ends of their dims, where zeros stand.
///
/// Floats are not cast here: kernels read what has been packed and cast when it was loaded, and pack nothing themselves.
static Value pullPack(Emitter &e, exec::PackOp op, const Point &point) {
  exec::Layout layout = op.getLayout();
  ArrayRef<int64_t> shape = getShape(op.getInput());
  PlaceBuilder &p = e.places;
  Point plain(shape.size());
  if (layout.width == 0) {
    for (auto [place, dim] : llvm::enumerate(layout.order))
      plain[dim] = point[place];
    return e.eval(op.getInput(), plain);
  }
  if (!isUniform(point))
    return e.perLane(op.getResult(), point);
  for (auto [place, dim] : llvm::enumerate(ArrayRef(layout.order).drop_back()))
    plain[dim] = point[int64_t(place) >= layout.batch ? place + 1 : place];
  int64_t depth = layout.order[layout.order.size() - 2], last = layout.order.back();
  Value k = p.add(p.mul(plain[depth].base, layout.interleave), point.back().base);
  Value n = p.add(p.mul(point[layout.batch].base, layout.width), point[point.size() - 2].base);
  plain[depth] = {p.clamp(k, 0, std::max<int64_t>(shape[depth] - 1, 0))};
  plain[last] = {p.clamp(n, 0, std::max<int64_t>(shape[last] - 1, 0))};
  Value isInside = e.elements.both(p.isLess(k, shape[depth]), p.isLess(n, shape[last]));
  Type type = ElementBuilder::getHeldType(getElementType(op.getInput()));
  if (llvm::is_contained(shape, 0))
    return e.elements.number(type, 0);
  return e.choose(
      isInside, type, [&] { return e.eval(op.getInput(), plain); }, [&] { return e.elements.number(type, 0); });
}

void cleave::codegen::registerPacking(LoweringTable &table) {
  table.addPull<exec::UnpackOp>(pullUnpack);
  table.addPull<exec::PackOp>(pullPack);
}
