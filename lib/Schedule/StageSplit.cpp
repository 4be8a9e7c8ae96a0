//===- StageSplit.cpp - where a model is split into stages ----------------===//
//
// Per topological order of the units (the given one and the depth-first one, which finishes a branch before the next):
//
//   positions   all, or the best of many short stretches; what lies between two becomes a block
//   splits      the least bottleneck, then the fewest bytes among the splits that reach it (StageBoundaries.h)
//
// Ops that belong on one rank are tried on each rank in turn, which fixes the stages that they may be in. The best
// answer is the one whose described bottleneck is least, then whose sends are fewest.
//
//===----------------------------------------------------------------------===//
#include "cleave/Schedule/StageSplit.h"

#include "StageBoundaries.h"
#include "StageDescribe.h"
#include "StageUnits.h"
#include "cleave/Support/Status.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <map>
#include <numeric>

using namespace cleave;
using namespace cleave::schedule;

// Ways to put `together` lists on ranks that are tried, at most.
static constexpr size_t kMaxWays = 4096;
static constexpr uint32_t kNoPlace = std::numeric_limits<uint32_t>::max();

namespace {
/// One order of the units, as a row of blocks.
class BlockRow {
public:
  BlockRow(const SplitProblem &problem, const SplitOptions &options, const StageUnits &units,
           std::vector<uint32_t> order)
      : problem(problem), options(options), units(units), order(std::move(order)) {
    findCrossings();
    choosePositions();
    fillBlocks();
  }

  /// The best boundaries with each `together` list on its rank. Nothing: none fit.
  /// \param parts into which the limit of a rank goes
  std::optional<std::vector<int32_t>> split(llvm::ArrayRef<int32_t> ranks, int64_t parts);
  /// The least memory that some split gets along with, time aside.
  std::optional<std::vector<int32_t>> splitForMemory(llvm::ArrayRef<int32_t> ranks);

private:
  void findCrossings();
  void choosePositions();
  void fillBlocks();
  void allow(llvm::ArrayRef<int32_t> ranks);
  std::optional<BoundaryAnswer> findLeastTime() const;
  std::optional<BoundaryAnswer> findFastest();
  std::optional<BoundaryAnswer> findLeastLatency(int64_t fastest);
  std::vector<int32_t> getStages(const BoundaryAnswer &answer) const;
  int64_t getBottleneck(const BoundaryAnswer &answer) const;

  const SplitProblem &problem;
  const SplitOptions &options;
  const StageUnits &units;
  std::vector<uint32_t> order;
  /// Op -> block, and block -> place of its first unit in the order.
  std::vector<uint32_t> blockOf, starts;
  /// Per place in the order, and one more: bytes made before it and used from it on.
  std::vector<int64_t> crossing;
  BoundaryProblem boundaries;
};
} // namespace

/// A value lies over every position from behind its producer to its last user: two entries per value, then one sum.
void BlockRow::findCrossings() {
  std::vector<uint32_t> placeOf(units.size());
  for (auto [place, unit] : llvm::enumerate(order))
    placeOf[unit] = static_cast<uint32_t>(place);
  crossing.assign(order.size() + 1, 0);
  for (const SplitValue &value : problem.values) {
    uint32_t first = placeOf[units.unitOf[value.producer]], last = first;
    for (uint32_t user : value.users)
      last = std::max(last, placeOf[units.unitOf[user]]);
    // Over the positions first + 1 .. last.
    crossing[first + 1] += last > first ? value.bytes : 0;
    if (last > first)
      crossing[last + 1] -= value.bytes;
  }
  std::partial_sum(crossing.begin(), crossing.end(), crossing.begin());
}

