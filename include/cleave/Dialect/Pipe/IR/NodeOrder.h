//===- NodeOrder.h - the nodes of a model, in order -------------*- C++ -*-===//
#ifndef CLEAVE_DIALECT_PIPE_IR_NODEORDER_H
#define CLEAVE_DIALECT_PIPE_IR_NODEORDER_H

#include "llvm/ADT/StringRef.h"

namespace cleave::pipe {

/// Of a module until its stages are assigned, where a plan names nodes for them: the names of all nodes of the model, in its order (an array
/// of strings). Of a node that has become part of another one's op, a stage starts at the next one that is left.
inline constexpr llvm::StringLiteral kNodesAttr = "pipe.nodes";

/// Of calls in the function of a rank, where two actions run as one (OVERLAP_F_B): twice the number of their pair, and one more for calls of
/// the second action.
inline constexpr llvm::StringLiteral kPairAttr = "pipe.pair";

} // namespace cleave::pipe

#endif // CLEAVE_DIALECT_PIPE_IR_NODEORDER_H
