//===- Control.cpp - branches and loops -----------------------------------===//
//
// Where it can, control flow ends at import:
//
//   If     a condition that is known takes its branch, and the other one is never looked at: it may well not fit the shapes
//          at hand. Of one that only data can tell, both branches are computed, and nn.select takes the one that holds.
//   Loop   iteration by iteration, each with the number that it has, so that what depends on it folds: conditions too, which
//          may end the loop. From the first condition on that only data can tell, iterations run whether or not the loop has
//          ended, and what it carries is then left as it was (select).
//   Scan   likewise, one iteration for each position (Scan.cpp).
//
// A loop that data may end before its trip count has scan outputs with room for as many parts; how many there are is an output beside
// them (PaddedRows.cpp).
//
// A loop whose trip count only data can tell, or whose iterations are more than the budget for them, stays a loop (LoopBuilder.h).
// That this is so may turn out when some iterations are there: nothing uses them then, and they go.
//
// All of ONNX is free of side effects, so that computing what is not wanted changes nothing but the time. What this may
// become in all is bounded (spendNodes).
//
//===----------------------------------------------------------------------===//
#include "Control.h"
#include "../Graph/GraphImporter.h"
#include "LoopBuilder.h"

#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"
#include "cleave/Support/Status.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;
using reference::Tensor;

std::string cleave::onnx::getPath(NodeContext &node, int64_t index) {
  const NodeProto &proto = node.getNode();
  StringRef name = !proto.name.empty() || proto.output.empty() ? proto.name : proto.output.front();
  return (name + "/" + Twine(index)).str();
}

/// With those of graphs inside; on a stack of its own, as a file may nest them as deep as it likes.
static int64_t countNodes(const GraphProto &graph) {
  int64_t count = 0;
  SmallVector<const GraphProto *> stack = {&graph};
  while (!stack.empty()) {
    const GraphProto *at = stack.pop_back_val();
    for (const NodeProto &node : at->node) {
      ++count;
      for (const AttributeProto &attr : node.attribute)
        if (attr.g)
          stack.push_back(attr.g.get());
    }
  }
  return count;
}

/// Loops in the body are taken to be as long, up to 16 iterations. To try it would take each level twice the time of the one inside.
double cleave::onnx::predictNodes(const GraphProto &body, int64_t trips) {
  double assumed = std::min<double>(double(trips), 16), most = double(trips);
  SmallVector<std::pair<const GraphProto *, double>> stack = {{&body, double(trips)}};
  while (!stack.empty()) {
    auto [at, runs] = stack.pop_back_val();
    most = std::max(most, runs);
    for (const NodeProto &node : at->node)
      for (const AttributeProto &attr : node.attribute)
        if (attr.g)
          stack.push_back({attr.g.get(), node.opType == "Loop" || node.opType == "Scan" ? runs * assumed : runs});
  }
  return most * double(countNodes(body) + 1);
}

//===----------------------------------------------------------------------===//
// Conditions
//===----------------------------------------------------------------------===//

/// True or false where it is known, else nothing; an error unless it is one bool.
static std::optional<bool> getKnown(NodeContext &node, Value condition) {
  if (!node.check(condition && NodeContext::elementType(condition).isInteger(1) &&
                      cast<RankedTensorType>(condition.getType()).getNumElements() == 1,
                  "the condition is not one bool"))
    return false;
  std::optional<Tensor> known = node.tryConstantOf(condition);
  return known ? std::optional(known->as<bool>()[0]) : std::nullopt;
}

static Value toScalar(NodeContext &node, Value condition) { return node.reshape(condition, {}); }

