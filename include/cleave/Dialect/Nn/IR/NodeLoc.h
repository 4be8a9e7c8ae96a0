//===- NodeLoc.h - locations of ops made for ONNX nodes ---------*- C++ -*-===//
//
// Rewrites carry the model's names along in locations, which do not hinder the merging of equal ops and appear in every
// diagnostic (Names.h says how they are kept between phases). An op made for a node has a location of our own:
//
//   loc(#nn.node<"/enc/MatMul", "MatMul", ["x", "w"], [["y"]]>)
//
// Names of results (the last list) stand only on the op whose results are the node's output tensors: one list of names
// per result (a tensor has several names where Identity nodes were dropped).
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_NN_IR_NODELOC_H
#define CLEAVE_DIALECT_NN_IR_NODELOC_H

#include "cleave/Dialect/Spmd/IR/Names.h"

namespace cleave::nn {

using spmd::describeNode;
using spmd::getArgumentName;
using spmd::getNodeInfos;
using spmd::getResultName;
using spmd::getTensorNames;
using spmd::NodeInfo;

/// The location of an op made for `info`; copies the strings.
mlir::Location makeNodeLoc(mlir::MLIRContext *context, const NodeInfo &info);

/// `loc` without the names of result tensors: for an op that a rewrite puts before the one that makes the tensor.
mlir::Location getInnerLoc(mlir::Location loc);

} // namespace cleave::nn

#endif // CLEAVE_DIALECT_NN_IR_NODELOC_H
