//===- Reduction.cpp - along one or more dims -----------------------------===//
//
// Dims are operands in ONNX, and indices i64.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Reduction.h"
#include "Writers.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

/// Bools go through a type that all runtimes reduce.
static std::string writeReduce(nn::ReduceOp op, GraphBuilder &out) {
  constexpr StringLiteral opTypes[] = {"ReduceSum", "ReduceMean", "ReduceProd", "ReduceMax", "ReduceMin"};
  std::string x = out(op.getInput());
  Type element = out.typeOf(x).getElementType();
  if (element.isInteger(1))
    x = out.cast(x, IntegerType::get(op.getContext(), 32));
  return out.cast(out.reduce(opTypes[static_cast<unsigned>(op.getKind())], x, op.getDims(), op.getKeepDims()), element);
}

static std::string writeArgReduce(nn::ArgReduceOp op, GraphBuilder &out) {
  RankedTensorType type = getResultType(op);
  std::string index =
      out.node(op.getKind() == nn::ReduceKind::Max ? "ArgMax" : "ArgMin", {out(op.getInput())},
               type.clone(IntegerType::get(op.getContext(), 64)),
               {{"axis", op.getDim()}, {"keepdims", op.getKeepDims()}, {"select_last_index", op.getLast()}});
  return out.cast(index, type.getElementType());
}

static std::string writeCumsum(nn::CumsumOp op, GraphBuilder &out) {
  return out.node("CumSum", {out(op.getInput()), out.number(op.getDim())}, op.getType(),
                  {{"exclusive", op.getExclusive()}, {"reverse", op.getReverse()}});
}

/// Of equal elements ONNX takes the lower index first, too.
static Names writeTopK(nn::TopKOp op, GraphBuilder &out) {
  RankedTensorType values = getResultType(op), places = getResultType(op, 1);
  Names made = out.nodes("TopK", {out(op.getInput()), out.ints({int64_t(op.getK())})},
                         {values, places.clone(IntegerType::get(op.getContext(), 64))},
                         {{"axis", op.getDim()}, {"largest", !op.getSmallest()}, {"sorted", 1}});
  return {made[0], out.cast(made[1], places.getElementType())};
}

template <typename OpT> static void addSoftmax(WriterTable &table, StringLiteral opType) {
  table.add<OpT>([opType](OpT op, GraphBuilder &out) {
    return out.node(opType, {out(op.getInput())}, op.getType(), {{"axis", op.getDim()}});
  });
}

void cleave::onnx::registerReduction(WriterTable &table) {
  table.add<nn::ReduceOp>(writeReduce);
  table.add<nn::ArgReduceOp>(writeArgReduce);
  addSoftmax<nn::SoftmaxOp>(table, "Softmax");
  addSoftmax<nn::LogSoftmaxOp>(table, "LogSoftmax");
  table.add<nn::CumsumOp>(writeCumsum);
  table.addMany<nn::TopKOp>(writeTopK);
}
