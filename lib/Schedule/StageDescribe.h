//===- StageDescribe.h - what an assignment of ops to stages costs -*- C++ -*-===//
//
// The terms of `describeStages` that the search for boundaries needs one by one.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_SCHEDULE_STAGEDESCRIBE_H
#define CLEAVE_LIB_SCHEDULE_STAGEDESCRIBE_H

#include "cleave/Schedule/StageSplit.h"

#include <map>

namespace cleave::schedule {

/// Nanoseconds of a message between two ranks.
int64_t getLinkNs(const SplitOptions &options, int64_t bytes);

/// What a rank takes for ops of so many nanoseconds, rounded up.
int64_t scaleNs(double speed, int64_t ns);
/// Of the rank of a stage; 1 where ranks do not differ.
double getSpeed(const SplitOptions &options, size_t stage);
/// What the rank of a stage may hold; the largest number where nothing limits it.
int64_t getLimit(const SplitOptions &options, size_t stage);

/// max(largest cluster or op, ceil(sum / S)): no split is faster. See `StageSplit::boundNs` for ranks that differ.
int64_t getBoundNs(const SplitProblem &problem, const SplitOptions &options);

/// By rank, all its stages together.
std::map<int32_t, int64_t> getBytes(const SplitOptions &options, const StageSplit &split);
/// Of the fullest one.
int64_t getPeakBytes(const SplitOptions &options, const StageSplit &split);
/// No rank holds more than it may.
bool fits(const SplitOptions &options, const StageSplit &split);

/// `describeStages` for any memory limit.
llvm::Expected<StageSplit> describeWithoutLimit(const SplitProblem &problem, const SplitOptions &options,
                                                std::vector<int32_t> stageOf);

} // namespace cleave::schedule

#endif // CLEAVE_LIB_SCHEDULE_STAGEDESCRIBE_H
