//===- Sequence.cpp - sequences of tensors and optional values ------------===//
//
// Neither is anything in a program: how many tensors a sequence has, and whether an optional value is there, is known while
// the model is imported. A sequence is a list of values that a name stands for; an optional value that is there is the value
// itself.
//
//===----------------------------------------------------------------------===//
#include "Graph/GraphImporter.h"

#include "cleave/Support/Status.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

/// A copy to change: the list itself may have other users.
static SmallVector<Value> getItems(NodeContext &node, unsigned index) {
  return SmallVector<Value>(node.sequence(index));
}

/// A position that must be known, counted from 0: up to `count`, and from -count.
static int64_t getPosition(NodeContext &node, unsigned index, int64_t count, int64_t most) {
  int64_t position = node.constantInt(index);
  if (node.failed() || !node.check(position >= -count && position <= most,
                                   "position " + Twine(position) + " is outside of a sequence of " + Twine(count)))
    return 0;
  return position < 0 ? position + count : position;
}

static void importConstruct(NodeContext &node) {
  node.result(0, SmallVector<Value>(node.getOperands().begin(), node.getOperands().end()));
}

/// Of which type its tensors would be matters to nobody: those that come tell it.
static void importEmpty(NodeContext &node) {
  node.ignoreAttr("dtype");
  node.result(0, SmallVector<Value>());
}

static void importAt(NodeContext &node) {
  SmallVector<Value> items = getItems(node, 0);
  int64_t count = items.size(), position = node.failed() ? 0 : getPosition(node, 1, count, count - 1);
  if (!node.failed())
    node.result(0, items[position]);
}

/// Without a position at the end.
static void importInsert(NodeContext &node) {
  SmallVector<Value> items = getItems(node, 0);
  int64_t count = items.size();
  if (node.failed() || !node.check(node.hasOperand(1), "operand 1 is not a tensor"))
    return;
  int64_t position = node.hasOperand(2) ? getPosition(node, 2, count, count) : count;
  items.insert(items.begin() + position, node.operand(1));
  node.result(0, std::move(items));
}

/// Without a position the last one.
static void importErase(NodeContext &node) {
  SmallVector<Value> items = getItems(node, 0);
  int64_t count = items.size();
  if (node.failed() || !node.check(count > 0, "the sequence is empty"))
    return;
  int64_t position = node.hasOperand(1) ? getPosition(node, 1, count, count - 1) : count - 1;
  items.erase(items.begin() + position);
  node.result(0, std::move(items));
}

static void importLength(NodeContext &node) {
  node.result(0, node.scalar(node.getBuilder().getI64Type(), double(node.sequence(0).size())));
}

/// Without sizes each position is a part; one size splits as many parts of it as there are, and what is left; a list is what
/// parts have.
static void importSplitToSequence(NodeContext &node) {
  Value input = node.operand(0);
  Shape shape = NodeContext::shape(input);
  int64_t axis = node.axis(node.intAttr("axis", 0), shape.size());
  bool keepsDim = node.boolAttr("keepdims", true) || node.hasOperand(1);
  if (node.failed())
    return;
  int64_t extent = shape[axis];
  Ints sizes(node.hasOperand(1) ? 0 : extent, 1);
  if (node.hasOperand(1)) {
    Ints given = node.constantInts(1);
    for (int64_t size : given)
      if (!node.check(size >= 0, "a part has the size " + Twine(size)))
        return;
    if (NodeContext::rank(node.operand(1)) == 0) {
      if (node.failed() || !node.check(given.front() > 0, "parts have the size 0"))
        return;
      for (int64_t start = 0; start < extent; start += given.front())
        sizes.push_back(std::min(given.front(), extent - start));
    } else {
      sizes = given;
    }
  }
  SmallVector<Value> items;
  int64_t start = 0;
  for (int64_t size : sizes) {
    if (!node.check(size <= extent - start, "parts are longer than the " + Twine(extent) + " positions of the axis"))
      return;
    items.push_back(node.sliceDim(input, axis, start, size));
    start += size;
    if (!keepsDim) {
      Ints without(shape);
      without.erase(without.begin() + axis);
      items.back() = node.reshape(items.back(), without);
    }
  }
  if (node.check(start == extent, "parts have " + Twine(start) + " of the " + Twine(extent) + " positions of the axis"))
    node.result(0, std::move(items));
}

