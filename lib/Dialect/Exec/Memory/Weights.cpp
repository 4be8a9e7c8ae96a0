//===- Weights.cpp - what is loaded before the first run ------------------===//
//
// A load of a shard is a box whose starts depend on the rank; a constant becomes a parameter of its own. A slice of such a
// box is a smaller box:
//
//   nn.load @w starts [2, 0] sizes [4, 8] shard rows     starts [2 + "x * 2", 0]  sizes [2, 8]
//   spmd.local_slice of that, columns over y              starts [2 + "x * 2", "y * 4"]  sizes [2, 4]
//
// Of shards that are uneven, the last ones end behind what there is: a box says how much of it is present.
//
//===----------------------------------------------------------------------===//
#include "Weights.h"

#include "BufferAssignment.h"
#include "cleave/Dialect/Nn/IR/Begins.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Nn/IR/Pieces.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Sharding/RankGroups.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

Weights::Weights(Operation *before, RankTable &table)
    : builder(before), symbols(before->getParentOfType<ModuleOp>()), table(table) {}

FlatSymbolRefAttr Weights::getParam(ElementsAttr value, StringRef name) {
  auto [param, isNew] = constants.try_emplace(value);
  if (isNew) {
    auto op =
        nn::ParamOp::create(builder, builder.getUnknownLoc(), name, cast<RankedTensorType>(value.getType()), value,
                            /*sym_visibility=*/StringAttr());
    symbols.insert(op); // which makes the name unique
    param->second = FlatSymbolRefAttr::get(op.getSymNameAttr());
  }
  return param->second;
}

Weights::Box Weights::getWhole(FlatSymbolRefAttr param, ArrayRef<int64_t> shape) {
  return {param, SmallVector<NumberAttr>(shape.size(), table.get(0)), SmallVector<int64_t>(shape), std::nullopt};
}

/// A shard begins at the rank's number along the axes times its extent, or where what there is ends.
void Weights::shard(Box &box, unsigned dim, ArrayRef<spmd::AxisAttr> axes, int64_t size) {
  int64_t whole = box.sizes[dim], shards = spmd::getMesh(symbols.getOp()).getRankGroups(axes).size();
  NumberAttr first = table.get(axes, size);
  if (box.present.empty() && size * shards != whole)
    box.present = llvm::map_to_vector<0>(box.sizes, [&](int64_t extent) { return table.get(extent); });
  if (!box.present.empty()) {
    NumberAttr held = box.present[dim];
    box.present[dim] = table.countBelow(held, first, size);
    first = table.atMost(first, held);
  }
  box.starts[dim] = table.add(box.starts[dim], first);
  box.sizes[dim] = size;
}

/// Dim by dim, as the sharding says.
FailureOr<Weights::Box> Weights::getBox(nn::LoadOp op) {
  auto param = symbols.lookup<nn::ParamOp>(op.getParam());
  FailureOr<nn::LoadedBox> loaded = nn::getLoadedBox(op, param, spmd::getMesh(op));
  if (failed(loaded))
    return op.emitOpError() << "loads by " << *op.getSharding()
                            << ", which is not a sharding of it over the module's mesh";
  return getBox(op.getParamAttr(), *loaded);
}

Weights::Box Weights::getBox(FlatSymbolRefAttr param, const nn::LoadedBox &loaded) {
  Box box = getWhole(param, loaded.sizes);
  for (auto [start, first] : llvm::zip_equal(box.starts, loaded.starts))
    start = table.get(first);
  for (unsigned dim = 0; loaded.sharding && dim < box.sizes.size(); ++dim)
    if (spmd::DimShardingAttr axes = loaded.sharding.getDims()[dim]; !axes.getAxes().empty())
      shard(box, dim, axes.getAxes(), llvm::divideCeil(box.sizes[dim], loaded.sharding.getNumShards(dim)));
  return box;
}

