//===- Gradient.cpp - ai.onnx.preview.training.Gradient -------------------===//
//
// What is imported by then is differentiated in reverse (cleave/Dialect/Nn/Gradients/Differentiate.h). Of a y that is no scalar the sum
// of its elements is differentiated, as in onnxruntime.
//
// Where the node is fed with other tensors than those that it names, the ops between are first made again on these.
//
//===----------------------------------------------------------------------===//
#include "Graph/GraphImporter.h"
#include "Registry.h"

#include "cleave/Dialect/Nn/Gradients/Differentiate.h"
#include "cleave/Dialect/Nn/IR/NodeLoc.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "cleave/Support/Status.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

namespace {

class Gradient {
public:
  explicit Gradient(NodeContext &node) : node(node) {}
  void run();

private:
  bool readNames();
  bool checkLeaf(Value leaf, StringRef name, bool isDifferentiated);
  void substitute();
  void differentiate();

  NodeContext &node;
  SmallVector<StringRef> names;
  size_t wanted = 0;
  StringRef targetName;
  Value target;
  SmallVector<Value> leaves;
  nn::GradientPath path;
  llvm::SmallVector<Value> gradients;
};

} // namespace

/// What may be differentiated by is a tensor of floats that is still there: what was folded is a function of nothing.
bool Gradient::checkLeaf(Value leaf, StringRef name, bool isDifferentiated) {
  std::string what = (isDifferentiated ? "'xs' names " : "'zs' names ") + quote(name);
  return node.check(!llvm::is_contained(leaves, leaf),
                    what + ", which is the same tensor as another one of 'xs' and 'zs'") &&
         node.check(!isDifferentiated || isa<FloatType>(NodeContext::elementType(leaf)),
                    what + ", which has no floats") &&
         node.check(!isDifferentiated || !node.getImporter().getFolder().getConstant(leaf),
                    what + ", a constant within a function or a body, of which what follows is computed at import");
}

bool Gradient::readNames() {
  auto xs = node.stringsAttr("xs"), zs = node.stringsAttr("zs");
  targetName = node.stringAttr("y");
  if (node.failed() || !node.check(xs && !xs->empty(), "attribute 'xs' names no tensor"))
    return false;
  names = *xs;
  wanted = names.size();
  if (zs)
    llvm::append_range(names, *zs);
  if (!node.check(node.getNumOperands() == names.size(), "has " + Twine(node.getNumOperands()) +
                                                             " operands, but 'xs' and 'zs' name " +
                                                             Twine(names.size()) + " tensors") ||
      !node.check(node.getNode().output.size() <= wanted,
                  "has " + Twine(node.getNode().output.size()) + " outputs, expected at most " + Twine(wanted)))
    return false;
  for (auto [i, name] : llvm::enumerate(names)) {
    Value leaf = node.getImporter().findTensor(node, name);
    if (!leaf || !checkLeaf(leaf, name, i < wanted))
      return false;
    std::string types;
    if (node.operand(i))
      llvm::raw_string_ostream(types) << node.operand(i).getType() << ", expected " << leaf.getType();
    if (!node.check(node.operand(i) && node.operand(i).getType() == leaf.getType(),
                    "operand " + Twine(i) + ", the value of " + quote(name) + ", is " +
                        (types.empty() ? "missing" : types)))
      return false;
    leaves.push_back(leaf);
  }
  target = node.getImporter().findTensor(node, targetName);
  return target && node.check(isa<FloatType>(NodeContext::elementType(target)),
                              "'y' names " + quote(targetName) + ", which has no floats");
}

/// The same ops on other leaves, where there are some.
void Gradient::substitute() {
  if (llvm::equal(leaves, node.getOperands()))
    return;
  llvm::DenseMap<Value, Value> now;
  nn::GradientPath again;
  for (auto [i, leaf] : llvm::enumerate(leaves)) {
    Value value = node.operand(i);
    if (value == leaf)
      continue;
    // One value may be fed to several leaves, or be read between them as well: each has one of its own, which is never folded.
    now[leaf] = node.createTyped<nn::ReshapeOp>(cast<RankedTensorType>(value.getType()), value);
    if (node.failed())
      return;
    if (i < wanted)
      node.getImporter().getFolder().forget(now[leaf]);
  }
  for (Operation *op : path.ops) {
    if (!node.check(op->getNumRegions() == 0, "what leads to " + quote(targetName) +
                                                  " has a loop, which cannot be computed again on other tensors"))
      return;
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(now.contains(operand) ? now[operand] : operand);
    OperationState state(op->getLoc(), op->getName().getStringRef(), operands, op->getResultTypes(),
                         op->getAttrDictionary().getValue());
    SmallVector<Value, 2> results = node.createFrom(state);
    if (node.failed())
      return;
    for (auto [was, is] : llvm::zip_equal(op->getResults(), results))
      now[was] = is;
    if (Operation *made = results.front().getDefiningOp())
      again.ops.push_back(made);
  }
  auto replace = [&](Value value) { return now.contains(value) ? now[value] : value; };
  for (Value value : path.active)
    again.active.insert(replace(value));
  path = std::move(again);
  target = replace(target);
  for (Value &leaf : leaves) {
    leaf = replace(leaf);
    path.leaves.insert(leaf);
  }
}

void Gradient::differentiate() {
  nn::Differentiation walk(node, path);
  Value seed = node.broadcast(node.scalarLike(target, 1), NodeContext::shape(target));
  if (failed(walk.run(target, seed)) && walk.getObstacle()) {
    Operation *op = walk.getObstacle();
    SmallVector<nn::NodeInfo, 1> infos = nn::getNodeInfos(op->getLoc());
    std::string where =
        infos.empty() ? "" : (", of node '" + infos.front().node + "' (" + infos.front().opType + "),").str();
    std::string why = walk.getReason().empty() ? "" : (": " + walk.getReason()).str();
    node.check(false, "'" + op->getName().getStringRef() + "'" + where + " between 'xs' and 'y' has no gradient" + why);
  }
  for (Value leaf : ArrayRef(leaves).take_front(wanted))
    gradients.push_back(walk.getGradient(leaf));
}

void Gradient::run() {
  if (!readNames())
    return;
  path = nn::findGradientPath(target, leaves, wanted);
  substitute();
  if (!node.failed())
    differentiate();
  for (size_t i = 0; i < wanted && !node.failed(); ++i) {
    Value value = gradients[i];
    node.result(i, value ? value : node.broadcast(node.scalarLike(leaves[i], 0), NodeContext::shape(leaves[i])));
  }
}

void cleave::onnx::registerGradient(Registry &registry) {
  registry.add("ai.onnx.preview.training.Gradient", {1, Arity::kAny, Arity::kAny},
               [](NodeContext &node) { Gradient(node).run(); });
}
