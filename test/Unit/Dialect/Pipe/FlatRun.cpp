//===- FlatRun.cpp - a program of one microbatch, run for all of them -----===//
//
// A value is a list of tensors: one, if it is invariant, or one per microbatch. An op whose operands are all invariant runs once, any
// other once for each microbatch; `pipe.part` makes many of one, `pipe.accumulate` one of many.
//
//===----------------------------------------------------------------------===//
#include "FlatRun.h"

#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Pipe/IR/Pipe.h"

#include <cstring>

using namespace mlir;
using namespace cleave;
using reference::Tensor;
using Tensors = SmallVector<Tensor>;

/// Piece `index` of `count` along `dim`, element by element.
static Tensor split(const Tensor &whole, int64_t dim, int64_t count, int64_t index) {
  SmallVector<int64_t> shape(whole.getShape());
  shape[dim] /= count;
  Tensor part = Tensor::zeros(whole.getType().clone(shape));
  int64_t bytes = reference::getElementBytes(whole.getElementType()), inner = 1;
  for (int64_t extent : ArrayRef(shape).drop_front(dim + 1))
    inner *= extent;
  for (int64_t at = 0; at < part.getNumElements(); ++at) {
    int64_t outer = at / (inner * shape[dim]), position = at / inner % shape[dim] + index * shape[dim];
    int64_t from = (outer * shape[dim] * count + position) * inner + at % inner;
    std::memcpy(const_cast<char *>(part.getBytes().data()) + at * bytes, whole.getBytes().data() + from * bytes, bytes);
  }
  return part;
}

/// The other way round.
static Tensor join(ArrayRef<Tensor> parts, int64_t dim) {
  SmallVector<int64_t> shape(parts[0].getShape());
  int64_t local = shape[dim], inner = 1, bytes = reference::getElementBytes(parts[0].getElementType());
  shape[dim] *= parts.size();
  for (int64_t extent : ArrayRef(shape).drop_front(dim + 1))
    inner *= extent;
  Tensor whole = Tensor::zeros(parts[0].getType().clone(shape));
  for (int64_t at = 0; at < whole.getNumElements(); ++at) {
    int64_t outer = at / (inner * shape[dim]), position = at / inner % shape[dim];
    int64_t from = (outer * local + position % local) * inner + at % inner;
    std::memcpy(const_cast<char *>(whole.getBytes().data()) + at * bytes,
                parts[position / local].getBytes().data() + from * bytes, bytes);
  }
  return whole;
}

/// `sizes` positions from `starts` on.
static Tensor splitBox(const Tensor &whole, ArrayRef<int64_t> starts, ArrayRef<int64_t> sizes) {
  Tensor box = Tensor::zeros(whole.getType().clone(sizes));
  int64_t bytes = reference::getElementBytes(whole.getElementType());
  for (int64_t at = 0; at < box.getNumElements(); ++at) {
    int64_t from = 0, rest = at, stride = 1;
    for (int64_t dim = sizes.size() - 1; dim >= 0; --dim) {
      from += (starts[dim] + rest % sizes[dim]) * stride;
      rest /= sizes[dim];
      stride *= whole.getShape()[dim];
    }
    std::memcpy(const_cast<char *>(box.getBytes().data()) + at * bytes, whole.getBytes().data() + from * bytes, bytes);
  }
  return box;
}

template <typename T> static void combine(spmd::ReductionKind kind, MutableArrayRef<T> all, ArrayRef<T> next) {
  for (auto [x, y] : llvm::zip_equal(all, next)) {
    switch (kind) {
    case spmd::ReductionKind::Sum:
      x = T(x + y);
      break;
    case spmd::ReductionKind::Prod:
      x = T(x * y);
      break;
    case spmd::ReductionKind::Max:
      x = std::max(x, y);
      break;
    case spmd::ReductionKind::Min:
      x = std::min(x, y);
      break;
    }
  }
}

/// Bool is combined as numbers 0 and 1; 16-bit floats do not occur here.
static std::optional<Tensor> combineAll(spmd::ReductionKind kind, ArrayRef<Tensor> terms) {
  Tensor all = Tensor::zeros(terms[0].getType());
  Type element = all.getElementType();
  std::memcpy(const_cast<char *>(all.getBytes().data()), terms[0].getBytes().data(), all.getBytes().size());
  for (const Tensor &next : terms.drop_front()) {
    if (element.isF32())
      combine(kind, all.write<float>(), next.as<float>());
    else if (element.isF64())
      combine(kind, all.write<double>(), next.as<double>());
    else if (element.isSignlessInteger(64))
      combine(kind, all.write<int64_t>(), next.as<int64_t>());
    else if (element.isSignlessInteger(32))
      combine(kind, all.write<int32_t>(), next.as<int32_t>());
    else if (element.isInteger(1))
      combine(kind, all.write<uint8_t>(), next.as<uint8_t>());
    else
      return std::nullopt;
  }
  return all;
}

