//===- NodeOrder.h - nodes in the order of what they read -------*- C++ -*-===//
#ifndef CLEAVE_ONNX_NODEORDER_H
#define CLEAVE_ONNX_NODEORDER_H

#include "cleave/Onnx/Model.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

namespace cleave::onnx {

/// Adds the names of tensors that `node` reads: its operands, what its bodies do not define themselves, and what a gradient is of.
void addReads(const NodeProto &node, llvm::SmallVectorImpl<llvm::StringRef> &reads);

/// Adds the names that a graph defines: inputs, initializers, outputs of nodes.
void addDefinitions(const GraphProto &graph, llvm::SmallVectorImpl<llvm::StringRef> &names);

/// The nodes of a graph or of a function's body, by their numbers in the file.
class NodeOrder {
public:
  /// `isBound` says which names are there before all nodes. Nodes are not kept.
  NodeOrder(llvm::ArrayRef<NodeProto> nodes, llvm::function_ref<bool(llvm::StringRef)> isBound);

  /// Each node behind those whose results it reads, and else in the file's order; those of a cycle, and what reads their results, are
  /// left out.
  std::vector<unsigned> sort() const;
  /// Nodes of which each reads what the next one makes, the last one what the first makes. Precondition: `sort` left some out.
  llvm::SmallVector<unsigned> findCycle(llvm::ArrayRef<unsigned> sorted) const;

private:
  /// By node: those whose results it reads.
  std::vector<llvm::SmallVector<unsigned, 2>> sources;
  bool isSorted = true;
};

} // namespace cleave::onnx

#endif // CLEAVE_ONNX_NODEORDER_H
