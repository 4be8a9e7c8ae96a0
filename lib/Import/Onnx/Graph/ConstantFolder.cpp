//===- ConstantFolder.cpp - what is known at import -----------------------===//
//
// Values are in one of two tables: `constants` stand for an op that is a constant, `computed` are known too, but the
// ops that compute them stay (what a plan names, inputs with given values). `compute` walks back from a value with a
// stack of its own: a model may be one chain of a million nodes. Everything that is evaluated is paid out of one
// budget.
//
//===----------------------------------------------------------------------===//
#include "ConstantFolder.h"

#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "cleave/Reference/Evaluator.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/DebugLog.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

#define DEBUG_TYPE "onnx-fold-constants"
using reference::Tensor;

/// Results of ops that only repeat elements stay ops beyond this size: they cost nothing there, and shard at will.
constexpr int64_t kMaxRepeated = 1024;
/// Laborious ops are folded up to this size of operands and results.
constexpr int64_t kMaxLaborious = 4096;

static int64_t countElements(Type type) { return cast<RankedTensorType>(type).getNumElements(); }

/// Folding takes time at import and puts its result into the program: both are bounded.
static bool fits(Operation *op) {
  auto below = [](TypeRange types, int64_t most) {
    return llvm::all_of(types, [&](Type type) { return countElements(type) <= most; });
  };
  return below(op->getResultTypes(), ConstantFolder::kMaxElements) &&
         (!op->hasTrait<nn::Laborious>() ||
          (below(op->getOperandTypes(), kMaxLaborious) && below(op->getResultTypes(), kMaxLaborious)));
}

/// Counts an op's results against the budget.
bool ConstantFolder::spend(Operation *op) {
  int64_t cost = 1;
  for (Type type : op->getResultTypes())
    cost += countElements(type);
  if (cost > budget)
    return false;
  budget -= cost;
  return true;
}

Value ConstantFolder::makeConstant(OpBuilder &builder, Location loc, Tensor tensor) {
  Value value = nn::ConstantOp::create(builder, loc, tensor.getType(), tensor.toAttr());
  constants[value] = std::move(tensor);
  return value;
}

/// Its value stays known, for shapes that depend on it; but ops that use it stay ops.
void ConstantFolder::hold(Value value) {
  if (auto it = constants.find(value); it != constants.end()) {
    computed[value] = std::move(it->second);
    constants.erase(value);
  }
}

void ConstantFolder::forget(Value value) {
  constants.erase(value);
  computed.erase(value);
  hide(value);
}

std::optional<Tensor> ConstantFolder::getConstant(Value value) {
  auto it = constants.find(value);
  return it == constants.end() ? std::nullopt : std::optional(it->second);
}

/// No result is no failure: the op stays.
LogicalResult ConstantFolder::tryFold(Operation *op, SmallVectorImpl<Tensor> &results) {
  SmallVector<Tensor, 4> operands;
  for (Value operand : op->getOperands()) {
    auto it = constants.find(operand);
    if (it == constants.end())
      return success();
    operands.push_back(it->second);
  }
  bool repeats = isa<nn::BroadcastOp>(op) && countElements(op->getResult(0).getType()) > kMaxRepeated;
  if (operands.empty() || repeats || !fits(op) || !reference::canEvaluate(op) || !spend(op))
    return success();
  LDBG() << *op;
  return reference::evaluate(op, operands, results);
}

const Tensor *ConstantFolder::find(Value value) const {
  if (auto it = constants.find(value); it != constants.end())
    return &it->second;
  auto it = computed.find(value);
  return it == computed.end() ? nullptr : &it->second;
}

/// Remembers the input that shapes depend on, whether its value is given (the program is then for this value) or
/// missing.
bool ConstantFolder::computeInput(BlockArgument input) {
  auto it = inputs.find(input);
  if (it == inputs.end()) {
    missingInput = input;
    return false;
  }
  usedInputs[input] = computed[input] = it->second;
  return true;
}

bool ConstantFolder::computeLoad(nn::LoadOp load) {
  std::optional<Tensor> tensor = readParam(load.getParam());
  if (tensor)
    computed[load] = *tensor;
  return tensor.has_value();
}

bool ConstantFolder::computeResults(Operation *op, ArrayRef<Tensor> operands) {
  // What can't be evaluated is simply not known; the caller says for what it was needed.
  ScopedDiagnosticHandler silence(op->getContext(), [](mlir::Diagnostic &) { return success(); });
  SmallVector<Tensor, 4> results;
  if (!reference::canEvaluate(op) || !spend(op) || failed(reference::evaluate(op, operands, results)))
    return false;
  for (auto [result, tensor] : llvm::zip(op->getResults(), results))
    computed[result] = tensor;
  return true;
}

/// What cannot be known is remembered: a loop asks in each iteration, and its values depend on all that were before.
std::optional<Tensor> ConstantFolder::compute(Value root) {
  std::optional<Tensor> result = walkBack(root);
  if (!result)
    unknown[root] = missingInput;
  return result;
}

std::optional<Tensor> ConstantFolder::walkBack(Value root) {
  // Values are visited twice: first their operands are put on top, then they are evaluated.
  SmallVector<Value> stack{root};
  missingInput = {};
  while (!stack.empty()) {
    Value value = stack.back();
    if (find(value)) {
      stack.pop_back();
      continue;
    }
    if (auto it = unknown.find(value); it != unknown.end()) {
      missingInput = it->second;
      return std::nullopt;
    }
    if (auto input = dyn_cast<BlockArgument>(value)) {
      if (!computeInput(input))
        return std::nullopt;
      continue;
    }
    Operation *op = value.getDefiningOp();
    if (!fits(op))
      return std::nullopt;
    if (auto load = dyn_cast<nn::LoadOp>(op)) {
      if (!computeLoad(load))
        return std::nullopt;
      continue;
    }
    size_t height = stack.size();
    SmallVector<Tensor, 4> operands;
    for (Value operand : op->getOperands()) {
      if (const Tensor *tensor = find(operand))
        operands.push_back(*tensor);
      else
        stack.push_back(operand);
    }
    if (stack.size() == height && !computeResults(op, operands))
      return std::nullopt;
  }
  return *find(root);
}
