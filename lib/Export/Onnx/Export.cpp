//===- Export.cpp - a partitioned program as an ONNX graph ----------------===//
//
// Op by op, in order, each by the writer of its family. The graph is the same on all ranks; Models.cpp makes each rank's file of it.
//
//===----------------------------------------------------------------------===//
#include "cleave/Export/Onnx/Export.h"

#include "Elements.h"
#include "Writers.h"
#include "cleave/Dialect/Nn/IR/Ops/Recurrence.h"
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
    registerControl(all);
    registerCollectives(all);
    registerMessages(all);
    return all;
  }();
  return table;
}

void GraphDeleter::operator()(OnnxGraph *graph) const { delete graph; }

/// A copy of the module in which recurrences of `func`, the copy's from then on, are written step by step; nothing where there are none.
static OwningOpRef<ModuleOp> unrollRecurrences(func::FuncOp &func) {
  if (!func.walk([](nn::RecurrenceOp) { return WalkResult::interrupt(); }).wasInterrupted())
    return nullptr;
  OwningOpRef<ModuleOp> copy = func->getParentOfType<ModuleOp>().clone();
  func = copy->lookupSymbol<func::FuncOp>(func.getName());
  SmallVector<nn::RecurrenceOp> ops;
  func.walk([&](nn::RecurrenceOp op) { ops.push_back(op); });
  for (nn::RecurrenceOp op : ops) {
    OpBuilder builder(op);
    op->replaceAllUsesWith(nn::unrollRecurrence(builder, op.getLoc(), op, op->getOperands()));
    op.erase();
  }
  return copy;
}

/// Element types that this version of ONNX lacks.
static LogicalResult checkTypes(Operation *op) {
  for (Type type : llvm::concat<const Type>(op->getOperandTypes(), op->getResultTypes()))
    if (Type element = cast<RankedTensorType>(type).getElementType(); !getDataType(element) && !isSmallInteger(element))
      return op->emitOpError() << "cannot be exported: ONNX's opset " << kOpset << " has no tensors of " << element;
  return success();
}

/// Whoever calls a rank's program gives what the model takes: there small integers cannot be bytes. A file written by hand may say of a
/// shard what it is not.
static LogicalResult checkPort(func::FuncOp func, Type type, Attribute whole, const Twine &port) {
  Type element = cast<RankedTensorType>(type).getElementType();
  if (isSmallInteger(element))
    return func.emitOpError() << "cannot be exported: " << port << " is of " << element
                              << ", which is a byte in exported graphs";
  if (!whole)
    return success();
  auto attr = dyn_cast<TypeAttr>(whole);
  auto global = attr ? dyn_cast<RankedTensorType>(attr.getValue()) : nullptr;
  spmd::ShardingAttr sharding = global ? spmd::getSharding(global) : nullptr;
  if (global && spmd::getLocalType(global) == type && (!sharding || sharding.getMesh() == spmd::getMesh(func)))
    return success();
  return func.emitOpError() << "cannot be exported: " << port << " is " << type << ", which is not a shard of " << whole
                            << " on the module's mesh";
}

/// A value that the program holds for stands in the file, whole: on all ranks, or, in a file written by hand, not at all.
static LogicalResult checkValue(func::FuncOp func, unsigned index) {
  Attribute value = func.getArgAttr(index, nn::NnDialect::kValueAttr);
  auto type = cast<RankedTensorType>(func.getArgumentTypes()[index]);
  auto elements = dyn_cast_if_present<DenseElementsAttr>(value);
  if (!value || (elements && elements.getType().getShape() == type.getShape() &&
                 elements.getElementType() == type.getElementType()))
    return success();
  return func.emitOpError() << "cannot be exported: argument '" << spmd::getArgumentName(func, index) << "' is " << type
                            << " on a rank, and " << nn::NnDialect::kValueAttr
                            << " gives other elements than these: leave what shapes depend on replicated";
}

static LogicalResult checkSignature(func::FuncOp func) {
  for (unsigned index = 0; index < func.getNumArguments(); ++index)
    if (failed(checkValue(func, index)))
      return failure();

  for (auto [index, type] : llvm::enumerate(func.getArgumentTypes()))
    if (failed(checkPort(func, type, func.getArgAttr(index, spmd::SpmdDialect::kGlobalTypeAttr),
                         "argument '" + spmd::getArgumentName(func, index) + "'")))
      return failure();
  for (auto [index, type] : llvm::enumerate(func.getResultTypes()))
    if (failed(checkPort(func, type, func.getResultAttr(index, spmd::SpmdDialect::kGlobalTypeAttr),
                         "result '" + spmd::getResultName(func, index) + "'")))
      return failure();
  return success();
}

LogicalResult cleave::onnx::writeBlock(Block &block, GraphBuilder &out) {
  for (Operation &op : block.without_terminator()) {
    const WriterTable::Writer *write = WriterTable::get().find(op.getName());
    if (!write)
      return op.emitOpError("cannot be exported: it has no form in ONNX");
    out.begin(&op);
    if (failed(checkTypes(&op)) || failed((*write)(&op, out)))
      return failure();
  }
  return success();
}

OnnxGraphPtr cleave::onnx::makeGraph(func::FuncOp func, const ExportOptions &options) {
  if (failed(checkSignature(func)))
    return nullptr;
  OwningOpRef<ModuleOp> copy = unrollRecurrences(func);
  GraphBuilder out(func, options);
  if (failed(writeBlock(func.getBody().front(), out)))
    return nullptr;
  OnnxGraphPtr graph(new OnnxGraph(out.finish()));
  graph->unrolled = std::move(copy);
  return graph;
}
