//===- LoopBuilder.cpp - loops that stay loops ----------------------------===//
//
//   Loop(M, c, x)  ─▶  %y:3 = nn.loop count M while %c carries (0, %x, zeros) captures (%w)
//                      ^bb(%i, %x, %all, %w):
//                        the body's nodes       %all' = nn.scatter_nd set %all, %i, %part
//                        nn.yield while %more next (%i + 1, %x', %all')
//
// The body is imported once, like the graph around it, into a block that is no part of the program yet: it may use values from
// outside. When it is there, these become arguments of the loop, and constants are copied. Weights stay outside, so that they are
// split, and gathered before the loop or in it, as it is cheapest.
//
//===----------------------------------------------------------------------===//
#include "LoopBuilder.h"
#include "../Graph/GraphImporter.h"

#include "cleave/Dialect/Nn/IR/Control.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"
#include "cleave/Dialect/Nn/IR/Ops/Indexing.h"
#include "cleave/Support/Status.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

namespace {

class LoopBuilder {
public:
  LoopBuilder(NodeContext &node, const LoopParts &parts)
      : node(node), parts(parts), i64(node.getBuilder().getI64Type()), i1(node.getBuilder().getI1Type()),
        builder(node.getImporter().getBuilder()) {}

  SmallVector<Value> build();

private:
  bool begin();
  void fillBody();
  Value getPlace(const ScanPart &part);
  bool addStates(ArrayRef<Bound> outputs);
  void addScans(ArrayRef<Bound> outputs);
  void addCondition(Value condition);
  void capture();
  SmallVector<Value> create();

  void carry(Value first, Value then) {
    initial.push_back(first);
    next.push_back(then);
  }

  NodeContext &node;
  const LoopParts &parts;
  Type i64, i1;
  OpBuilder &builder;
  std::unique_ptr<Region> region = std::make_unique<Region>();
  Block *block = nullptr;
  BlockArgument counter;
  /// Of the first iteration, and what the body gives for the next one; both null where the count alone ends the loop.
  Value condition, more;
  SmallVector<Value> initial, next, captured;
};

} // namespace

/// Arguments of the body, but for those that only turn out when it is there.
bool LoopBuilder::begin() {
  block = &region->emplaceBlock();
  Location loc = UnknownLoc::get(node.getContext());
  initial.push_back(node.scalar(i64, 0));
  counter = block->addArgument(RankedTensorType::get({}, i64), loc);
  for (auto [index, bound] : llvm::enumerate(parts.carried)) {
    if (!node.check(bound.value != nullptr, "operand " + Twine(index) +
                                                " of what it carries is a sequence, which only a loop that "
                                                "is unrolled can carry"))
      return false;
    initial.push_back(bound.value);
    block->addArgument(bound.value.getType(), loc);
  }
  return !node.failed();
}

/// Where this iteration reads or writes; from the end is from that of the iterations that there are.
Value LoopBuilder::getPlace(const ScanPart &part) {
  if (!part.isReversed)
    return counter;
  Value last = parts.countValue ? node.create<nn::SubOp>(parts.countValue, node.scalar(i64, 1))
                                : node.scalar(i64, double(parts.count - 1));
  return node.create<nn::SubOp>(last, counter);
}

/// What the next iteration finds must be of the type of what this one found.
bool LoopBuilder::addStates(ArrayRef<Bound> outputs) {
  for (size_t index = 0; index < parts.carried.size(); ++index) {
    Value was = initial[index + 1], now = outputs[index].value;
    std::string types;
    if (now)
      llvm::raw_string_ostream(types) << was.getType() << " to " << now.getType();
    StringRef name = parts.body.output[index + (parts.isLoop ? 1 : 0)].name;
    if (!node.check(now && now.getType() == was.getType(),
                    "what the loop carries in " + quote(name) + " changes its type, from " + types +
                        ": only a loop of few iterations, whose number is known, can do that"))
      return false;
    next.push_back(now);
  }
  return !node.failed();
}

/// Of all iterations one tensor along a new dim in front, which each writes its part of.
void LoopBuilder::addScans(ArrayRef<Bound> outputs) {
  for (auto [output, part] : llvm::zip_equal(outputs, parts.outputs)) {
    if (!node.check(output.value != nullptr, "a scan output is not a tensor"))
      return;
    Ints shape(NodeContext::shape(output.value)), one(shape);
    shape.insert(shape.begin(), parts.count);
    one.insert(one.begin(), 1);
    Type element = NodeContext::elementType(output.value);
    if (!node.checkSize(shape, element))
      return;
    BlockArgument all = block->addArgument(RankedTensorType::get(shape, element), UnknownLoc::get(node.getContext()));
    next.push_back(node.create<nn::ScatterNdOp>(nn::ScatterKind::Set, all, node.reshape(getPlace(part), {1, 1}),
                                                node.reshape(output.value, one)));
  }
}

/// The condition of the next iteration: what the body says, and that there are some left.
void LoopBuilder::addCondition(Value said) {
  std::optional<reference::Tensor> known = said ? node.tryConstantOf(said) : std::nullopt;
  bool staysTrue = !said || (known && known->as<bool>()[0]);
  if (!node.check(
          !staysTrue || parts.count != LoopParts::kNoCount || parts.countValue,
          "the loop never ends: " +
              Twine(node.hasOperand(0) ? "its trip count is the largest number there is" : "it has no trip count") +
              ", and its condition stays true") ||
      (staysTrue && !parts.countValue && !parts.condition))
    return;
  more = staysTrue ? node.scalar(i1, 1) : node.reshape(said, {});
  if (!parts.countValue)
    return;
  Value left = node.create<nn::LtOp>(next.front(), parts.countValue);
  more = staysTrue ? left : node.create<nn::AndOp>(more, left);
}

