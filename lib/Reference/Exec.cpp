//===- Exec.cpp - kernels and library commands ----------------------------===//
//
// A kernel is its ops, one after the other; a library command is the op of nn that it stands for. So what a lowered
// program gives are the bits of the program that it was made from.
//
//===----------------------------------------------------------------------===//
#include "Kernels.h"

#include "cleave/Dialect/Exec/IR/Exec.h"
#include "cleave/Reference/Evaluator.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::reference;

static LogicalResult runBody(Block &body, Operands operands, SmallVectorImpl<Tensor> &results) {
  llvm::DenseMap<Value, Tensor> values;
  auto lookUp = [&](ValueRange used) { return llvm::map_to_vector(used, [&](Value value) { return values[value]; }); };
  for (auto [argument, operand] : llvm::zip_equal(body.getArguments(), operands))
    values[argument] = operand;
  for (Operation &op : body.without_terminator()) {
    SmallVector<Tensor> own;
    if (failed(evaluate(&op, lookUp(op.getOperands()), own)))
      return failure();
    for (auto [value, tensor] : llvm::zip_equal(op.getResults(), own))
      values[value] = tensor;
  }
  llvm::append_range(results, lookUp(body.getTerminator()->getOperands()));
  return success();
}

static LogicalResult runMeaning(Operation *op, Operands operands, SmallVectorImpl<Tensor> &results) {
  OwningOpRef<Operation *> meaning = exec::createMeaning(op);
  return evaluate(*meaning, operands, results);
}

void cleave::reference::registerExec(KernelTable &table) {
  using Results = SmallVectorImpl<Tensor>;
  table.addMany<exec::FusedOp>([](exec::FusedOp op, Operands operands, Results &results) {
    return runBody(op.getBody().front(), operands, results);
  });
  table.addMany<exec::LaunchOp>([](exec::LaunchOp op, Operands operands, Results &results) -> LogicalResult {
    auto kernel = SymbolTable::lookupNearestSymbolFrom<exec::KernelOp>(op, op.getKernelAttr());
    if (!kernel)
      return op.emitOpError() << "cannot be evaluated: there is no " << op.getKernelAttr();
    return runBody(kernel.getBody().front(), operands, results);
  });
  table.addMany<exec::MatmulOp>(runMeaning);
  table.addMany<exec::ConvOp>(runMeaning);
  table.addMany<exec::AttentionOp>(runMeaning);
}
