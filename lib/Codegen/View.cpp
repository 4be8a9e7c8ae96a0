//===- View.cpp - how a value lies in memory ------------------------------===//
//
// Shapes are compared group by group of dims, so that dims that a reshape leaves alone keep their strides and their
// indices.
//
//===----------------------------------------------------------------------===//
#include "View.h"
#include "Emitter.h"
#include "cleave/Dialect/Exec/IR/Exec.h"
#include "cleave/Dialect/Nn/IR/Ops/Conversion.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;

/// From the major side, as few dims a group as possible. Dims of size 1 at the end go to the last group.
SmallVector<DimGroup> cleave::codegen::matchDims(ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  int64_t numFrom = from.size(), numTo = to.size();
  if (llvm::is_contained(from, 0) || from.empty() || to.empty())
    return {{0, numFrom, 0, numTo}};
  SmallVector<DimGroup> groups;
  int64_t i = 0, j = 0;
  while (i < numFrom && j < numTo) {
    DimGroup group{i, i + 1, j, j + 1};
    int64_t x = from[i++], y = to[j++];
    while (x != y)
      x < y ? x *= from[i++] : y *= to[j++];
    group.fromEnd = i;
    group.toEnd = j;
    groups.push_back(group);
  }
  groups.back().fromEnd = numFrom;
  groups.back().toEnd = numTo;
  return groups;
}

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

/// Of what is in memory by itself: strides are products of the extents behind.
static View getRowMajor(Value value) {
  View view{value, 0, {}};
  ArrayRef<int64_t> shape = getShape(value);
  view.dims.resize(shape.size());
  int64_t stride = 1;
  for (int64_t dim = int64_t(shape.size()) - 1; dim >= 0; --dim) {
    view.dims[dim].stride = stride;
    stride *= shape[dim];
  }
  return view;
}

/// Strides of one dim, split into some; nothing if the dims of the group do not lie one behind another.
static bool reshapeGroup(ArrayRef<ViewDim> dims, ArrayRef<int64_t> from, ArrayRef<int64_t> to,
                         SmallVectorImpl<ViewDim> &result) {
  int64_t stride = 0, next = 0;
  for (int64_t dim = int64_t(from.size()) - 1; dim >= 0; --dim) {
    if (from[dim] == 1)
      continue;
    if (dims[dim].width || (stride && dims[dim].stride != next))
      return false;
    stride = stride ? stride : dims[dim].stride;
    if (stride == 0 && from.size() > 1) // repeated along one of some
      return false;
    next = dims[dim].stride * from[dim];
  }
  SmallVector<ViewDim> split(to.size());
  for (int64_t dim = int64_t(to.size()) - 1; dim >= 0; --dim) {
    split[dim].stride = stride;
    stride *= to[dim];
  }
  result.append(split);
  return true;
}

/// Group by group of dims; one that does not lie in a row makes the reshape a value of its own.
static std::optional<View> viewReshape(nn::ReshapeOp op) {
  View view = View::get(op.getInput());
  ArrayRef<int64_t> from = getShape(op.getInput()), to = getShape(op.getResult());
  SmallVector<ViewDim> dims;
  for (const DimGroup &group : matchDims(from, to)) {
    auto own = ArrayRef(view.dims).slice(group.from, group.fromEnd - group.from);
    if (group.isSame())
      dims.push_back(own.front());
    else if (!reshapeGroup(own, from.slice(group.from, own.size()), to.slice(group.to, group.toEnd - group.to), dims))
      return std::nullopt;
  }
  view.dims.assign(dims.begin(), dims.end());
  return view;
}

/// Dims change places, and their strides with them.
static std::optional<View> viewTranspose(nn::TransposeOp op) {
  View from = View::get(op.getInput()), view = from;
  for (auto [to, dim] : llvm::enumerate(op.getPermutation()))
    view.dims[to] = from.dims[dim];
  return view;
}

/// Starts move the first element, steps stretch strides. A panel may lose its end, not its beginning.
static std::optional<View> viewSlice(nn::SliceOp op) {
  View view = View::get(op.getInput());
  for (auto [dim, start, size, step] : llvm::zip_equal(view.dims, op.getStarts(), op.getSizes(), op.getSteps())) {
    if (dim.width && (start != 0 || step != 1))
      return std::nullopt;
    view.offset += start * dim.stride;
    dim.stride *= size > 1 ? step : 1;
  }
  return view;
}

/// What is repeated has stride 0.
static std::optional<View> viewBroadcast(nn::BroadcastOp op) {
  View from = View::get(op.getInput()), view{from.base, from.offset, {}};
  ArrayRef<int64_t> small = getShape(op.getInput()), large = getShape(op.getResult());
  view.dims.resize(large.size());
  size_t added = large.size() - small.size();
  for (size_t dim = 0; dim < small.size(); ++dim)
    if (small[dim] == large[added + dim])
      view.dims[added + dim] = from.dims[dim];
  return view;
}

