//===- Export.cpp - a partitioned program as an ONNX graph ----------------===//
//
// Op by op, in order, each by the writer of its family. The graph is the same on all ranks; Models.cpp makes each rank's file of it.
//
//===----------------------------------------------------------------------===//
#include "cleave/Export/Onnx/Export.h"

#include "Elements.h"
#include "Writers.h"
#include "cleave/Dialect/Nn/IR/Recurrence.h"
#include "cleave/Dialect/Spmd/IR/Names.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

const WriterTable &WriterTable::get() {
  static const WriterTable table = [] {
    WriterTable all;
#define CLEAVE_NN_FAMILY(Family) register##Family(all);
#include "cleave/Dialect/Nn/IR/NnFamilies.inc"
    registerCollectives(all);
    return all;
  }();
  return table;
}

void GraphDeleter::operator()(OnnxGraph *graph) const { delete graph; }

static void unrollRecurrences(func::FuncOp func) {
  SmallVector<nn::RecurrenceOp> ops;
  func.walk([&](nn::RecurrenceOp op) { ops.push_back(op); });
  for (nn::RecurrenceOp op : ops) {
    OpBuilder builder(op);
    op->replaceAllUsesWith(nn::unrollRecurrence(builder, op.getLoc(), op, op->getOperands()));
    op.erase();
  }
}

/// Element types that this version of ONNX lacks.
static LogicalResult checkTypes(Operation *op) {
  for (Type type : llvm::concat<const Type>(op->getOperandTypes(), op->getResultTypes()))
    if (Type element = cast<RankedTensorType>(type).getElementType(); !getDataType(element) && !isSmallInteger(element))
      return op->emitOpError() << "cannot be exported: ONNX's opset " << kOpset << " has no tensors of " << element;
  return success();
}

/// Whoever calls a rank's program gives what the model takes: there small integers cannot be bytes.
static LogicalResult checkSignature(func::FuncOp func) {
  auto check = [&](Type type, StringRef kind, StringRef name) -> LogicalResult {
    Type element = cast<RankedTensorType>(type).getElementType();
    if (!isSmallInteger(element))
      return success();
    return func.emitOpError() << "cannot be exported: " << kind << " '" << name << "' is of " << element
                              << ", which is a byte in exported graphs";
  };
  for (auto [index, type] : llvm::enumerate(func.getArgumentTypes()))
    if (failed(check(type, "argument", spmd::getArgumentName(func, index))))
      return failure();
  for (auto [index, type] : llvm::enumerate(func.getResultTypes()))
    if (failed(check(type, "result", spmd::getResultName(func, index))))
      return failure();
  return success();
}

OnnxGraphPtr cleave::onnx::makeGraph(func::FuncOp func, const ExportOptions &options) {
  if (failed(checkSignature(func)))
    return nullptr;
  unrollRecurrences(func);
  GraphBuilder out(func, options);
  for (Operation &op : func.getBody().front().without_terminator()) {
    const WriterTable::Writer *write = WriterTable::get().find(op.getName());
    if (!write) {
      op.emitOpError("cannot be exported: it has no form in ONNX");
      return nullptr;
    }
    out.begin(&op);
    if (failed(checkTypes(&op)) || failed((*write)(&op, out)))
      return nullptr;
  }
  return OnnxGraphPtr(new OnnxGraph(out.finish()));
}
