//===- StageGradients.h - what gradients of a model take --------*- C++ -*-===//
//
// A product costs its F once more for each operand that needs a gradient: W for one that is made of parameters, I for any
// other. Attention is two products forward and four backward: I takes twice its F. Everything else costs its F once: I, or
// W where nothing but parameters needs a gradient (the sums of biases and scales are read along with I). What is made of
// inputs and constants alone, integers and comparisons need none.
//
// Kept from F on is what gradients read, each value once per stage: until I what I alone reads, until W the rest. In
// between, W's share of the gradients of results waits for it.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_PIPE_STAGES_STAGEGRADIENTS_H
#define CLEAVE_DIALECT_PIPE_STAGES_STAGEGRADIENTS_H

#include "cleave/Dialect/Pipe/Stages/StageGraph.h"

namespace cleave::pipe {

/// Of one op and microbatch.
struct OpGradients {
  double inputGradNs = 0, weightGradNs = 0;
  /// Positions in `SplitProblem::values` of what I and W read.
  llvm::SmallVector<uint32_t, 2> inputGradReads, weightGradReads;
  /// Of the gradients of its results, where W reads them.
  int64_t waitingBytes = 0;
};

/// Per op of the graph.
std::vector<OpGradients> findGradients(const StageGraph &graph);

/// Of one stage and microbatch: times, and how I and W change what is held after F.
struct StageGradients {
  double forwardNs = 0, inputGradNs = 0, weightGradNs = 0;
  /// Values that F leaves behind; at most this is held in F without gradients.
  double keptBytes = 0, liveBytes = 0;
  double inputGradBytes = 0, weightGradBytes = 0;
};

/// The same graph, with the time of an op's F, I and W together.
StageGraph addGradients(StageGraph graph, llvm::ArrayRef<OpGradients> ops);

/// Sums over the ops of each stage. `liveBytes` is the most that its values take at a time, those that later stages read
/// until its end.
std::vector<StageGradients> sumGradients(const StageGraph &graph, llvm::ArrayRef<OpGradients> ops,
                                         llvm::ArrayRef<int32_t> stageOf, size_t numStages);

/// The same of a step, whose backward is there, ops and all: no estimates. Kept until I or W is what that unit reads of the forward, and until
/// W what it reads of I. Precondition: `graph.backwardNs` is not empty.
std::vector<StageGradients> sumStep(const StageGraph &graph, llvm::ArrayRef<int32_t> stageOf, size_t numStages);

/// What stages take on ranks that differ: the stage on rank `placement[s]` takes its times divided by the speed of that rank. Bytes stay.
void scaleTimes(const schedule::SplitOptions &options, llvm::ArrayRef<int32_t> placement,
                std::vector<StageGradients> &sums);

} // namespace cleave::pipe

#endif // CLEAVE_DIALECT_PIPE_STAGES_STAGEGRADIENTS_H
