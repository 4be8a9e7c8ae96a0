//===- StageDescribe.cpp - what an assignment of ops to stages costs ------===//
//
// Sends follow from who uses a value: a rank gets it once, in the message to the first of its stages that does; relayed
// values go from stage to stage instead. The busiest link of a stage is the one to the rank that gets most.
//
//===----------------------------------------------------------------------===//
#include "StageDescribe.h"

#include "cleave/Schedule/Schedule.h"

#include "cleave/Support/Status.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <algorithm>
#include <cmath>
#include <map>

using namespace cleave;
using namespace cleave::schedule;

// A microbatch is kept from its F to its W, or to its B.
std::vector<int64_t> cleave::schedule::countInFlight(const Schedule &table) {
  std::vector<int64_t> most(table.numStages, 1);
  for (const std::vector<Action> &program : table.programs) {
    std::vector<int64_t> kept(table.numStages, 0);
    for (const Action &action : program) {
      int64_t &own = kept[action.stage];
      own += action.kind == ActionKind::F;
      own -= action.kind == ActionKind::B || action.kind == ActionKind::W;
      most[action.stage] = std::max(most[action.stage], own);
    }
  }
  return most;
}

// The alpha-beta model: a constant and a rate.
int64_t cleave::schedule::getLinkNs(const SplitOptions &options, int64_t bytes) {
  double ns = options.latencyNs + (options.bytesPerNs > 0 ? static_cast<double>(bytes) / options.bytesPerNs : 0);
  return std::llround(ns);
}

// Rounded up, so that no stage takes less than is said.
int64_t cleave::schedule::scaleNs(double speed, int64_t ns) {
  return speed == 1 ? ns : static_cast<int64_t>(std::ceil(static_cast<double>(ns) / speed));
}

// Ranks have speeds, stages have ranks.
double cleave::schedule::getSpeed(const SplitOptions &options, size_t stage) {
  return options.getSpeed(options.placement[stage]);
}

// Both limits count: that of a plan, and that of a device.
int64_t SplitOptions::getLimit(int32_t rank) const {
  int64_t own = memoryLimits.empty() ? 0 : memoryLimits[rank];
  return memoryLimit && own ? std::min(memoryLimit, own) : std::max(memoryLimit, own);
}

int64_t cleave::schedule::getLimit(const SplitOptions &options, size_t stage) {
  int64_t limit = options.getLimit(options.placement[stage]);
  return limit ? limit : std::numeric_limits<int64_t>::max();
}

/// A stage after the producer's that uses a value, per rank the first.
static void addSends(const SplitProblem &problem, const SplitOptions &options, StageSplit &split, uint32_t index) {
  const SplitValue &value = problem.values[index];
  int32_t producer = split.stageOf[value.producer];
  llvm::SmallVector<int32_t, 8> users;
  for (uint32_t user : value.users)
    if (split.stageOf[user] > producer)
      users.push_back(split.stageOf[user]);
  if (users.empty() || value.bytes == 0)
    return;
  // By stage, so that the first of each rank gets the message.
  llvm::sort(users);
  for (int32_t boundary = producer; boundary < users.back(); ++boundary)
    split.crossingBytes[boundary] += value.bytes;
  // A stage passes on what it does not use itself.
  if (options.relays) {
    for (int32_t stage = producer; stage < users.back(); ++stage)
      if (options.placement[stage] != options.placement[stage + 1])
        split.stages[stage].sends.push_back({index, stage + 1, value.bytes});
    return;
  }
  llvm::SmallDenseSet<int32_t> served = {options.placement[producer]};
  for (int32_t user : users)
    if (served.insert(options.placement[user]).second)
      split.stages[producer].sends.push_back({index, user, value.bytes});
}

/// The busiest link of a stage, and the time of all.
static std::pair<int64_t, int64_t> getLinks(const SplitOptions &options, const StageSummary &stage) {
  // Stages of one rank share the link to it.
  std::map<int32_t, int64_t> bytesTo;
  for (const StageSend &send : stage.sends)
    bytesTo[options.placement[send.to]] += send.bytes;
  int64_t busiest = 0, all = 0;
  for (auto [rank, bytes] : bytesTo) {
    int64_t ns = getLinkNs(options, bytes);
    busiest = std::max(busiest, ns);
    all += ns;
  }
  return {busiest, all};
}

/// P3: stages depend on earlier ones alone.
static llvm::Error checkEdges(const SplitProblem &problem, llvm::ArrayRef<int32_t> stageOf) {
  for (const SplitValue &value : problem.values)
    for (uint32_t user : value.users)
      if (stageOf[user] < stageOf[value.producer])
        return makeError("stage {0} needs what a later stage makes: node {1} of stage {2} makes {3}, which node {4} of "
                         "stage {0} uses",
                         stageOf[user], quote(problem.ops[value.producer].name), stageOf[value.producer],
                         quote(value.name), quote(problem.ops[user].name));
  return llvm::Error::success();
}

