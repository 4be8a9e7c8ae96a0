//===- Control.h - what unrolled loops share --------------------*- C++ -*-===//
#ifndef CLEAVE_LIB_IMPORT_ONNX_CONTROL_CONTROL_H
#define CLEAVE_LIB_IMPORT_ONNX_CONTROL_CONTROL_H

#include "../NodeContext.h"

namespace cleave::onnx {

/// The path of names in iteration `index` of a node.
std::string getPath(NodeContext &node, int64_t index);

/// Nodes that so many iterations of `body` are likely to become.
double predictNodes(const GraphProto &body, int64_t trips);

/// `lhs` where the condition, a scalar, holds, else `rhs`: tensors of one type, or sequences of such. `why` they must be.
Bound select(NodeContext &node, Value condition, const Bound &lhs, const Bound &rhs, const llvm::Twine &what,
             const llvm::Twine &why);

/// What the iterations of a loop give one by one, one tensor along a new dim. Without iterations its shape is what the body
/// declares.
Value stack(NodeContext &node, llvm::ArrayRef<Value> parts, int64_t axis, const ValueInfoProto &declared);

} // namespace cleave::onnx

#endif // CLEAVE_LIB_IMPORT_ONNX_CONTROL_CONTROL_H