/// Positions to consider, as starts of blocks: all, or of each of `maxPositions` stretches of equal time the one of least
/// crossing bytes. (The least of the whole row may all lie at one end, which is no use to the other stages.) Beside
/// these the ones around each unit that belongs with others, which must not share a block.
void BlockRow::choosePositions() {
  std::vector<bool> isBound(units.size(), false);
  for (const std::vector<uint32_t> &list : problem.together)
    for (uint32_t op : list)
      isBound[units.unitOf[op]] = true;
  if (order.size() <= options.maxPositions) {
    starts.resize(order.size());
    std::iota(starts.begin(), starts.end(), 0);
    return;
  }
  // Ops without time count a little, so that rows of them have stretches too.
  double sum = static_cast<double>(problem.ops.size());
  for (const SplitOp &op : problem.ops)
    sum += static_cast<double>(op.ns);
  // Stretch -> its best place.
  std::vector<uint32_t> bestOf(options.maxPositions, kNoPlace);
  double before = 0;
  for (uint32_t place = 0; place < order.size(); ++place) {
    uint32_t &best = bestOf[std::min<size_t>(bestOf.size() - 1, before / sum * bestOf.size())];
    if (best == kNoPlace || crossing[place] < crossing[best])
      best = place;
    if (place == 0 || isBound[order[place]] || isBound[order[place - 1]])
      starts.push_back(place);
    for (uint32_t op : units.ops[order[place]])
      before += static_cast<double>(problem.ops[op].ns) + 1;
  }
  llvm::copy_if(bestOf, std::back_inserter(starts), [](uint32_t place) { return place != kNoPlace; });
  llvm::sort(starts);
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
}

/// From the last block to the first, so that each knows the next block that uses a parameter of its own.
void BlockRow::fillBlocks() {
  boundaries.blocks.resize(starts.size());
  boundaries.overlapsSends = options.overlapsSends;
  boundaries.inFlight = options.inFlight;
  boundaries.inFlight.resize(options.placement.size(), 1);
  for (size_t stage = 0; stage < options.placement.size(); ++stage)
    boundaries.speeds.push_back(getSpeed(options, stage));
  blockOf.resize(problem.ops.size());
  std::vector<uint32_t> nextUse(problem.parameterBytes.size(), static_cast<uint32_t>(starts.size()));
  for (size_t block = starts.size(); block-- > 0;) {
    BoundaryBlock &filled = boundaries.blocks[block];
    size_t end = block + 1 < starts.size() ? starts[block + 1] : order.size();
    for (size_t place = starts[block]; place < end; ++place)
      for (uint32_t op : units.ops[order[place]]) {
        const SplitOp &added = problem.ops[op];
        blockOf[op] = static_cast<uint32_t>(block);
        filled.ns += added.ns;
        filled.savedBytes += added.savedBytes;
        filled.temporaryBytes = std::max(filled.temporaryBytes, added.temporaryBytes);
        for (uint32_t parameter : added.parameters) {
          if (nextUse[parameter] != block)
            filled.parameters.emplace_back(nextUse[parameter], problem.parameterBytes[parameter]);
          nextUse[parameter] = static_cast<uint32_t>(block);
        }
      }
  }
  for (uint32_t start : starts) {
    boundaries.crossingBytes.push_back(crossing[start]);
    boundaries.linkNs.push_back(getLinkNs(options, crossing[start]));
  }
}

/// Lists on their ranks: the stages that each block may be in.
void BlockRow::allow(llvm::ArrayRef<int32_t> ranks) {
  for (auto [list, rank] : llvm::zip_equal(problem.together, ranks))
    for (uint32_t op : list)
      boundaries.blocks[blockOf[op]].allowed.assign(options.placement.size(), true);
  for (auto [list, rank] : llvm::zip_equal(problem.together, ranks))
    for (uint32_t op : list)
      for (auto [stage, place] : llvm::enumerate(options.placement))
        if (place != rank)
          boundaries.blocks[blockOf[op]].allowed[stage] = false;
}

