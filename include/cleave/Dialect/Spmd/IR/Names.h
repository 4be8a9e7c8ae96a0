//===- Names.h - nodes and tensors by the model's names ---------*- C++ -*-===//
//
// A plan addresses tensors by names of the model, and reports and errors speak of its nodes. An op remembers the node
// that it was made for twice:
//
//   %y = nn.einsum %x, %w ... {nn.node = #nn.node<"/enc/MatMul", "MatMul", ["x", "w"], [["y"]]>} loc(#nn.node<..>)
//
// The attribute is what a plan addresses; it stands between phases and survives `-strip-debuginfo`. The location is for
// people, and it is what rewrites carry along: within a phase that rewrites ops it alone is true, and the phase ends
// with `storeNodes`. A function argument has its names as attributes of its own, a parameter's name is its symbol.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_SPMD_IR_NAMES_H
#define CLEAVE_DIALECT_SPMD_IR_NAMES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

namespace cleave::spmd {

/// Attributes of whatever dialect a model was imported into. Of an op: the location of its node.
constexpr llvm::StringLiteral kNodeAttr = "nn.node";
/// Of an argument or result of a function: the tensor's name.
constexpr llvm::StringLiteral kNameAttr = "nn.name";
/// Of an argument: further names, an array of strings. Nodes that only pass a tensor on give it one.
constexpr llvm::StringLiteral kAliasesAttr = "nn.aliases";
/// Of an argument: what the model calls its dims, an array of strings; empty ones have no name.
constexpr llvm::StringLiteral kDimsAttr = "nn.dims";
/// Of an argument: it is a parameter, although the caller gives it (a step of training changes it).
constexpr llvm::StringLiteral kParameterAttr = "nn.parameter";
/// Of a parameter's symbol: the modules of the exporter's model that read it, an array of strings; empty ones have no name.
constexpr llvm::StringLiteral kModulesAttr = "nn.modules";
/// Of a module: nodes of the model, as locations, that a plan may ask for although no op of the program needs them.
constexpr llvm::StringLiteral kUnusedAttr = "nn.unused";

/// What is known of the node behind an op: views of strings that live as long as the MLIR context.
struct NodeInfo {
  llvm::StringRef node, opType;
  llvm::ArrayRef<llvm::StringRef> operands;
  /// Per result of the op: its tensor names. Empty for helper ops within a node.
  llvm::ArrayRef<llvm::ArrayRef<llvm::StringRef>> results;
  /// The module of the exporter's model that the node stands in, `model.layers.0.mlp`; empty where the file does not say.
  llvm::StringRef module = {};

  /// The same, or what the folders of the node's name say: `/encoder/layer.0/MatMul` stands in `encoder.layer.0`. Empty: it is not known.
  std::string getModule() const;
};

/// The folders of a node's name as a module, for exporters that write modules so (TorchScript's): `encoder.layer.0` of
/// `/encoder/layer.0/MatMul`. Empty for other names.
std::string getFolders(llvm::StringRef node);

/// All nodes that a location names (several where ops were fused), outermost first; empty for other locations.
llvm::SmallVector<NodeInfo, 1> getNodeInfos(mlir::Location loc);
/// The same of what an op has as its node; of its location where it has none.
llvm::SmallVector<NodeInfo, 1> getNodeInfos(mlir::Operation *op);

/// Gives every op the node in its location as an attribute, or none where that names none.
void storeNodes(mlir::func::FuncOp func);
/// The other way round, where locations have been lost; what place there is stays beside the node.
void restoreNodes(mlir::func::FuncOp func);

/// Name of a function's argument or result: its `nn.name`, or `arg0`, `result0` by its number.
llvm::StringRef getArgumentName(mlir::func::FuncOp func, unsigned index);
llvm::StringRef getResultName(mlir::func::FuncOp func, unsigned index);

/// The model's names of a value: of an argument, a parameter, an op result; empty if it has none.
llvm::SmallVector<llvm::StringRef, 1> getTensorNames(mlir::Value value);

/// One line for diagnostics and reports, such as `/enc/MatMul`; the tensor's name where the node has none.
std::string describeNode(mlir::Operation *op);

} // namespace cleave::spmd

#endif // CLEAVE_DIALECT_SPMD_IR_NAMES_H
