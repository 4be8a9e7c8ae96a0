//===- StageDescribe.h - what an assignment of ops to stages costs -*- C++ -*-===//
//
// The terms of `describeStages` that the search for cuts needs one by one.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_SCHEDULE_STAGEDESCRIBE_H
#define CLEAVE_LIB_SCHEDULE_STAGEDESCRIBE_H

#include "cleave/Schedule/StageSplit.h"

namespace cleave::schedule {

/// Nanoseconds of a message between two ranks.
int64_t getLinkNs(const SplitOptions &options, int64_t bytes);

/// max(largest cluster or op, ceil(sum / S)): no split is faster.
int64_t getBoundNs(const SplitProblem &problem, size_t numStages);

/// Bytes of the fullest rank, all its stages together.
int64_t getPeakBytes(const SplitOptions &options, const StageSplit &split);

/// `describeStages` for any memory limit.
llvm::Expected<StageSplit> describeWithoutLimit(const SplitProblem &problem, const SplitOptions &options,
                                                std::vector<int32_t> stageOf);

} // namespace cleave::schedule

#endif // CLEAVE_LIB_SCHEDULE_STAGEDESCRIBE_H