namespace {
struct FlatRunner {
  FlatRunner(func::FuncOp func, int64_t count) : params(func->getParentOfType<ModuleOp>()), count(count) {}

  /// What one microbatch, or all together, have of an operand.
  const Tensor &get(Value value, int64_t microbatch) {
    const Tensors &list = values[value];
    return list.size() == 1 ? list.front() : list[microbatch];
  }
  bool run(Operation *op);

  DenseMap<Value, Tensors> values;
  reference::ParamStore params;
  int64_t count;
};
} // namespace

/// A loop sees nothing of what is around it: a function of its own runs it.
static LogicalResult runLoop(Operation *loop, ArrayRef<Tensor> operands, SmallVectorImpl<Tensor> &results) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(loop->getLoc());
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  auto func =
      func::FuncOp::create(builder, loop->getLoc(), "alone",
                           FunctionType::get(loop->getContext(), loop->getOperandTypes(), loop->getResultTypes()));
  builder.setInsertionPointToEnd(func.addEntryBlock());
  Operation *clone = builder.clone(*loop);
  clone->setOperands(func.getArguments());
  func::ReturnOp::create(builder, loop->getLoc(), clone->getResults());
  return reference::runGlobal(func, operands, results);
}

bool FlatRunner::run(Operation *op) {
  if (auto part = dyn_cast<pipe::PartOp>(op)) {
    if (part.getIndex() || part.getBlocks() != 1 || static_cast<int64_t>(part.getCount()) != count)
      return false;
    Tensors parts;
    for (int64_t i = 0; i < count; ++i)
      parts.push_back(split(values[part.getInput()][0], part.getDim(), count, i));
    values[part] = parts;
    return true;
  }
  if (auto sum = dyn_cast<pipe::AccumulateOp>(op)) {
    std::optional<Tensor> all = combineAll(sum.getKind(), values[sum.getInput()]);
    if (all)
      values[sum] = {*all};
    return all.has_value();
  }
  if (auto load = dyn_cast<nn::LoadOp>(op)) {
    FailureOr<Tensor> whole = params.get(load.getParam());
    if (succeeded(whole))
      values[load] = {load.isPart() ? splitBox(*whole, *load.getStarts(), *load.getSizes()) : *whole};
    return succeeded(whole);
  }
  bool isSplit = llvm::any_of(op->getOperands(), [&](Value operand) { return values[operand].size() > 1; });
  for (int64_t i = 0; i < (isSplit ? count : 1); ++i) {
    SmallVector<Tensor> operands, results;
    for (Value operand : op->getOperands())
      operands.push_back(get(operand, i));
    if (failed(op->getNumRegions() != 0 ? runLoop(op, operands, results) : reference::evaluate(op, operands, results)))
      return false;
    for (auto [result, tensor] : llvm::zip_equal(op->getResults(), results))
      values[result].push_back(tensor);
  }
  return true;
}

std::optional<SmallVector<Tensor>> cleave::pipe::testing::runFlat(func::FuncOp func, ArrayRef<Tensor> inputs) {
  std::optional<int64_t> count = getMicrobatches(func->getParentOfType<ModuleOp>());
  if (!count)
    return std::nullopt;
  FlatRunner runner(func, *count);
  for (auto [index, input] : llvm::enumerate(inputs)) {
    Tensors &list = runner.values[func.getArgument(index)];
    std::optional<int64_t> dim = getArgSplit(func, index);
    for (int64_t i = 0; i < (dim ? *count : 1); ++i)
      list.push_back(dim ? split(input, *dim, *count, i) : input);
    if (list.front().getType() != func.getArgumentTypes()[index])
      return std::nullopt;
  }
  Block &body = func.getBody().front();
  for (Operation &op : body.without_terminator())
    if (!runner.run(&op))
      return std::nullopt;
  SmallVector<Tensor> outputs;
  for (auto [index, value] : llvm::enumerate(body.getTerminator()->getOperands())) {
    std::optional<int64_t> dim = getResultSplit(func, index);
    const Tensors &list = runner.values[value];
    if (list.size() != (dim ? static_cast<size_t>(*count) : 1))
      return std::nullopt;
    outputs.push_back(dim ? join(list, *dim) : list.front());
  }
  return outputs;
}

std::shared_ptr<const spmd::Plan> cleave::pipe::testing::makePlan(spmd::PlanPipeline pipeline) {
  auto plan = std::make_shared<spmd::Plan>();
  plan->pipeline = std::move(pipeline);
  return plan;
}
