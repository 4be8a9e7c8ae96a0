//===- ProgramGraph.h - a rank's program as a graph -------------*- C++ -*-===//
//
// What pictures of a program are made of: its ops, what each reads, takes and sends, and the bytes that the rank holds from one op to
// another. Counted as the report counts (Report.h), from the partitioned functions themselves.
//
//   %h = nn.einsum %x, %w      op 0, given {x, w}
//   %s = spmd.all_reduce %h    op 1, reads {0}, sends
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PIPELINES_PROGRAMGRAPH_H
#define CLEAVE_PIPELINES_PROGRAMGRAPH_H

#include "cleave/Pipelines/Report.h"

namespace cleave {

/// An op of a rank's program. Constants and loaded weights are no ops: who reads one has its name.
struct GraphOp {
  /// `nn.einsum`, the node `/enc/MatMul` that it is of, and that node's module; the last two may be empty.
  std::string op, node, module;
  /// Of its first result, as it is on a rank: `4x128xf32`.
  std::string type;
  /// Ops whose results it reads, by number.
  std::vector<unsigned> reads;
  /// Weights and inputs that it reads, by name.
  std::vector<std::string> given;
  /// Of all its runs.
  double ns = 0, flops = 0;
  int64_t runs = 0;
  std::vector<CollectiveReport> sent;
  /// The function that it is in, by number: a stage of a pipeline, what a rank does beside its stages, or the only one.
  unsigned part = 0;
  /// The step of its rank's program at which it runs.
  unsigned step = 0;
};

/// Bytes that are held from a step to a step, both included, and what they are for, in the words of `memory_by_role` of docs/report.md.
struct HeldTensor {
  std::string role;
  unsigned first = 0, last = 0;
  int64_t bytes = 0;
};

struct ProgramGraph {
  /// Part by part, each in the order in which a rank runs it.
  std::vector<GraphOp> ops;
  /// Names of parts: `stage0`, `stage0.W`.
  std::vector<std::string> parts;
  /// Of the rank that holds most at a time: what and how many steps it has.
  std::vector<HeldTensor> held;
  unsigned rank = 0, steps = 0;
};

/// The program of a rank, or of those of a pipeline, in their order, each with the functions that it calls. Predicts times where there is a
/// cluster. Precondition: that of `makeReport`, or of `makePipelineReport`.
ProgramGraph describeProgram(llvm::ArrayRef<mlir::func::FuncOp> ranks, const spmd::Cluster *cluster);

} // namespace cleave

#endif // CLEAVE_PIPELINES_PROGRAMGRAPH_H
