//===- Movement.cpp - elements change place, not value --------------------===//
//
// What changes nothing, such as a slice of all, is no node: the operand stands for the result.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "Writers.h"
#include "cleave/Dialect/Exec/IR/Exec.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

static std::string writeConcat(nn::ConcatOp op, GraphBuilder &out) {
  Names inputs;
  for (Value input : op.getInputs())
    inputs.push_back(out(input));
  return inputs.size() == 1 ? inputs.front() : out.node("Concat", inputs, op.getType(), {{"axis", op.getDim()}});
}

static Names writeSplit(nn::SplitOp op, GraphBuilder &out) {
  SmallVector<RankedTensorType> types;
  for (Type type : op->getResultTypes())
    types.push_back(cast<RankedTensorType>(type));
  return out.nodes("Split", {out(op.getInput()), out.ints(op.getParts())}, types, {{"axis", op.getDim()}});
}

/// Amounts in front of all dims, then behind them.
static std::string writePad(nn::PadOp op, GraphBuilder &out) {
  constexpr StringLiteral modes[] = {"constant", "edge", "reflect", "wrap"};
  SmallVector<int64_t> amounts(op.getLow());
  llvm::append_range(amounts, op.getHigh());
  Names inputs = {out(op.getInput()), out.ints(amounts)};
  if (op.getValue())
    inputs.push_back(out(op.getValue()));
  return out.node("Pad", inputs, op.getType(), {{"mode", modes[static_cast<unsigned>(op.getMode())]}});
}

/// What leaves at the front comes back behind.
static std::string writeRotate(nn::RotateOp op, GraphBuilder &out) {
  std::string x = out(op.getInput());
  ArrayRef<int64_t> shape = out.typeOf(x).getShape();
  int64_t amount = op.getAmount(), dim = op.getDim();
  if (amount == 0)
    return x;
  SmallVector<int64_t> starts(shape.size(), 0), steps(shape.size(), 1), behind(shape), front(shape);
  front[dim] = amount;
  std::string moved = out.slice(x, starts, front, steps);
  starts[dim] = amount;
  behind[dim] -= amount;
  return out.node("Concat", {out.slice(x, starts, behind, steps), moved}, op.getType(), {{"axis", dim}});
}

/// Where a value is, and when it is made, ONNX does not say.
template <typename OpT> static void addSame(WriterTable &table) {
  table.add<OpT>([](OpT op, GraphBuilder &out) { return out.node("Identity", {out(op.getInput())}, op.getType()); });
}

void cleave::onnx::registerMovement(WriterTable &table) {
  addSame<exec::AgainOp>(table);
  addSame<exec::OffloadOp>(table);
  addSame<exec::FetchOp>(table);
  table.add<nn::ReshapeOp>([](nn::ReshapeOp op, GraphBuilder &out) {
    return out.reshape(out(op.getInput()), getResultType(op).getShape());
  });
  table.add<nn::TransposeOp>(
      [](nn::TransposeOp op, GraphBuilder &out) { return out.transpose(out(op.getInput()), op.getPermutation()); });
  table.add<nn::BroadcastOp>([](nn::BroadcastOp op, GraphBuilder &out) {
    return out.expand(out(op.getInput()), getResultType(op).getShape());
  });
  table.add<nn::ConcatOp>(writeConcat);
  table.add<nn::SliceOp>([](nn::SliceOp op, GraphBuilder &out) {
    return out.slice(out(op.getInput()), op.getStarts(), op.getSizes(), op.getSteps());
  });
  table.addMany<nn::SplitOp>(writeSplit);
  table.add<nn::PadOp>(writePad);
  table.add<nn::RotateOp>(writeRotate);
  table.add<nn::TriluOp>([](nn::TriluOp op, GraphBuilder &out) {
    return out.node("Trilu", {out(op.getInput()), out.number(op.getOffset())}, op.getType(),
                    {{"upper", op.getUpper()}});
  });
}
