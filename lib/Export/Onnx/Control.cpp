//===- Control.cpp - loops ------------------------------------------------===//
//
//   %y = nn.loop count 5 while %go carries (%x) captures (%w)     y = Loop(5, go, x) body(iteration, condition, a) -> (more, b)
//
// What a loop captures is seen from its body, as all that stands around a graph of ONNX is. The number of the iteration is read by nobody:
// who counts carries a number. Collectives stay where they are: all ranks run a loop equally often.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Control.h"
#include "Writers.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

/// A loop without a condition goes on as it is told, which is `true`.
static FailureOr<Names> writeLoop(nn::LoopOp op, GraphBuilder &out) {
  Builder builder(op.getContext());
  auto number = RankedTensorType::get({}, builder.getI64Type());
  auto boolean = RankedTensorType::get({}, builder.getI1Type());
  Names inputs = {op.getCount() ? out.number(*op.getCount()) : "", op.getCondition() ? out(op.getCondition()) : ""};
  SmallVector<RankedTensorType> types;
  for (Value initial : op.getInitial()) {
    inputs.push_back(out(initial));
    types.push_back(cast<RankedTensorType>(initial.getType()));
  }
  for (auto [taken, captured] : llvm::zip_equal(op.getTaken(), op.getCaptured()))
    out.bindOutside(taken, out(captured));
  out.beginBody();
  out.bodyInput("iteration", number);
  std::string condition = out.bodyInput("condition", boolean);
  for (BlockArgument carried : op.getCarried())
    out.bodyInput("carried", cast<RankedTensorType>(carried.getType()), carried);
  LogicalResult isWritten = writeBlock(op.getBody().front(), out);
  nn::YieldOp yield = op.getYield();
  Names outputs;
  if (succeeded(isWritten)) {
    outputs.push_back(yield.getCondition() ? out(yield.getCondition()) : condition);
    for (Value next : yield.getNext())
      outputs.push_back(out(next));
  }
  std::shared_ptr<const OnnxGraph> body = out.endBody(outputs);
  if (failed(isWritten))
    return failure();
  return out.nodes("Loop", std::move(inputs), types, {{"body", std::move(body)}});
}

void cleave::onnx::registerControl(WriterTable &table) { table.addMany<nn::LoopOp>(writeLoop); }
