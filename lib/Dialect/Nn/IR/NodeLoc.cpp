//===- NodeLoc.cpp - names of ONNX nodes and tensors in locations ---------===//
#include "cleave/Dialect/Nn/IR/NodeLoc.h"

#include "cleave/Dialect/Nn/IR/Nn.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace cleave::nn;

Location cleave::nn::makeNodeLoc(MLIRContext *context, const NodeInfo &info) {
  Builder b(context);
  SmallVector<NamedAttribute> entries;
  entries.push_back(b.getNamedAttr("node", b.getStringAttr(info.node)));
  entries.push_back(b.getNamedAttr("op", b.getStringAttr(info.opType)));
  if (!info.operands.empty())
    entries.push_back(b.getNamedAttr("operands", b.getStrArrayAttr(info.operands)));
  if (!info.results.empty()) {
    SmallVector<Attribute> lists;
    for (const auto &names : info.results)
      lists.push_back(b.getStrArrayAttr(names));
    entries.push_back(b.getNamedAttr("results", b.getArrayAttr(lists)));
  }
  // A fused location without any inside would not be read back.
  return FusedLoc::get(context, {UnknownLoc::get(context)}, b.getDictionaryAttr(entries));
}

static void readNames(Attribute list, SmallVectorImpl<StringRef> &names) {
  // Locations come from files, too: what is no name is passed over.
  if (auto array = dyn_cast_if_present<ArrayAttr>(list))
    for (Attribute entry : array)
      if (auto name = dyn_cast<StringAttr>(entry))
        names.push_back(name.getValue());
}

static std::optional<NodeInfo> readNode(DictionaryAttr entries) {
  auto node = entries.getAs<StringAttr>("node"), opType = entries.getAs<StringAttr>("op");
  if (!node || !opType)
    return std::nullopt;
  NodeInfo info{node.getValue(), opType.getValue(), {}, {}};
  readNames(entries.get("operands"), info.operands);
  if (auto lists = entries.getAs<ArrayAttr>("results"))
    for (Attribute list : lists)
      readNames(list, info.results.emplace_back());
  return info;
}

static void collect(Location loc, SmallVectorImpl<NodeInfo> &infos) {
  auto fused = dyn_cast<FusedLoc>(loc);
  if (!fused)
    return;
  if (auto entries = dyn_cast_if_present<DictionaryAttr>(fused.getMetadata()))
    if (std::optional<NodeInfo> info = readNode(entries)) {
      infos.push_back(std::move(*info));
      return;
    }
  for (Location inner : fused.getLocations())
    collect(inner, infos);
}

SmallVector<NodeInfo, 1> cleave::nn::getNodeInfos(Location loc) {
  SmallVector<NodeInfo, 1> infos;
  collect(loc, infos);
  return infos;
}

Location cleave::nn::getInnerLoc(Location loc) {
  SmallVector<NodeInfo, 1> infos = getNodeInfos(loc);
  if (infos.empty())
    return loc;
  SmallVector<Location> inner;
  for (NodeInfo &info : infos) {
    info.results.clear();
    inner.push_back(makeNodeLoc(loc.getContext(), info));
  }
  return inner.size() == 1 ? inner.front() : FusedLoc::get(loc.getContext(), inner);
}

SmallVector<StringRef, 1> cleave::nn::getTensorNames(Value value) {
  SmallVector<StringRef, 1> names;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto func = dyn_cast_if_present<func::FuncOp>(argument.getOwner()->getParentOp());
    if (func)
      if (auto name = func.getArgAttrOfType<StringAttr>(argument.getArgNumber(), NnDialect::kNameAttr))
        names.push_back(name.getValue());
    return names;
  }
  Operation *op = value.getDefiningOp();
  unsigned index = cast<OpResult>(value).getResultNumber();
  if (auto load = dyn_cast<LoadOp>(op))
    names.push_back(load.getParam());
  for (NodeInfo &info : getNodeInfos(op->getLoc()))
    if (index < info.results.size())
      llvm::append_range(names, info.results[index]);
  return names;
}

std::string cleave::nn::describeNode(Operation *op) {
  for (NodeInfo &info : getNodeInfos(op->getLoc())) {
    if (!info.node.empty())
      return info.node.str();
    if (!info.results.empty() && !info.results.front().empty())
      return info.results.front().front().str();
  }
  return "";
}
