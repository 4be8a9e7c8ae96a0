//===- NodeNames.cpp - names of the model on the ops of the program -------===//
//
// One node may become several ops, and one op may compute what several nodes only pass on, so names are written in
// three steps: each node names the ops made for it, when it is known which op computes which output; tensors that are
// passed on are collected, and added to the op behind them in the end, when all are known; what a plan may ask for and
// the program no longer has is noted on the module.
//
//===----------------------------------------------------------------------===//
#include "GraphImporter.h"
#include "cleave/Import/Onnx/ModulePaths.h"

#include "cleave/Dialect/Nn/IR/NodeLoc.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

/// A tensor's name as the whole model knows it: with the path of the functions that it stands in.
StringRef GraphImporter::qualify(StringRef name, const CallFrame &frame) {
  return frame.prefix.empty() || name.empty() ? name : saver.save(frame.prefix + name);
}

/// What nodes in the body of a function do not say themselves, their call does; names of it would stand for modules else.
std::string GraphImporter::findModule(const NodeProto &node, const CallFrame &frame) {
  std::string path = readModulePath(node);
  const CallFrame *at = &frame;
  for (; path.empty() && at->function; at = at->caller) {
    path = readModulePath(*at->call);
    if (path.empty() && !at->caller->function)
      path = spmd::getFolders(at->call->name);
  }
  return path;
}

/// Gives the ops made for a node their locations; those that compute its outputs also name these.
void GraphImporter::locate(NodeContext &at, const CallFrame &frame) {
  const NodeProto &node = at.getNode();
  std::string name = (frame.prefix + node.name).str();
  SmallVector<StringRef> operands, outputs;
  for (StringRef input : node.input)
    operands.push_back(qualify(input, frame));
  for (StringRef output : node.output)
    outputs.push_back(qualify(output, frame));
  std::string path = findModule(node, frame);
  nn::NodeInfo info{StringRef(name).rtrim('/'), node.opType, operands, {}, path};
  std::optional<Location> plain;
  for (Operation *op : at.getCreated()) {
    SmallVector<SmallVector<StringRef, 1>, 1> lists(op->getNumResults());
    for (auto [output, value] : llvm::zip(outputs, at.getResults()))
      if (!output.empty() && value && value.getDefiningOp() == op)
        lists[cast<OpResult>(value).getResultNumber()].push_back(output);
    if (llvm::all_of(lists, [](const auto &names) { return names.empty(); })) {
      if (!plain)
        plain = nn::makeNodeLoc(context, info);
      op->setLoc(*plain);
      continue;
    }
    SmallVector<ArrayRef<StringRef>, 1> results(lists.begin(), lists.end());
    op->setLoc(nn::makeNodeLoc(context, {info.node, info.opType, operands, results, path}));
  }
}

/// Adds the names that values got from nodes that pass them on. Only now: one value may have many.
void GraphImporter::addNames() {
  for (auto &[value, added] : names) {
    Operation *op = value.getDefiningOp();
    if (auto argument = dyn_cast<BlockArgument>(value); argument && argument.getOwner() != &func.getBody().front())
      continue; // of a loop's body, where an iteration has no name of its own
    if (!op) {
      func.setArgAttr(cast<BlockArgument>(value).getArgNumber(), spmd::kAliasesAttr, builder.getStrArrayAttr(added));
      continue;
    }
    SmallVector<nn::NodeInfo, 1> infos = nn::getNodeInfos(op->getLoc());
    nn::NodeInfo info = infos.empty() ? nn::NodeInfo{"", "Initializer", {}, {}} : infos.front();
    SmallVector<ArrayRef<StringRef>, 1> results(info.results);
    results.resize(op->getNumResults());
    ArrayRef<StringRef> &list = results[cast<OpResult>(value).getResultNumber()];
    SmallVector<StringRef, 4> all(list);
    llvm::append_range(all, added);
    list = all;
    info.results = results;
    op->setLoc(nn::makeNodeLoc(context, info));
  }
}

/// Names that a plan may ask for, which are few, of what ops make. Reads locations alone, which others leave as they are.
llvm::StringSet<> GraphImporter::findKept() {
  llvm::StringSet<> found;
  auto note = [&](StringRef name) {
    if (options.kept.contains(name))
      found.insert(name);
  };
  func.walk([&](Operation *op) {
    if (auto load = dyn_cast<nn::LoadOp>(op))
      note(load.getParam());
    for (const nn::NodeInfo &info : nn::getNodeInfos(op->getLoc()))
      for (ArrayRef<StringRef> names : info.results)
        llvm::for_each(names, note);
  });
  return found;
}

/// The location of a whole node, of which no op may tell all.
static Location locateNode(MLIRContext *context, const NodeProto &node) {
  auto results = llvm::map_to_vector<1>(node.output, [](const StringRef &name) { return ArrayRef(name); });
  return nn::makeNodeLoc(context, {node.name, node.opType, node.input, results, readModulePath(node)});
}

/// Nodes of several outputs that no op makes all of, so that none says which output is which.
static SmallVector<const NodeProto *> findSpread(const GraphProto &graph, func::FuncOp func) {
  llvm::StringMap<size_t> outputs;
  for (const NodeProto &node : graph.node)
    if (node.output.size() > 1 && !node.name.empty())
      outputs.try_emplace(node.name, node.output.size());
  if (outputs.empty())
    return {};
  func.walk([&](Operation *op) {
    for (const nn::NodeInfo &info : nn::getNodeInfos(op->getLoc()))
      if (auto it = outputs.find(info.node); it != outputs.end() && info.results.size() >= it->second)
        outputs.erase(it);
  });
  SmallVector<const NodeProto *> spread;
  for (const NodeProto &node : graph.node)
    if (outputs.contains(node.name))
      spread.push_back(&node);
  return spread;
}

/// Nodes of the main graph that several ops make, and those that have a kept tensor which nothing in the program needs. `present` are
/// those that ops make.
void GraphImporter::noteUnused(Scope &scope, llvm::StringSet<> present) {
  SmallVector<Attribute> unused;
  for (const NodeProto *node : findSpread(file.model.graph, func))
    unused.push_back(locateNode(context, *node));
  for (const ValueInfoProto &output : file.model.graph.output)
    present.insert(output.name);
  for (BlockArgument argument : func.getArguments())
    present.insert_range(nn::getTensorNames(argument));
  auto isUnused = [&](StringRef name) {
    return options.kept.contains(name) && !present.contains(name) && find(name, scope).first;
  };
  if (!llvm::all_of(options.kept.keys(), [&](StringRef name) { return present.contains(name); })) {
    for (const NodeProto &node : file.model.graph.node)
      if (llvm::any_of(node.input, isUnused) || llvm::any_of(node.output, isUnused))
        unused.push_back(locateNode(context, node));
    for (const TensorProto &tensor : file.model.graph.initializer)
      if (isUnused(tensor.name))
        unused.push_back(nn::makeNodeLoc(context, {"", "Initializer", {}, {ArrayRef(tensor.name)}}));
  }
  if (!unused.empty())
    module->getOperation()->setAttr(spmd::kUnusedAttr, builder.getArrayAttr(unused));
}
