//===- Names.cpp - nodes and tensors by the model's names -----------------===//
//
// A location is a tree: what rewrites fuse becomes an inner node of it, and its leaves are nodes of the model, or places
// in a file. Names are the leaves that are nodes, in order; storing keeps only these, and restoring puts them in front of
// whatever place the op has, so that a message has both.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Spmd/IR/Names.h"

#include "cleave/Dialect/Spmd/IR/Spmd.h"

using namespace mlir;
using namespace cleave::spmd;

/// Of the node itself, or of all that an op was fused of.
static void collect(Location loc, SmallVectorImpl<NodeInfo> &infos) {
  if (auto node = dyn_cast<NodeLocInterface>(Attribute(loc)))
    infos.push_back({node.getNode(), node.getOpType(), node.getOperands(), node.getResults(), node.getModule()});
  else if (auto fused = dyn_cast<FusedLoc>(loc))
    for (Location inner : fused.getLocations())
      collect(inner, infos);
}

SmallVector<NodeInfo, 1> cleave::spmd::getNodeInfos(Location loc) {
  SmallVector<NodeInfo, 1> infos;
  collect(loc, infos);
  return infos;
}

std::string cleave::spmd::getFolders(StringRef node) {
  if (!node.consume_front("/"))
    return "";
  std::string path = node.rsplit('/').first.str();
  if (!node.contains('/'))
    return "";
  std::replace(path.begin(), path.end(), '/', '.');
  return path;
}

std::string NodeInfo::getModule() const { return module.empty() ? getFolders(node) : module.str(); }

/// The location in an op's attribute, or null.
static LocationAttr getNode(Operation *op) {
  return dyn_cast_if_present<LocationAttr>(op->getDiscardableAttr(kNodeAttr));
}

SmallVector<NodeInfo, 1> cleave::spmd::getNodeInfos(Operation *op) {
  LocationAttr node = getNode(op);
  return getNodeInfos(node ? Location(node) : op->getLoc());
}

/// What of a location names nodes; null if nothing does.
static LocationAttr keepNodes(Location loc) {
  auto fused = dyn_cast<FusedLoc>(loc);
  if (!fused)
    return isa<NodeLocInterface>(Attribute(loc)) ? LocationAttr(loc) : LocationAttr();
  SmallVector<Location> nodes;
  for (Location inner : fused.getLocations())
    if (LocationAttr node = keepNodes(inner))
      nodes.push_back(node);
  return nodes.empty() ? LocationAttr() : LocationAttr(FusedLoc::get(loc.getContext(), nodes));
}

void cleave::spmd::storeNodes(func::FuncOp func) {
  auto name = StringAttr::get(func.getContext(), kNodeAttr);
  func.walk([&](Operation *op) {
    if (op->getNumResults() == 0 || isa<PinOp, ConstrainOp>(op))
      return;
    Attribute old = op->getDiscardableAttr(name);
    LocationAttr now = keepNodes(op->getLoc());
    if (now && now != old)
      op->setDiscardableAttr(name, now);
    else if (old && !now)
      op->removeDiscardableAttr(name);
  });
}

void cleave::spmd::restoreNodes(func::FuncOp func) {
  func.walk([](Operation *op) {
    LocationAttr node = getNode(op);
    if (!node)
      return WalkResult::advance();
    // A file loses all of its locations or none: every phase asks, so the first op that has its own must do.
    if (keepNodes(op->getLoc()))
      return WalkResult::interrupt();
    op->setLoc(FusedLoc::get(op->getContext(), {node, op->getLoc()}));
    return WalkResult::advance();
  });
}

/// `prefix` and a number, as a string of the context.
static StringRef makeName(MLIRContext *context, StringRef prefix, unsigned index) {
  return StringAttr::get(context, prefix + Twine(index)).getValue();
}

StringRef cleave::spmd::getArgumentName(func::FuncOp func, unsigned index) {
  auto name = func.getArgAttrOfType<StringAttr>(index, kNameAttr);
  return name ? name.getValue() : makeName(func.getContext(), "arg", index);
}

StringRef cleave::spmd::getResultName(func::FuncOp func, unsigned index) {
  auto name = func.getResultAttrOfType<StringAttr>(index, kNameAttr);
  return name ? name.getValue() : makeName(func.getContext(), "result", index);
}

SmallVector<StringRef, 1> cleave::spmd::getTensorNames(Value value) {
  SmallVector<StringRef, 1> names;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto func = dyn_cast_if_present<func::FuncOp>(argument.getOwner()->getParentOp());
    if (!func)
      return names;
    names.push_back(getArgumentName(func, argument.getArgNumber()));
    if (auto aliases = func.getArgAttrOfType<ArrayAttr>(argument.getArgNumber(), kAliasesAttr))
      llvm::append_range(names, aliases.getAsValueRange<StringAttr>());
    return names;
  }
  Operation *op = value.getDefiningOp();
  unsigned index = cast<OpResult>(value).getResultNumber();
  if (auto pin = dyn_cast<PinOp>(op))
    return {pin.getName()};
  if (auto constraint = dyn_cast<ConstrainOp>(op); constraint && constraint.getName())
    return {*constraint.getName()};
  if (auto parameter = dyn_cast<ParameterOpInterface>(op))
    names.push_back(parameter.getParameterName());
  for (const NodeInfo &info : getNodeInfos(op))
    if (index < info.results.size())
      llvm::append_range(names, info.results[index]);
  return names;
}

std::string cleave::spmd::describeNode(Operation *op) {
  for (const NodeInfo &info : getNodeInfos(op)) {
    if (!info.node.empty())
      return info.node.str();
    if (!info.results.empty() && !info.results.front().empty())
      return info.results.front().front().str();
  }
  return "";
}
