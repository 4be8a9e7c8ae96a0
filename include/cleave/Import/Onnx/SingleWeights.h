//===- SingleWeights.h - weights of one number ------------------*- C++ -*-===//
//
// A number alone is a factor, an epsilon or a bound in most models, and so a constant. Where ops have weights it is one of a layer with one
// channel: the bias of a product with one column, the slope of a PRelu.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_IMPORT_ONNX_SINGLEWEIGHTS_H
#define CLEAVE_IMPORT_ONNX_SINGLEWEIGHTS_H

#include "cleave/Onnx/Model.h"
#include "llvm/ADT/StringSet.h"

namespace cleave::onnx {

/// Initializers of one element which nodes of the graph, and of those within it, read as a kernel, a factor of a product, a bias of either,
/// or the scale or shift of a norm.
llvm::StringSet<> findSingleWeights(const GraphProto &graph);

} // namespace cleave::onnx

#endif // CLEAVE_IMPORT_ONNX_SINGLEWEIGHTS_H
