//===- IndexRange.cpp - inputs whose numbers are indices ------------------===//
//
// Forward from an argument, through what moves all of its numbers, to the lookups of these.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/IndexRange.h"

#include "cleave/Dialect/Nn/IR/NodeLoc.h"
#include "cleave/Dialect/Nn/IR/Ops/Conversion.h"
#include "cleave/Dialect/Nn/IR/Ops/Indexing.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;

/// An attribute that somebody else wrote may be anything: what is not a range is none.
std::optional<IndexRange> cleave::nn::readIndexRange(Attribute attribute) {
  auto list = dyn_cast_if_present<ArrayAttr>(attribute);
  auto node = list && list.size() == 3 ? dyn_cast<StringAttr>(list[0]) : StringAttr();
  auto least = node ? dyn_cast<IntegerAttr>(list[1]) : IntegerAttr();
  auto most = node ? dyn_cast<IntegerAttr>(list[2]) : IntegerAttr();
  if (!least || !most || !least.getType().isSignlessInteger(64) || !most.getType().isSignlessInteger(64))
    return std::nullopt;
  return IndexRange{node.getValue(), least.getInt(), most.getInt()};
}

/// How many places each index that `use` hands to a lookup is for; nothing where it is no index, or there are several kinds.
static std::optional<int64_t> getPlaces(OpOperand &use) {
  Operation *op = use.getOwner();
  auto lookup = dyn_cast<LookupOpInterface>(op);
  if (!lookup || lookup.getIndices() != use.get() || &lookup->getOpOperand(1) != &use)
    return std::nullopt;
  auto getExtent = [](Value table, int64_t dim) { return cast<ShapedType>(table.getType()).getDimSize(dim); };
  auto isAlone = [](Value indices) { return cast<ShapedType>(indices.getType()).getShape().back() == 1; };
  return TypeSwitch<Operation *, std::optional<int64_t>>(op)
      .Case<GatherOp, GatherElementsOp, ScatterElementsOp>(
          [&](auto which) { return getExtent(which.getInput(), which.getDim()); })
      .Case([&](GatherNdOp which) -> std::optional<int64_t> {
        if (!isAlone(which.getIndices()))
          return std::nullopt;
        return getExtent(which.getInput(), which.getBatchDims());
      })
      .Case([&](ScatterNdOp which) -> std::optional<int64_t> {
        if (!isAlone(which.getIndices()))
          return std::nullopt;
        return getExtent(which.getInput(), 0);
      })
      .Default(std::nullopt);
}

/// True if each number of the operand is one of the result, with the same meaning.
static bool keepsAll(Operation *op) {
  if (isa<ReshapeOp, TransposeOp, ConcatOp>(op))
    return true;
  if (auto broadcast = dyn_cast<BroadcastOp>(op))
    return cast<ShapedType>(broadcast.getType()).getNumElements() > 0;
  auto cast = dyn_cast<CastOp>(op);
  if (!cast)
    return false;
  Type from = getElementTypeOrSelf(cast.getOperand()), to = getElementTypeOrSelf(cast.getType());
  return from.isInteger() && to.isSignlessInteger() && to.getIntOrFloatBitWidth() >= from.getIntOrFloatBitWidth() &&
         !(from.isUnsignedInteger() && to.getIntOrFloatBitWidth() == from.getIntOrFloatBitWidth());
}

void cleave::nn::noteIndexRanges(func::FuncOp func) {
  Builder b(func.getContext());
  for (BlockArgument argument : func.getArguments()) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!type || !type.getElementType().isInteger() || type.getElementType().isInteger(1))
      continue;
    std::optional<int64_t> least;
    std::string node;
    SmallVector<Value> todo{argument};
    llvm::DenseSet<Value> seen{argument};
    while (!todo.empty())
      for (OpOperand &use : todo.pop_back_val().getUses()) {
        Operation *op = use.getOwner();
        if (op->getBlock() != argument.getOwner())
          continue;
        if (keepsAll(op) && seen.insert(op->getResult(0)).second)
          todo.push_back(op->getResult(0));
        std::optional<int64_t> places = getPlaces(use);
        if (!places || (least && *places >= *least))
          continue;
        least = *places;
        auto infos = getNodeInfos(op);
        node = infos.empty() ? "" : infos.front().node.str();
      }
    if (least)
      func.setArgAttr(
          argument.getArgNumber(), kIndexRangeAttr,
          b.getArrayAttr({b.getStringAttr(node), b.getI64IntegerAttr(-*least), b.getI64IntegerAttr(*least - 1)}));
  }
}
