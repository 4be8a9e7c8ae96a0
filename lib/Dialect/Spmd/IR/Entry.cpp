//===- Entry.cpp - the function that is run -------------------------------===//
//
// Import, training, states of a plan and the compiler ask for it: one answer, and each its own error.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Spmd/IR/Entry.h"

using namespace mlir;

/// By name first: what a model calls (functions of its own, exported entries) may stand beside it.
func::FuncOp cleave::spmd::findEntry(ModuleOp module) {
  if (auto func = module.lookupSymbol<func::FuncOp>("main"))
    return func;
  auto functions = module.getOps<func::FuncOp>();
  return llvm::hasSingleElement(functions) ? *functions.begin() : func::FuncOp();
}