FailureOr<Weights::Box> Weights::getBox(Value value) {
  return llvm::TypeSwitch<Operation *, FailureOr<Box>>(value.getDefiningOp())
      .Case([&](nn::LoadOp op) { return getBox(op); })
      .Case([&](nn::ConstantOp op) -> FailureOr<Box> {
        return getWhole(getParam(op.getValue(), "constant"), op.getResult().getType().getShape());
      })
      .Case([&](spmd::AxisIndexOp op) -> FailureOr<Box> {
        SmallVector<int64_t> indices = llvm::to_vector(llvm::seq<int64_t>(0, getRankGroups(op).size()));
        auto type = RankedTensorType::get(int64_t(indices.size()), builder.getI64Type());
        Box box = getWhole(getParam(DenseElementsAttr::get(type, ArrayRef(indices)), "ranks"), {1});
        box.starts = {table.get(op.getGroupAxes(), 1)};
        return box;
      })
      .Case([&](PackOp op) -> FailureOr<Box> {
        FailureOr<Box> box = getBox(op.getInput());
        if (succeeded(box))
          box->layout = op.getLayout();
        return box;
      })
      .Case([&](spmd::LocalSliceOp op) -> FailureOr<Box> {
        FailureOr<Box> box = getBox(op.getInput());
        if (failed(box))
          return failure();
        for (auto [dim, axes] : llvm::enumerate(op.getDims().getAsRange<ArrayAttr>()))
          if (!axes.empty())
            shard(*box, dim, llvm::to_vector(axes.getAsRange<spmd::AxisAttr>()),
                  op.getResult().getType().getDimSize(dim));
        return box;
      });
}

/// All that tells loads apart.
Attribute Weights::getKey(const Box &box, Type type) {
  SmallVector<Attribute> key{box.param, builder.getDenseI64ArrayAttr(box.sizes), TypeAttr::get(type)};
  llvm::append_range(key, box.starts);
  llvm::append_range(key, box.present);
  if (box.layout)
    key.append({builder.getDenseI64ArrayAttr(box.layout->order),
                builder.getDenseI64ArrayAttr({box.layout->batch, box.layout->width, box.layout->interleave})});
  return builder.getArrayAttr(key);
}

FailureOr<int64_t> Weights::place(Value value) {
  FailureOr<Box> box = getBox(value);
  if (failed(box))
    return failure();
  // What the box is seen as: the rank's number has no dims, its box one.
  auto type = cast<RankedTensorType>(value.getType());
  auto [number, isNew] = known.try_emplace(getKey(*box, type), loads.size());
  if (isNew) {
    loads.push_back({*box, type, bytes, value.getLoc()});
    bytes = llvm::alignTo(bytes + spmd::getBytes(type), kAlignment);
  }
  return loads[number->second].offset;
}

void Weights::emit(OpBuilder &at, FlatSymbolRefAttr buffer) {
  for (const Load &load : loads) {
    ArrayRef<int64_t> shape =
        load.type.getRank() == 0 && load.box.sizes.size() == 1 ? ArrayRef(load.box.sizes) : load.type.getShape();
    auto view = ViewOp::create(at, load.loc, MemRefType::get(shape, load.type.getElementType()), buffer,
                               table.get(load.offset), /*whole=*/Value());
    emitLoad(at, load.loc, load.box, view);
  }
}

/// `view` has the shape of the box in its layout.
void Weights::emitLoad(OpBuilder &at, Location loc, const Box &box, Value view) {
  SmallVector<Attribute> starts(box.starts.begin(), box.starts.end());
  auto op = LoadOp::create(at, loc, box.param, at.getArrayAttr(starts), box.sizes, view);
  if (!box.present.empty())
    op.setPresentAttr(at.getArrayAttr(SmallVector<Attribute>(box.present.begin(), box.present.end())));
  if (const std::optional<Layout> &layout = box.layout) {
    op.setOrder(layout->order);
    op.setBatch(layout->batch);
    op.setWidth(layout->width);
    op.setInterleave(layout->interleave);
  }
}

/// A state is never shared or packed: its load is one of its own, of the shard that the argument is.
LogicalResult Weights::emitBeginning(OpBuilder &at, func::FuncOp func, Attribute begins, RankedTensorType global,
                                     Value view) {
  FlatSymbolRefAttr name = nn::getBeginsParam(begins);
  auto param = name ? symbols.lookup<nn::ParamOp>(name.getValue()) : nn::ParamOp();
  FailureOr<nn::LoadedBox> loaded = nn::getBeginning(func, begins, param, global);
  if (failed(loaded))
    return failure();
  emitLoad(at, func.getLoc(), getBox(name, *loaded), view);
  return success();
}