/// Pairs of neighbors along the depth are panels of it, two wide.
static std::optional<View> viewUnpack(exec::UnpackOp op) {
  exec::Layout layout = op.getLayout();
  View packed = View::get(op.getInput());
  View view{packed.base, packed.offset, {}};
  view.dims.resize(layout.order.size());
  for (auto [place, dim] : llvm::enumerate(layout.order))
    view.dims[dim] = packed.dims[layout.width && int64_t(place) >= layout.batch ? place + 1 : place];
  if (!layout.width)
    return view;
  view.dims[layout.order.back()] = {layout.interleave, layout.width, packed.dims[layout.batch].stride};
  ViewDim &depth = view.dims[layout.order[layout.order.size() - 2]];
  if (layout.interleave > 1)
    depth = {1, layout.interleave, depth.stride};
  return view;
}

/// Whoever loads widens in any case, so a cast that widening is leaves everything where it lies. Others round, which makes
/// elements of their own.
static std::optional<View> viewCast(nn::CastOp op) {
  Type from = getElementType(op.getInput()), to = getElementType(op.getResult());
  if (ElementBuilder::getComputeType(from) != to || !ElementBuilder::isHalf(from))
    return std::nullopt;
  return View::get(op.getInput());
}

/// Any other op makes elements of its own, which lie in memory by themselves.
View View::get(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return getRowMajor(value);
  std::optional<View> view = llvm::TypeSwitch<Operation *, std::optional<View>>(op)
                                 .Case<nn::ReshapeOp>(viewReshape)
                                 .Case<nn::TransposeOp>(viewTranspose)
                                 .Case<nn::SliceOp>(viewSlice)
                                 .Case<nn::BroadcastOp>(viewBroadcast)
                                 .Case<exec::UnpackOp>(viewUnpack)
                                 .Case<nn::CastOp>(viewCast)
                                 .Default([](Operation *) { return std::nullopt; });
  return view ? *view : getRowMajor(value);
}

//===----------------------------------------------------------------------===//
// Points
//===----------------------------------------------------------------------===//

/// Dims other than those of size 1.
static SmallVector<int64_t> dropOnes(ArrayRef<int64_t> shape) {
  return llvm::to_vector(llvm::make_filter_range(shape, [](int64_t extent) { return extent != 1; }));
}

bool cleave::codegen::isOnesApart(Value x, Value y) { return dropOnes(getShape(x)) == dropOnes(getShape(y)); }

/// Where only dims of size 1 come and go indices stay, so that what is known at a point is known in the other shape, too.
static bool moveOnes(Emitter &e, const Point &point, ArrayRef<int64_t> from, ArrayRef<int64_t> to, Point &result) {
  if (dropOnes(from) != dropOnes(to))
    return false;
  size_t next = 0;
  for (int64_t extent : to) {
    while (extent != 1 && from[next] == 1)
      ++next;
    result.push_back(extent == 1 ? Index{e.places.number(0)} : point[next++]);
  }
  return true;
}

/// Lanes stay together in a single dim, and where they begin at a multiple of their number, in a dim of a multiple of it.
static bool reshapeGroup(Emitter &e, const Point &point, ArrayRef<int64_t> from, ArrayRef<int64_t> to, Point &result) {
  Index at = e.places.linearize(point, from);
  int64_t lanes = e.getLanes();
  bool stays =
      at.lane == 0 || to.size() == 1 ||
      (at.lane == 1 && !to.empty() && to.back() % lanes == 0 && PlaceBuilder::getDivisor(at.base) % lanes == 0);
  if (!stays)
    return false;
  for (Value place : e.places.delinearize(at.base, to))
    result.push_back({place});
  if (!to.empty())
    result.back().lane = at.lane;
  return true;
}

std::optional<Point> cleave::codegen::reshapePoint(Emitter &e, const Point &point, ArrayRef<int64_t> from,
                                                   ArrayRef<int64_t> to) {
  Point result;
  for (const DimGroup &group : matchDims(from, to)) {
    int64_t count = group.fromEnd - group.from;
    Point own(ArrayRef(point).slice(group.from, count));
    ArrayRef<int64_t> before = from.slice(group.from, count), after = to.slice(group.to, group.toEnd - group.to);
    if (group.isSame())
      result.push_back(own.front());
    else if (!moveOnes(e, own, before, after, result) && !reshapeGroup(e, own, before, after, result))
      return std::nullopt;
  }
  return result;
}

/// Elementwise ops, then a transpose that puts channels last, whichever way is taken. One pixel has them last anyway.
bool cleave::codegen::leavesChannelsLast(Value value) {
  if (llvm::all_of(getShape(value).drop_front(2), [](int64_t extent) { return extent == 1; }))
    return true;
  return llvm::all_of(value.getUsers(), [&](Operation *user) {
    if (auto transpose = dyn_cast<nn::TransposeOp>(user))
      return transpose.getPermutation().back() == 1;
    return getLowerings().find(user) && getLowerings().find(user)->element &&
           getShape(user->getResult(0)) == getShape(value) && leavesChannelsLast(user->getResult(0));
  });
}
