//===- Gradient.cpp - ai.onnx.preview.training.Gradient -------------------===//
//
// Reverse-mode differentiation (Griewank and Walther, Evaluating Derivatives, 2008) of what is imported by then:
//
//   xs ──▶ op ──▶ op ──▶ y          gradients of xs ◀── rule ◀── rule ◀── ones
//    zs ───┘                                      uses operands and results of its op
//
// Ops from xs to y are visited from y on, each when the gradient of its result is complete; a rule (Gradient.h) gives those of its
// operands, and a value that several ops read gets the sum. xs and zs are leaves: nothing goes past them. Of a y that is no scalar
// the sum of its elements is differentiated, as in onnxruntime.
//
// Where the node is fed with other tensors than those that it names, the ops between are first made again on these.
//
//===----------------------------------------------------------------------===//
#include "Gradient.h"
#include "../Graph/GraphImporter.h"
#include "../Registry.h"

#include "cleave/Dialect/Nn/IR/NodeLoc.h"
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "cleave/Support/Status.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

Value Derivative::sumTo(Value value, Shape shape) {
  Shape from = NodeContext::shape(value);
  if (!value || from == shape)
    return value;
  Ints dims;
  int64_t added = int64_t(from.size()) - int64_t(shape.size());
  for (int64_t dim = 0; dim < int64_t(from.size()); ++dim)
    if (dim < added || (shape[dim - added] == 1 && from[dim] != 1))
      dims.push_back(dim);
  return node.reshape(f.sum(value, dims, /*keepDims=*/true), shape);
}

void Derivative::give(Value value, Value gradient) {
  if (!wants(value) || !gradient)
    return;
  giveValue(value, node.cast(sumTo(gradient, NodeContext::shape(value)), NodeContext::elementType(value)));
}

namespace {

class Gradient {
public:
  explicit Gradient(NodeContext &node) : node(node) {}
  void run();

private:
  bool readNames();
  bool checkLeaf(Value leaf, StringRef name, bool isDifferentiated);
  void walk();
  void substitute();
  void propagate();
  void differentiate(Operation *op, Value gradient);
  bool isActive(Operation *op) const {
    return llvm::any_of(op->getOperands(), [&](Value v) { return active.contains(v); });
  }

  NodeContext &node;
  SmallVector<StringRef> names;
  size_t wanted = 0;
  StringRef targetName;
  Value target;
  SmallVector<Value> leaves;
  /// Ops that lead from leaves to the target, each behind those that it reads.
  SmallVector<Operation *> path;
  /// Values that depend on one of xs.
  llvm::DenseSet<Value> active;
  llvm::DenseMap<Value, Value> gradients;
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

/// Depth first from the target to the leaves, with a stack of its own: a model may be one chain of a million nodes.
void Gradient::walk() {
  llvm::DenseSet<Value> isLeaf(leaves.begin(), leaves.end());
  llvm::DenseSet<Operation *> done;
  SmallVector<Operation *> stack;
  auto visit = [&](Value value) {
    if (Operation *op = isLeaf.contains(value) ? nullptr : value.getDefiningOp(); op && !done.contains(op))
      stack.push_back(op);
  };
  SmallVector<Operation *> order;
  visit(target);
  while (!stack.empty()) {
    // An op may wait in the stack for several that read it: the last one asks for it first.
    Operation *op = stack.back();
    size_t height = stack.size();
    if (!done.contains(op))
      for (Value operand : op->getOperands())
        visit(operand);
    if (stack.size() > height)
      continue;
    stack.pop_back();
    if (done.insert(op).second)
      order.push_back(op);
  }
  llvm::DenseSet<Value> moved(isLeaf);
  active.insert(leaves.begin(), leaves.begin() + wanted);
  for (Operation *op : order) {
    auto touches = [&](const llvm::DenseSet<Value> &set) {
      return llvm::any_of(op->getOperands(), [&](Value value) { return set.contains(value); });
    };
    if (!touches(moved))
      continue;
    path.push_back(op);
    bool follows = touches(active);
    for (Value result : op->getResults()) {
      moved.insert(result);
      if (follows && isa<FloatType>(NodeContext::elementType(result)) && !isLeaf.contains(result))
        active.insert(result);
    }
  }
}

/// The same ops on other leaves, where there are some.
void Gradient::substitute() {
  if (llvm::equal(leaves, node.getOperands()))
    return;
  llvm::DenseMap<Value, Value> now;
  llvm::DenseSet<Value> nowActive;
  SmallVector<Operation *> again;
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
  for (Operation *op : path) {
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
      again.push_back(made);
  }
  for (Value value : active)
    nowActive.insert(now.contains(value) ? now[value] : value);
  path = std::move(again);
  active = std::move(nowActive);
  target = now.contains(target) ? now[target] : target;
  for (Value &leaf : leaves)
    leaf = now.contains(leaf) ? now[leaf] : leaf;
}

void Gradient::differentiate(Operation *op, Value gradient) {
  auto wants = [&](Value value) { return active.contains(value); };
  auto give = [&](Value value, Value part) {
    Value &sum = gradients[value];
    sum = sum ? node.create<nn::AddOp>(sum, part) : part;
  };
  Derivative d(node, op, gradient, wants, give);
  if (differentiateElementwise(d, op) || differentiateMovement(d, op) || differentiateIndexing(d, op) ||
      differentiateRows(d, op))
    return;
  SmallVector<nn::NodeInfo, 1> infos = nn::getNodeInfos(op->getLoc());
  std::string where =
      infos.empty() ? "" : (", of node '" + infos.front().node + "' (" + infos.front().opType + "),").str();
  node.check(false, "'" + op->getName().getStringRef() + "'" + where + " between 'xs' and 'y' has no derivative here");
}

void Gradient::propagate() {
  if (active.contains(target))
    gradients[target] = node.broadcast(node.scalarLike(target, 1), NodeContext::shape(target));
  llvm::DenseSet<Value> ends(leaves.begin(), leaves.end());
  for (Operation *op : llvm::reverse(path)) {
    if (node.failed())
      return;
    if (!isActive(op))
      continue;
    // Of several results only the first one may have a gradient.
    for (Value other : op->getResults().drop_front())
      if (!node.check(!gradients.contains(other),
                      "'" + op->getName().getStringRef() +
                          "' between 'xs' and 'y' has no derivative of its further results"))
        return;
    Value first = op->getResult(0);
    if (auto it = gradients.find(first); it != gradients.end() && !ends.contains(first))
      differentiate(op, Value(it->second));
  }
}

void Gradient::run() {
  if (!readNames())
    return;
  walk();
  substitute();
  if (!node.failed())
    propagate();
  for (size_t i = 0; i < wanted && !node.failed(); ++i) {
    Value value = gradients.lookup(leaves[i]);
    node.result(i, value ? value : node.broadcast(node.scalarLike(leaves[i], 0), NodeContext::shape(leaves[i])));
  }
}

void cleave::onnx::registerGradient(Registry &registry) {
  registry.add("ai.onnx.preview.training.Gradient", {1, Arity::kAny, Arity::kAny},
               [](NodeContext &node) { Gradient(node).run(); });
}