Bound cleave::onnx::select(NodeContext &node, Value condition, const Bound &lhs, const Bound &rhs, const Twine &what,
                           const Twine &why) {
  auto selectOne = [&](Value x, Value y) -> Value {
    if (x == y)
      return x;
    std::string types;
    llvm::raw_string_ostream(types) << x.getType() << " and " << y.getType();
    if (!node.check(x.getType() == y.getType(), what + " has different types, " + types + why))
      return {};
    return node.create<nn::SelectOp>(condition, x, y);
  };
  if (lhs.value && rhs.value)
    return {selectOne(lhs.value, rhs.value), nullptr};
  if (!node.check(lhs.list && rhs.list && lhs.list->isNone == rhs.list->isNone &&
                      lhs.list->items.size() == rhs.list->items.size(),
                  what + " is not alike, tensors or sequences of one length" + why))
    return {};
  auto list = std::make_shared<ValueList>(ValueList{lhs.list->isNone, {}});
  for (auto [x, y] : llvm::zip_equal(lhs.list->items, rhs.list->items))
    list->items.push_back(selectOne(x, y));
  return {{}, list};
}

//===----------------------------------------------------------------------===//
// If
//===----------------------------------------------------------------------===//

/// One branch alone where the condition is known. Else both run, and each output is selected: their outputs must be of
/// one type, and nothing that a branch does can be left out.
static void importIf(NodeContext &node) {
  const GraphProto *branches[] = {node.graphAttr("then_branch"), node.graphAttr("else_branch")};
  if (node.failed())
    return;
  std::optional<bool> holds = getKnown(node, node.operand(0));
  if (node.failed())
    return;
  std::string unknown = holds ? "" : node.explainUnknown();
  SmallVector<SmallVector<Bound>, 2> results;
  for (auto [i, branch] : llvm::enumerate(branches)) {
    if (holds && *holds == (i == 1))
      continue;
    if (!node.check(branch->output.size() == node.getNode().output.size(), "the branch has another number of outputs"))
      return;
    auto outputs = node.getImporter().importBody(node, *branch, {}, "", /*isRepeated=*/!holds);
    if (!outputs)
      return;
    results.push_back(*outputs);
  }
  Value condition = holds ? Value() : toScalar(node, node.operand(0));
  for (unsigned i = 0; i < results.front().size(); ++i)
    node.result(i, holds ? results.front()[i]
                         : select(node, condition, results[0][i], results[1][i],
                                  "what the branches give for " + quote(node.getNode().output[i]),
                                  ", so the condition must be known at import" + unknown));
}

//===----------------------------------------------------------------------===//
// Loop
//===----------------------------------------------------------------------===//

Value cleave::onnx::stack(NodeContext &node, ArrayRef<Value> parts, int64_t axis, const ValueInfoProto &declared) {
  SmallVector<Value> all;
  for (Value part : parts) {
    if (!node.check(part != nullptr, "scan output " + quote(declared.name) + " is not a tensor") ||
        !node.check(part.getType() == parts.front().getType(),
                    "scan output " + quote(declared.name) + " changes its type from iteration to iteration"))
      return {};
    int64_t at = node.axis(axis, NodeContext::rank(part) + 1);
    if (node.failed())
      return {};
    all.push_back(node.unsqueeze(part, {at}));
    if (all.size() == parts.size())
      return node.concat(all, at);
  }
  Type type = convertElementType(node.getContext(), declared.type.elemType);
  Ints shape = {0};
  bool isKnown = type && declared.type.shape && axis == 0;
  for (size_t i = 0; isKnown && i < declared.type.shape->size(); ++i) {
    isKnown = (*declared.type.shape)[i].value.has_value();
    shape.push_back((*declared.type.shape)[i].value.value_or(0));
  }
  if (!node.check(isKnown, "there are no iterations, and the body does not say of which shape its scan output " +
                               quote(declared.name) + " is") ||
      !node.checkSize(shape, type))
    return {};
  return node.constant(Tensor::zeros(RankedTensorType::get(shape, type)));
}