/// Most rows have a split near the mean of the stages, which none is below. It is looked for there first, because walks
/// end at the limit: those of few stages over many blocks would be long ones.
std::optional<BoundaryAnswer> BlockRow::findLeastTime() const {
  int64_t sum = 0;
  for (const BoundaryBlock &block : boundaries.blocks)
    sum += block.ns;
  double speed = std::accumulate(boundaries.speeds.begin(), boundaries.speeds.end(), 0.0);
  auto mean = static_cast<int64_t>(static_cast<double>(sum) / speed);
  // All of it on the slowest.
  sum = scaleNs(*llvm::min_element(boundaries.speeds), sum);
  for (int64_t limit = mean + mean / 4; limit < sum && limit > 0; limit *= 2)
    if (std::optional<BoundaryAnswer> answer = findBoundaries(boundaries, BoundaryWeight::Time, limit))
      return answer;
  return findBoundaries(boundaries, BoundaryWeight::Time);
}

std::optional<BoundaryAnswer> BlockRow::findFastest() {
  std::optional<BoundaryAnswer> fastest = findLeastTime();
  if (!fastest)
    return std::nullopt;
  if (options.objective == SplitObjective::Latency)
    return findLeastLatency(fastest->weight);
  return findBoundaries(boundaries, BoundaryWeight::CrossingBytes, fastest->weight);
}

/// In the terms of the search: what lies over a boundary goes over one link.
int64_t BlockRow::getBottleneck(const BoundaryAnswer &answer) const {
  int64_t bottleneck = 0;
  size_t begin = 0;
  for (size_t stage = 0; stage <= answer.positions.size(); ++stage) {
    bool isLast = stage == answer.positions.size();
    size_t end = isLast ? boundaries.blocks.size() : answer.positions[stage];
    int64_t link = isLast ? 0 : boundaries.linkNs[end], ns = 0;
    for (; begin < end; ++begin)
      ns += boundaries.blocks[begin].ns;
    ns = scaleNs(boundaries.speeds[stage], ns) + (boundaries.overlapsSends ? 0 : link);
    bottleneck = std::max({bottleneck, ns, link});
  }
  return bottleneck;
}

/// The sum over links falls as the bottleneck may rise: from the fastest on, the next bottleneck that lets the sum fall
/// is found by halving, until even the least sum of all could not pay for it.
std::optional<BoundaryAnswer> BlockRow::findLeastLatency(int64_t fastest) {
  int64_t weight = std::max<int64_t>(0, options.microbatches - 1), highest = fastest;
  for (const BoundaryBlock &block : boundaries.blocks)
    highest += scaleNs(*llvm::min_element(boundaries.speeds), block.ns);
  std::optional<BoundaryAnswer> free = findBoundaries(boundaries, BoundaryWeight::LinkNs), best;
  if (!free)
    return std::nullopt;
  int64_t leastTotal = std::numeric_limits<int64_t>::max();
  for (int64_t limit = fastest;;) {
    BoundaryAnswer answer = *findBoundaries(boundaries, BoundaryWeight::LinkNs, limit);
    // Not overlapped, sending is part of the stages, and of their sum, all the same.
    int64_t total = answer.weight + weight * getBottleneck(answer);
    if (total < leastTotal) {
      leastTotal = total;
      best = answer;
    }
    if (answer.weight == free->weight)
      return best;
    int64_t low = limit, high = std::max(highest, getBottleneck(*free));
    while (low + 1 < high) {
      int64_t middle = low + (high - low) / 2;
      (findBoundaries(boundaries, BoundaryWeight::LinkNs, middle)->weight < answer.weight ? high : low) = middle;
    }
    limit = high;
    if (free->weight + weight * limit >= leastTotal)
      return best;
  }
}

std::vector<int32_t> BlockRow::getStages(const BoundaryAnswer &answer) const {
  std::vector<int32_t> stageOf(problem.ops.size());
  for (auto [op, block] : llvm::enumerate(blockOf))
    stageOf[op] = static_cast<int32_t>(llvm::upper_bound(answer.positions, block) - answer.positions.begin());
  return stageOf;
}