/// Within an iteration the condition holds: else it would not have begun. So what only hands it on is known to stay true, and a
/// loop that counts has no condition that somebody would have to read.
void LoopBuilder::fillBody() {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(block);
  SmallVector<Bound> inputs;
  if (parts.isLoop)
    inputs.append({Bound{counter, nullptr}, Bound{node.scalar(i1, 1), nullptr}});
  for (BlockArgument argument : block->getArguments().drop_front())
    inputs.push_back({argument, nullptr});
  for (const ScanPart &part : parts.inputs)
    inputs.push_back({node.create<nn::GatherOp>(part.whole, getPlace(part), part.axis), nullptr});
  if (node.failed())
    return;
  auto outputs = node.getImporter().importBody(node, parts.body, inputs, "", /*isRepeated=*/false);
  if (!outputs)
    return node.fail();
  ArrayRef<Bound> all = *outputs;
  Value said = parts.isLoop ? all.front().value : Value();
  if (!node.check(!parts.isLoop || (said && NodeContext::elementType(said).isInteger(1) &&
                                    cast<RankedTensorType>(said.getType()).getNumElements() == 1),
                  "the condition is not one bool"))
    return;
  next.push_back(node.create<nn::AddOp>(counter, node.scalar(i64, 1)));
  addCondition(said);
  all = all.drop_front(parts.isLoop ? 1 : 0);
  if (node.failed() || !addStates(all))
    return;
  all = all.drop_front(parts.carried.size());
  if (node.check(all.empty() || parts.count != LoopParts::kNoCount, kUnboundedParts))
    addScans(all);
  if (!node.failed())
    nn::YieldOp::create(builder, UnknownLoc::get(node.getContext()), more, next);
}

/// The outermost region is no op's yet, which is more than Region::isAncestor allows.
static bool liesIn(Region &region, Region *at) {
  while (at && at != &region)
    at = at->getParentOp() ? at->getParentOp()->getParentRegion() : nullptr;
  return at != nullptr;
}

/// What the body uses from outside comes in by arguments; what takes no operands and is no weight is made inside.
void LoopBuilder::capture() {
  llvm::DenseMap<Value, Value> inside;
  region->walk([&](Operation *op) {
    for (OpOperand &operand : op->getOpOperands()) {
      Value value = operand.get();
      if (liesIn(*region, value.getParentRegion()))
        continue;
      Value &own = inside[value];
      if (!own) {
        Operation *maker = value.getDefiningOp();
        if (maker && maker->getNumOperands() == 0 && !isa<nn::LoadOp>(maker)) {
          OpBuilder atStart(node.getContext());
          atStart.setInsertionPointToStart(block);
          own = atStart.clone(*maker)->getResult(0);
        } else {
          own = block->addArgument(value.getType(), UnknownLoc::get(node.getContext()));
          captured.push_back(value);
        }
      }
      operand.set(own);
    }
  });
}

/// Around the body that is there by now. What scan outputs are written into is zeros at first, all of which are overwritten.
SmallVector<Value> LoopBuilder::create() {
  for (Value then : ArrayRef(next).drop_front(initial.size())) {
    auto type = cast<RankedTensorType>(then.getType());
    initial.push_back(node.broadcast(node.scalar(type.getElementType(), 0), type.getShape()));
  }
  // The first iteration is asked for before the loop, by the operands of the node.
  condition = parts.condition;
  if (parts.countValue) {
    Value any = node.create<nn::LtOp>(node.scalar(i64, 0), parts.countValue);
    condition = condition ? node.create<nn::AndOp>(condition, any) : any;
  }
  if (more && !condition)
    condition = node.scalar(i1, 1);
  if (node.failed())
    return {};
  IntegerAttr count;
  if (parts.count != LoopParts::kNoCount)
    count = node.getBuilder().getI64IntegerAttr(parts.count);
  OperationState state(UnknownLoc::get(node.getContext()), nn::LoopOp::getOperationName());
  nn::LoopOp::build(builder, state, TypeRange(ValueRange(initial)), condition, initial, captured, count);
  state.regions.front()->takeBody(*region);
  SmallVector<Value> results(node.createFrom(state));
  if (results.empty()) // no op was made
    region->takeBody(*state.regions.front());
  return node.failed() ? SmallVector<Value>() : results;
}

/// Scan outputs along another dim than the first are written along the first one, and turned once, behind the loop.
SmallVector<Value> LoopBuilder::build() {
  if (begin())
    fillBody();
  SmallVector<Value> results;
  if (!node.failed()) {
    capture();
    results = create();
  }
  if (results.empty()) {
    // Values in it are known to the folder, so that none may come to lie where they do.
    node.getImporter().keep(std::move(region));
    return {};
  }
  if (parts.iterations && condition)
    *parts.iterations = results.front();
  results.erase(results.begin()); // the number of iterations
  for (auto [part, result] :
       llvm::zip_equal(parts.outputs, MutableArrayRef(results).drop_front(parts.carried.size()))) {
    int64_t axis = node.axis(part.axis, NodeContext::rank(result));
    Ints order;
    for (int64_t dim = 1; dim < NodeContext::rank(result); ++dim)
      order.push_back(dim);
    order.insert(order.begin() + axis, 0);
    if (!node.failed())
      result = node.transpose(result, order);
  }
  return node.failed() ? SmallVector<Value>() : results;
}

SmallVector<Value> cleave::onnx::buildLoop(NodeContext &node, const LoopParts &parts) {
  return LoopBuilder(node, parts).build();
}