namespace {

/// A loop on its way: what it carries, and whether it still runs.
class Loop {
public:
  Loop(NodeContext &node, const GraphProto &body) : node(node), body(body), bodyNodes(countNodes(body)) {}
  void run();

private:
  bool begin();
  bool unroll();
  void stay();
  bool iterate(int64_t index);
  bool goOn(ArrayRef<Bound> outputs, int64_t index);
  bool hasSteadyCondition() const;
  int64_t getLeft() const { return GraphImporter::kMaxRepeatedNodes - node.getImporter().getRepeatedNodes(); }

  NodeContext &node;
  const GraphProto &body;
  int64_t bodyNodes;
  int64_t trips = LoopParts::kNoCount;
  /// Where data tells how many there are.
  Value tripsValue;
  SmallVector<Bound> carried;
  SmallVector<SmallVector<Value>> scanned;
  bool hasEnded = false;
  /// What is still to come is more than the budget.
  bool isTooLong = false;
  /// From where on only data tells whether the loop runs: a scalar that holds where it does.
  Value running;
};

} // namespace

/// Reads trip count and condition, either of which may be absent; states are sequences and optional values, too.
bool Loop::begin() {
  for (unsigned i = 2; i < node.getNode().input.size(); ++i)
    carried.push_back(node.bound(i));
  size_t results = node.getNode().output.size();
  if (!node.check(body.input.size() == carried.size() + 2,
                  "the body has " + Twine(body.input.size()) + " inputs, expected " + Twine(carried.size() + 2)) ||
      !node.check(body.output.size() == results + 1 && results >= carried.size(),
                  "the body has " + Twine(body.output.size()) +
                      " outputs, expected one more than the node, which has " + Twine(results)))
    return false;
  scanned.resize(results - carried.size());
  for (unsigned i = 0; i < carried.size(); ++i)
    if (!node.check(bool(carried[i]), "operand " + Twine(i + 2) + " is missing"))
      return false;
  if (node.hasOperand(1)) {
    std::optional<bool> runs = getKnown(node, node.operand(1));
    hasEnded = runs && !*runs;
    if (!runs)
      running = toScalar(node, node.operand(1));
  }
  // However many iterations there would be, none of a loop that never begins.
  if (node.failed() || hasEnded || !node.hasOperand(0))
    return !node.failed();
  if (node.tryConstant(0))
    trips = node.constantInt(0);
  else if (node.check(scanned.empty(), "its trip count must be known at import, as scan outputs have a part for "
                                       "each iteration" +
                                           node.explainUnknown()))
    tripsValue = node.cast(node.reshape(node.operand(0), {}), node.getBuilder().getI64Type());
  return !node.failed();
}

/// In the iteration in which the condition is first a matter of data, the loop still runs for certain: what comes next is
/// what it gave. From the next one on it is a choice.
bool Loop::goOn(ArrayRef<Bound> outputs, int64_t index) {
  Value condition = outputs.front().value;
  std::optional<bool> runs = getKnown(node, condition);
  if (node.failed())
    return false;
  std::string unknown = runs ? "" : node.explainUnknown();
  // How many parts there are, data tell; a loop has room for all.
  if (!scanned.empty() && !runs) {
    isTooLong = true;
    return node.check(trips != LoopParts::kNoCount, kUnboundedParts + unknown);
  }
  for (auto [i, state] : llvm::enumerate(carried)) {
    const Bound &next = outputs[i + 1];
    state = running ? select(node, running, next, state, "what the loop carries in " + quote(body.output[i + 1].name),
                             ", so its condition must be known at import")
                    : next;
  }
  for (auto [i, parts] : llvm::enumerate(scanned))
    parts.push_back(outputs[carried.size() + 1 + i].value);
  hasEnded = runs && !*runs;
  if (!runs) {
    Value scalar = toScalar(node, condition);
    running = running ? node.create<nn::AndOp>(running, scalar) : scalar;
  }
  // All that may still come is computed: better not begun.
  int64_t more = trips - index - 1;
  isTooLong = !hasEnded && more > getLeft() / (bodyNodes + 1) && (running || hasSteadyCondition());
  return !node.failed();
}