std::optional<std::vector<int32_t>> BlockRow::split(llvm::ArrayRef<int32_t> ranks, int64_t parts) {
  allow(ranks);
  boundaries.memoryLimits.clear();
  for (size_t stage = 0; stage < options.placement.size(); ++stage)
    boundaries.memoryLimits.push_back(getLimit(options, stage) / parts);
  std::optional<BoundaryAnswer> answer = findFastest();
  if (!answer)
    return std::nullopt;
  return getStages(*answer);
}

std::optional<std::vector<int32_t>> BlockRow::splitForMemory(llvm::ArrayRef<int32_t> ranks) {
  allow(ranks);
  std::optional<BoundaryAnswer> answer = findBoundaries(boundaries, BoundaryWeight::Memory);
  if (!answer)
    return std::nullopt;
  return getStages(*answer);
}

namespace {
/// All orders and all ways to put lists on ranks.
class Splitter {
public:
  Splitter(const SplitProblem &problem, const SplitOptions &options) : problem(problem), options(options) {}

  llvm::Expected<StageSplit> run();

private:
  llvm::Error makeRows();
  llvm::Error nameCycle(llvm::ArrayRef<uint32_t> ordered) const;
  llvm::Error explainFailure(int64_t least) const;
  int64_t consider(std::vector<int32_t> stageOf, std::optional<StageSplit> &best) const;
  /// Calls `body` with a rank per list.
  void forEachWay(llvm::function_ref<void(llvm::ArrayRef<int32_t>)> body) const;
  size_t getNumRanks() const { return static_cast<size_t>(*llvm::max_element(options.placement)) + 1; }

  const SplitProblem &problem;
  const SplitOptions &options;
  StageUnits units;
  std::vector<BlockRow> rows;
};
} // namespace

/// Units that depend on each other, because one of them is a cluster with other ops between.
llvm::Error Splitter::nameCycle(llvm::ArrayRef<uint32_t> ordered) const {
  std::vector<bool> stands(units.size(), false);
  for (uint32_t unit : ordered)
    stands[unit] = true;
  std::vector<uint32_t> producerOf(units.size(), 0);
  for (auto [unit, users] : llvm::enumerate(units.users))
    for (uint32_t user : users)
      if (!stands[unit])
        producerOf[user] = static_cast<uint32_t>(unit);
  // Backwards along producers that do not stand; after enough steps on the cycle.
  uint32_t unit = static_cast<uint32_t>(llvm::find(stands, false) - stands.begin());
  for (size_t step = 0; step < units.size(); ++step)
    unit = producerOf[unit];
  while (units.ops[unit].size() < 2)
    unit = producerOf[unit];
  return makeError("nodes {0} and {1} cannot be kept in one stage: node {2} is between them",
                   quote(problem.ops[units.ops[unit].front()].name), quote(problem.ops[units.ops[unit].back()].name),
                   quote(problem.ops[units.ops[producerOf[unit]].front()].name));
}

/// Both orders of the units; one where they are equal.
llvm::Error Splitter::makeRows() {
  // What is all in one stage is nowhere split apart, whatever lies between.
  units = makeUnits(problem, /*hasClusters=*/options.placement.size() > 1);
  if (options.placement.size() > units.size())
    return makeError("{0} stages are more than the {1} parts that can be cut apart", options.placement.size(),
                     units.size());
  std::vector<uint32_t> given = orderUnits(units, UnitOrder::Given);
  if (given.size() < units.size())
    return nameCycle(given);
  std::vector<uint32_t> depthFirst = orderUnits(units, UnitOrder::DepthFirst);
  bool isOther = depthFirst != given;
  rows.emplace_back(problem, options, units, std::move(given));
  if (isOther)
    rows.emplace_back(problem, options, units, std::move(depthFirst));
  return llvm::Error::success();
}

