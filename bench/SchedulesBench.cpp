//===- SchedulesBench.cpp - `auto` against published schedules ------------===//
//
// The 72 cells of the Zero Bubble paper (Qi et al. 2024: bubble rates by model and schedule). For each, `auto` gets the
// same costs and latency, and as much memory as the published schedule takes at its worst. Columns that take equally
// much are searched once. Prints a table in Markdown; seconds are of the processor.
//
//   SchedulesBench [seed=N] [quick|normal|thorough] [any|linear|loop|v|wave] [COLUMN ...]
//
//===----------------------------------------------------------------------===//
#include "cleave/Schedule/Search.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include <ctime>
#include <map>

using namespace cleave::schedule;

namespace {
struct Row {
  llvm::StringLiteral model;
  int32_t ranks, microbatches;
  double forward, inputGrad, weightGrad, latency;
  /// Of 1F1B-I.
  int32_t chunks;
  double published[6];
};

struct Found {
  double rate, bound, seconds;
  std::string placement;
};
} // namespace

static constexpr llvm::StringLiteral kColumns[] = {"1F1B", "1F1B-I", "H1", "H2", "1p", "2p"};
static constexpr Row kRows[] = {
    {"1.5B", 8, 24, 18.522, 18.086, 9.337, .601, 3, {.2431, .1055, .1585, .1083, .1585, .0433}},
    {"1.5B", 8, 32, 18.513, 18.086, 9.331, .626, 3, {.1985, .0818, .1242, .0837, .1242, .0039}},
    {"1.5B", 8, 64, 18.546, 18.097, 9.321, .762, 3, {.1240, .0443, .0674, .0444, .0674, .0026}},
    {"6.2B", 8, 24, 29.718, 29.444, 19.927, .527, 4, {.2347, .0808, .1323, .0698, .1323, .0029}},
    {"6.2B", 8, 32, 29.802, 29.428, 19.530, .577, 4, {.1898, .0628, .1045, .0559, .1045, .0022}},
    {"6.2B", 8, 64, 29.935, 29.621, 19.388, .535, 4, {.1091, .0320, .0554, .0294, .0554, .0010}},
    {"14.6B", 16, 48, 11.347, 11.248, 8.132, .377, 3, {.2552, .1104, .1397, .0672, .1397, .0066}},
    {"14.6B", 16, 64, 11.307, 11.254, 8.101, .379, 3, {.2082, .0852, .1088, .0516, .1088, .0054}},
    {"14.6B", 16, 128, 11.325, 11.308, 8.109, .378, 3, {.1251, .0445, .0576, .0266, .0576, .0028}},
    {"28.3B", 32, 96, 10.419, 10.207, 7.715, .408, 2, {.2646, .1493, .1421, .0641, .1421, .0038}},
    {"28.3B", 32, 128, 10.408, 10.204, 7.703, .408, 2, {.2168, .1164, .1106, .0490, .1106, .0029}},
    {"28.3B", 32, 256, 10.402, 10.248, 7.698, .460, 2, {.1352, .0624, .0594, .0257, .0594, .0018}},
};

/// Peak memory of a column, in microbatches of a rank's share.
static double getActivations(const Row &row, size_t column) {
  double p = row.ranks, v = row.chunks;
  const double activations[] = {p, ((v - 1) * p + 2 * (p - 1) + 1) / v, p, 2 * p - 1, p, 2 * p};
  return activations[column];
}

/// What F takes, I and W release, as published: 66, 34, 32.
static Costs getCosts(const Row &row, double activations, int32_t stages, int32_t chunks) {
  Costs costs = Costs::uniform(stages, chunks, row.forward, row.inputGrad, row.weightGrad);
  costs.memoryForward.assign(stages, 66.0 / chunks);
  costs.memoryInputGrad.assign(stages, -34.0 / chunks);
  costs.memoryWeightGrad.assign(stages, -32.0 / chunks);
  costs.memoryLimit.assign(row.ranks, 66 * activations);
  return costs;
}

/// `wave 4`: down and back twice.
static std::string describePlacement(const Schedule &schedule) {
  int32_t ranks = schedule.numRanks, chunks = schedule.numStages / ranks;
  Placement placement = chunks == 1 ? Placement::Linear : chunks == 2 ? Placement::V : Placement::Wave;
  if (placeStages(placement, ranks, chunks) != schedule.replicas[0].placement)
    placement = Placement::Loop;
  return llvm::formatv("{0} {1}", getWord(placement), chunks);
}

static Found find(const Row &row, double activations, std::optional<Placement> placement,
                  const SearchOptions &options) {
  std::vector<SearchCandidate> candidates;
  for (Schedule &schedule : getPlacements(row.ranks, row.microbatches, placement, 0)) {
    for (Channel &channel : schedule.channels)
      channel.latency = row.latency;
    Costs costs = getCosts(row, activations, schedule.numStages, schedule.numStages / row.ranks);
    candidates.push_back({std::move(schedule), std::move(costs)});
  }
  std::clock_t begin = std::clock();
  SearchResult result = llvm::cantFail(search(candidates, options));
  double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  double work = row.microbatches * (row.forward + row.inputGrad + row.weightGrad);
  auto getRate = [&](double span) { return std::max(0.0, 1 - work / span); };
  return {getRate(result.span), getRate(result.bound.span), seconds, describePlacement(result.schedule)};
}

int main(int argc, char **argv) {
  llvm::SmallVector<llvm::StringRef> words(argv + 1, argv + argc);
  SearchOptions options;
  // `seed=N` may stand anywhere.
  llvm::erase_if(
      words, [&](llvm::StringRef word) { return word.consume_front("seed=") && !word.getAsInteger(10, options.seed); });
  options.effort = words.empty() ? Effort::Quick : parseEffort(words[0]).value_or(Effort::Quick);
  std::optional<Placement> placement = words.size() > 1 ? parsePlacement(words[1]) : std::nullopt;
  llvm::ArrayRef<llvm::StringRef> columns = llvm::ArrayRef(words).drop_front(std::min<size_t>(2, words.size()));
  size_t below = 0, equal = 0, count = 0;
  double slowest = 0;
  llvm::outs() << "| model | p | m | column | published | found | bound | s | placement "
                  "|\n|---|---|---|---|---|---|---|---|---|\n";
  for (const Row &row : kRows) {
    std::map<double, Found> known;
    for (size_t column = 0; column < std::size(kColumns); ++column) {
      if (!columns.empty() && !llvm::is_contained(columns, kColumns[column]))
        continue;
      double activations = getActivations(row, column), published = row.published[column];
      if (!known.count(activations))
        known[activations] = find(row, activations, placement, options);
      const Found &found = known[activations];
      ++count;
      below += found.rate < published - 5e-5;
      equal += std::abs(found.rate - published) <= 5e-5;
      slowest = std::max(slowest, found.seconds);
      llvm::outs() << llvm::formatv("| {0} | {1} | {2} | {3} | {4:f4} | {5:f4} | {6:f4} | {7:f1} | {8} |\n", row.model,
                                    row.ranks, row.microbatches, kColumns[column], published, found.rate, found.bound,
                                    found.seconds, found.placement);
      llvm::outs().flush();
    }
  }
  llvm::outs() << llvm::formatv("{0} cells: {1} below what was published, {2} equal; slowest {3:f1} s\n", count, below,
                                equal, slowest);
  return below + equal == count ? 0 : 1;
}