/// True if no iteration changes the condition: it hands on what it gets.
bool Loop::hasSteadyCondition() const {
  StringRef name = body.output.front().name, last;
  // Nodes need not be sorted: those of a chain may take several walks.
  while (name != last) {
    last = name;
    for (const NodeProto &at : llvm::reverse(body.node))
      if (at.opType == "Identity" && at.input.size() == 1 && llvm::is_contained(at.output, name))
        name = at.input.front();
  }
  return name == body.input[1].name;
}

bool Loop::iterate(int64_t index) {
  if (!node.getImporter().spendNodes(node, 1))
    return false;
  SmallVector<Bound> inputs;
  inputs.push_back({node.scalar(node.getBuilder().getI64Type(), double(index)), nullptr});
  inputs.push_back({running ? running : node.scalar(node.getBuilder().getI1Type(), 1), nullptr});
  llvm::append_range(inputs, carried);
  auto outputs = node.getImporter().importBody(node, body, inputs, getPath(node, index), /*isRepeated=*/true);
  return outputs && goOn(*outputs, index);
}

/// False where that would take too many nodes. Iterations may be of different length, so what was spent on the longest one so far must be left.
bool Loop::unroll() {
  if (tripsValue || (hasSteadyCondition() && !hasEnded && predictNodes(body, trips) > double(getLeft())))
    return false;
  int64_t longest = bodyNodes + 1;
  for (int64_t index = 0; index < trips && !hasEnded; ++index) {
    int64_t before = getLeft();
    if (before < longest)
      return false;
    if (!iterate(index)) {
      node.fail();
      return true;
    }
    longest = std::max(longest, before - getLeft());
    if (isTooLong)
      return false;
  }
  return true;
}

/// From the state that it began in. A condition that is known holds, or there would be no iteration to come here for.
void Loop::stay() {
  SmallVector<Bound> first;
  for (unsigned i = 0; i < carried.size(); ++i)
    first.push_back(node.bound(i + 2));
  LoopParts parts{body};
  parts.count = trips;
  parts.countValue = tripsValue;
  parts.carried = first;
  parts.outputs.resize(scanned.size());
  if (node.hasOperand(1) && !node.tryConstant(1))
    parts.condition = toScalar(node, node.operand(1));
  Value iterations;
  parts.iterations = &iterations;
  for (auto [i, result] : llvm::enumerate(buildLoop(node, parts)))
    node.result(i, result);
  if (iterations && !scanned.empty())
    node.padRows(llvm::to_vector(llvm::seq<unsigned>(carried.size(), carried.size() + scanned.size())), iterations);
}

void Loop::run() {
  if (!begin())
    return;
  bool isOfData = running && !scanned.empty();
  if (isOfData && !node.check(trips != LoopParts::kNoCount, kUnboundedParts))
    return;
  int64_t spent = node.getImporter().getRepeatedNodes();
  if (isOfData || !unroll()) {
    node.getImporter().restoreRepeatedNodes(spent);
    return stay();
  }
  if (node.failed())
    return;
  for (auto [i, state] : llvm::enumerate(carried))
    node.result(i, state);
  for (auto [i, parts] : llvm::enumerate(scanned))
    if (node.wantsResult(carried.size() + i))
      node.result(carried.size() + i, stack(node, parts, 0, body.output[carried.size() + 1 + i]));
}

static void importLoop(NodeContext &node) {
  if (const GraphProto *body = node.graphAttr("body"))
    Loop(node, *body).run();
}

void cleave::onnx::registerControl(Registry &registry) {
  registry.add("If", {1, 1, Arity::kAny}, importIf);
  registry.add("Loop", {0, Arity::kAny, Arity::kAny, /*takesLists=*/true}, importLoop);
}
