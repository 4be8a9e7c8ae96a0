//===- LoopBuilder.h - loops that stay loops --------------------*- C++ -*-===//
#ifndef CLEAVE_LIB_IMPORT_ONNX_CONTROL_LOOPBUILDER_H
#define CLEAVE_LIB_IMPORT_ONNX_CONTROL_LOOPBUILDER_H

#include "../NodeContext.h"
#include <limits>

namespace cleave::onnx {

/// A tensor of which an iteration reads, or writes, the part at its place along a dim.
struct ScanPart {
  /// The tensor that is read; null for one that is written.
  Value whole = {};
  int64_t axis = 0;
  /// From the last place to the first.
  bool isReversed = false;
};

/// Why a loop without a known bound has no scan outputs, and what to do.
constexpr llvm::StringLiteral kUnboundedParts =
    "its scan outputs have a part for each iteration, and nothing bounds how many there are: give it a "
    "trip count";

/// A Loop or Scan as it begins.
struct LoopParts {
  static constexpr int64_t kNoCount = std::numeric_limits<int64_t>::max();

  const GraphProto &body;
  /// True if the body takes number and condition of the iteration first, and gives the condition of the next one (Loop).
  bool isLoop = true;
  /// Most iterations where that is known.
  int64_t count = kNoCount;
  /// Most iterations where only data tells; null otherwise.
  Value countValue = {};
  /// Whether there is a first iteration, a scalar; null where there is, but for the count.
  Value condition = {};
  llvm::ArrayRef<Bound> carried = {};
  llvm::SmallVector<ScanPart> inputs = {}, outputs = {};
  /// Gets the number of iterations there were, if only data tell; else stays null.
  Value *iterations = nullptr;
};

/// An nn.loop: what is carried in the end, then the scan outputs, with a part for each of `count` iterations; those that there are not are
/// zeros. An empty list after an error of `node`: what is carried changes its type, or is no tensor; the loop never ends; scan outputs
/// whose length nothing bounds.
llvm::SmallVector<Value> buildLoop(NodeContext &node, const LoopParts &parts);

} // namespace cleave::onnx

#endif // CLEAVE_LIB_IMPORT_ONNX_CONTROL_LOOPBUILDER_H