/// A new axis may also stand behind all others.
static void importConcatFromSequence(NodeContext &node) {
  SmallVector<Value> items = getItems(node, 0);
  bool isNew = node.boolAttr("new_axis", false);
  int64_t given = node.intAttr("axis");
  if (node.failed() || !node.check(!items.empty(), "the sequence is empty"))
    return;
  int64_t axis = node.axis(given, NodeContext::rank(items.front()) + isNew);
  if (node.failed())
    return;
  if (isNew)
    for (Value &item : items)
      item = node.unsqueeze(item, {std::min(axis, NodeContext::rank(item))});
  node.result(0, node.concat(items, axis));
}

/// The body on one element after the other; a tensor is there for each of them.
static void importMap(NodeContext &node) {
  const GraphProto *body = node.graphAttr("body");
  int64_t count = node.sequence(0).size();
  if (node.failed() ||
      !node.check(body->output.size() == node.getNode().output.size(), "the body has another number of outputs"))
    return;
  SmallVector<SmallVector<Value>> results(body->output.size());
  for (int64_t index = 0; index < count; ++index) {
    SmallVector<Bound> inputs;
    for (unsigned i = 0; i < node.getNumOperands(); ++i) {
      const ValueList *list = node.list(i);
      if (list && !node.check(int64_t(list->items.size()) == count, "sequences differ in length"))
        return;
      inputs.push_back(list ? Bound{list->items[index], nullptr} : node.bound(i));
    }
    if (!node.getImporter().spendNodes(node, 1))
      return;
    auto outputs = node.getImporter().importBody(node, *body, inputs, node.getNode().name + "/" + Twine(index), true);
    if (!outputs)
      return;
    for (auto [result, output] : llvm::zip_equal(results, *outputs)) {
      if (!node.check(bool(output.value), "an output of the body is not a tensor"))
        return;
      result.push_back(output.value);
    }
  }
  for (auto [i, result] : llvm::enumerate(results))
    node.result(i, std::move(result));
}

/// Its type is that of the value; of one that is absent nothing is ever asked but whether it is there.
static void importOptional(NodeContext &node) {
  node.ignoreAttr("type");
  Bound none{{}, std::make_shared<ValueList>(ValueList{true, {}})};
  node.result(0, node.bound(0) ? node.bound(0) : none);
}

/// A tensor is one that is there, and no operand at all one that is not.
static void importHasElement(NodeContext &node) {
  bool isThere = node.bound(0) && !(node.list(0) && node.list(0)->isNone);
  node.result(0, node.scalar(node.getBuilder().getI1Type(), isThere));
}

static void importGetElement(NodeContext &node) {
  if (node.check(!(node.list(0) && node.list(0)->isNone), "the optional value is absent"))
    node.result(0, node.bound(0));
}

void cleave::onnx::registerSequence(Registry &registry) {
  auto add = [&](StringRef op, unsigned least, unsigned most, ImportFn import, unsigned results = 1) {
    registry.add(op, {least, most, results, /*takesLists=*/true}, import);
  };
  registry.add("SequenceConstruct", {1, Arity::kAny}, importConstruct);
  add("SequenceEmpty", 0, 0, importEmpty);
  add("SequenceAt", 2, 2, importAt);
  add("SequenceInsert", 2, 3, importInsert);
  add("SequenceErase", 1, 2, importErase);
  add("SequenceLength", 1, 1, importLength);
  add("SequenceMap", 1, Arity::kAny, importMap, Arity::kAny);
  add("ConcatFromSequence", 1, 1, importConcatFromSequence);
  registry.add("SplitToSequence", {1, 2}, importSplitToSequence);
  add("Optional", 0, 1, importOptional);
  add("OptionalHasElement", 0, 1, importHasElement);
  add("OptionalGetElement", 1, 1, importGetElement);
}