void Splitter::forEachWay(llvm::function_ref<void(llvm::ArrayRef<int32_t>)> body) const {
  int32_t numRanks = static_cast<int32_t>(getNumRanks());
  std::vector<int32_t> ranks(problem.together.size(), 0);
  for (;;) {
    body(ranks);
    size_t list = 0;
    while (list < ranks.size() && ++ranks[list] == numRanks)
      ranks[list++] = 0;
    if (list == ranks.size())
      return;
  }
}

/// Measured as described, not as searched: values sent directly cost less than the search feared. Bytes of the fullest
/// rank.
int64_t Splitter::consider(std::vector<int32_t> stageOf, std::optional<StageSplit> &best) const {
  StageSplit split = llvm::cantFail(describeWithoutLimit(problem, options, std::move(stageOf)));
  auto rate = [](const StageSplit &rated) {
    int64_t bytes = 0;
    for (const StageSummary &stage : rated.stages)
      for (const StageSend &send : stage.sends)
        bytes += send.bytes;
    return std::pair(rated.bottleneckNs, bytes);
  };
  int64_t peak = getPeakBytes(options, split);
  if (fits(options, split) && (!best || rate(split) < rate(*best)))
    best = std::move(split);
  return peak;
}

/// `least` is what the splits of least memory take; without any, it is the lists that cannot be served. Where a rank has
/// several stages, these are of least memory one by one, and together not always.
llvm::Error Splitter::explainFailure(int64_t least) const {
  bool isExact = options.placement.size() == getNumRanks();
  if (least != std::numeric_limits<int64_t>::max() && !options.memoryLimits.empty())
    return makeError(
        "{0} stages do not fit into what each rank may hold; of the splits that were looked at the fullest "
        "rank has {1} bytes at least",
        options.placement.size(), least);
  if (least != std::numeric_limits<int64_t>::max())
    return makeError("{0} stages do not fit into {1} bytes on each rank; {2} is {3}", options.placement.size(),
                     options.memoryLimit, isExact ? "the least limit that would do" : "a limit that would do", least);
  return makeError("no {0} stages put the nodes on one rank that belong together; a placement that comes back to a "
                   "rank, such as v, can",
                   options.placement.size());
}

llvm::Expected<StageSplit> Splitter::run() {
  if (llvm::Error error = makeRows())
    return error;
  size_t ways = 1;
  for (size_t list = 0; list < problem.together.size() && ways <= kMaxWays; ++list)
    ways *= getNumRanks();
  if (ways > kMaxWays)
    return makeError("{0} lists of nodes that belong together are more than can be tried on {1} ranks",
                     problem.together.size(), getNumRanks());
  std::optional<StageSplit> best;
  int64_t chunks = static_cast<int64_t>(options.placement.size() / getNumRanks());
  bool isLimited = options.memoryLimit != 0 || !options.memoryLimits.empty();
  // Stages know only their own memory; where a rank has several, an equal share each is safe.
  for (int64_t parts : {int64_t(1), isLimited && chunks > 1 ? chunks : 0})
    if (parts && !best)
      for (BlockRow &row : rows)
        forEachWay([&](llvm::ArrayRef<int32_t> ranks) {
          if (std::optional<std::vector<int32_t>> stageOf = row.split(ranks, parts))
            consider(std::move(*stageOf), best);
        });
  // The splits of least memory come last: where no faster one fits, they may.
  int64_t least = std::numeric_limits<int64_t>::max();
  if (!best)
    for (BlockRow &row : rows)
      forEachWay([&](llvm::ArrayRef<int32_t> ranks) {
        if (std::optional<std::vector<int32_t>> stageOf = row.splitForMemory(ranks))
          least = std::min(least, consider(std::move(*stageOf), best));
      });
  if (!best)
    return explainFailure(least);
  return std::move(*best);
}

llvm::Expected<StageSplit> cleave::schedule::splitStages(const SplitProblem &problem, const SplitOptions &options) {
  if (problem.ops.empty() || options.placement.empty())
    return makeError("nothing to cut into stages");
  return Splitter(problem, options).run();
}
