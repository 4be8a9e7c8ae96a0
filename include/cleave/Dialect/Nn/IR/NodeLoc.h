//===- NodeLoc.h - which ONNX node and tensors an op stands for -*- C++ -*-===//
//
// Locations carry the model's names: they survive rewrites, do not hinder the merging of equal ops, and appear in every
// diagnostic. An op made for a node has a location of our own:
//
//   loc(#nn.node<"/enc/MatMul", "MatMul", ["x", "w"], [["y"]]>)
//
// Names of results (the last list) stand only on the op whose results are the node's output tensors: one list of names
// per result (a tensor has several names where Identity nodes were dropped). A function argument's name is its
// `nn.name` attribute, a parameter's name is its symbol.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_NN_IR_NODELOC_H
#define CLEAVE_DIALECT_NN_IR_NODELOC_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

namespace cleave::nn {

/// What a location says about the ONNX node behind an op: views of strings that live as long as the MLIR context.
struct NodeInfo {
  llvm::StringRef node, opType;
  llvm::ArrayRef<llvm::StringRef> operands;
  /// Per result of the op: its tensor names. Empty for helper ops within a node.
  llvm::ArrayRef<llvm::ArrayRef<llvm::StringRef>> results;
};

/// The location of an op made for `info`; copies the strings.
mlir::Location makeNodeLoc(mlir::MLIRContext *context, const NodeInfo &info);

/// All nodes that a location names (several where ops were fused), outermost first; empty for other locations.
llvm::SmallVector<NodeInfo, 1> getNodeInfos(mlir::Location loc);

/// `loc` without the names of result tensors: for an op that a rewrite puts before the one that makes the tensor.
mlir::Location getInnerLoc(mlir::Location loc);

/// Name of a function's argument or result: its `nn.name`, or `arg0`, `result0` by its number.
llvm::StringRef getArgumentName(mlir::func::FuncOp func, unsigned index);
llvm::StringRef getResultName(mlir::func::FuncOp func, unsigned index);

/// ONNX names of a value: of an argument, a parameter's load or an op result; empty if it has none.
llvm::SmallVector<llvm::StringRef, 1> getTensorNames(mlir::Value value);

/// One line for diagnostics and reports, such as `/enc/MatMul`; the tensor's name where the node has none.
std::string describeNode(mlir::Operation *op);

} // namespace cleave::nn

#endif // CLEAVE_DIALECT_NN_IR_NODELOC_H