/// Time, parameters and memory of each stage.
static llvm::Error sumOps(const SplitProblem &problem, const SplitOptions &options, StageSplit &split) {
  size_t numStages = options.placement.size();
  std::vector<int64_t> saved(numStages, 0), temporary(numStages, 0);
  std::vector<llvm::DenseSet<uint32_t>> parameters(numStages);
  for (auto [op, stage] : llvm::zip_equal(problem.ops, split.stageOf)) {
    StageSummary &summary = split.stages[stage];
    ++summary.numOps;
    summary.ns += op.ns;
    saved[stage] += op.savedBytes;
    temporary[stage] = std::max(temporary[stage], op.temporaryBytes);
    for (uint32_t parameter : op.parameters)
      if (parameters[stage].insert(parameter).second)
        summary.parameterBytes += problem.parameterBytes[parameter];
  }
  for (auto [stage, summary] : llvm::enumerate(split.stages)) {
    summary.ns = scaleNs(getSpeed(options, stage), summary.ns);
    if (summary.numOps == 0)
      return makeError("stage {0} of {1} has no ops", stage, numStages);
    int64_t inFlight = options.inFlight.empty() ? 1 : options.inFlight[stage];
    summary.memoryBytes = summary.parameterBytes + saved[stage] * inFlight + temporary[stage];
  }
  return llvm::Error::success();
}

// Stages of a rank hold their parts at the same time.
std::map<int32_t, int64_t> cleave::schedule::getBytes(const SplitOptions &options, const StageSplit &split) {
  std::map<int32_t, int64_t> bytesOf;
  for (auto [rank, stage] : llvm::zip_equal(options.placement, split.stages))
    bytesOf[rank] += stage.memoryBytes;
  return bytesOf;
}

int64_t cleave::schedule::getPeakBytes(const SplitOptions &options, const StageSplit &split) {
  int64_t peak = 0;
  for (auto [rank, bytes] : getBytes(options, split))
    peak = std::max(peak, bytes);
  return peak;
}

// Of a rank with several stages each of them has the same limit, which is that of all together.
bool cleave::schedule::fits(const SplitOptions &options, const StageSplit &split) {
  std::map<int32_t, int64_t> bytesOf = getBytes(options, split);
  return llvm::all_of(llvm::enumerate(options.placement),
                      [&](auto entry) { return bytesOf[entry.value()] <= getLimit(options, entry.index()); });
}

llvm::Expected<StageSplit> cleave::schedule::describeWithoutLimit(const SplitProblem &problem,
                                                                  const SplitOptions &options,
                                                                  std::vector<int32_t> stageOf) {
  StageSplit split;
  size_t numStages = options.placement.size();
  split.stages.resize(numStages);
  split.crossingBytes.assign(numStages - 1, 0);
  split.stageOf = std::move(stageOf);
  if (llvm::Error error = checkEdges(problem, split.stageOf))
    return error;
  if (llvm::Error error = sumOps(problem, options, split))
    return error;
  for (uint32_t value = 0; value < problem.values.size(); ++value)
    addSends(problem, options, split, value);
  for (StageSummary &stage : split.stages) {
    auto [busiest, all] = getLinks(options, stage);
    stage.linkNs = busiest;
    split.bottleneckNs = std::max({split.bottleneckNs, busiest, stage.ns + (options.overlapsSends ? 0 : all)});
  }
  split.boundNs = getBoundNs(problem, options);
  return split;
}

// Some stage has the largest cluster, and some stage has at least the mean.
int64_t cleave::schedule::getBoundNs(const SplitProblem &problem, const SplitOptions &options) {
  int64_t sum = 0, largest = 0;
  std::map<int32_t, int64_t> clusters;
  for (const SplitOp &op : problem.ops) {
    sum += op.ns;
    largest = std::max(largest, op.cluster < 0 ? op.ns : clusters[op.cluster] += op.ns);
  }
  double all = 0, fastest = 0;
  for (size_t stage = 0; stage < options.placement.size(); ++stage) {
    all += getSpeed(options, stage);
    fastest = std::max(fastest, getSpeed(options, stage));
  }
  auto count = static_cast<int64_t>(options.placement.size());
  return options.speeds.empty() ? std::max(largest, (sum + count - 1) / count)
                                : std::max(scaleNs(fastest, largest), scaleNs(all, sum));
}

llvm::Expected<StageSplit> cleave::schedule::describeStages(const SplitProblem &problem, const SplitOptions &options,
                                                            std::vector<int32_t> stageOf) {
  assert(stageOf.size() == problem.ops.size() && "a stage per op");
  llvm::Expected<StageSplit> split = describeWithoutLimit(problem, options, std::move(stageOf));
  if (!split)
    return split;
  if (fits(options, *split))
    return split;
  for (auto [rank, bytes] : getBytes(options, *split))
    for (auto [stage, place] : llvm::enumerate(options.placement))
      if (int64_t limit = getLimit(options, stage); place == rank && bytes > limit && !options.memoryLimits.empty())
        return makeError("these stages need {0} bytes on rank {1}, which may hold {2}", bytes, rank, limit);
  return makeError("these stages need {0} bytes on one rank, and the memory limit is {1}",
                   getPeakBytes(options, *split), options.memoryLimit);
}
