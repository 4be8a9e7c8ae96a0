//===- MeasuredRun.cpp - a run of a program next to its page --------------===//
//
// What each rank did, and when, from a trace (`cleave-run --trace`): each bar is of the layer that the node of its command is in.
//
//   trace    rank 0, stream 0   | launch /h.0/up |  launch /h.0/down |        | launch ..
//            rank 0, stream 1                                        | all_reduce /h.0/down |
//   page     sums by layer: computing, sending, waiting; bars for the picture, of which short ones are joined
//
// Of a schedule the page shows actions instead (lib/Schedule/Measured.cpp).
//
//===----------------------------------------------------------------------===//
#include "Measured.h"

#include "cleave/Program/Collective.h"
#include "cleave/Support/File.h"
#include "cleave/Support/JsonText.h"
#include "cleave/Support/Status.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"

#include <array>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

using namespace cleave;
namespace json = llvm::json;

namespace {
/// What a rank does; numbers are those of the page.
enum class Doing { Computing, Sending, Waiting };
constexpr size_t kDoings = 3;

/// Nanoseconds from the first command of any rank on; `layer` is -1 where the node is on no layer, as that of a copy.
struct RunBar {
  Doing doing;
  int64_t layer, begin, end;
};

struct RunSums {
  std::array<double, kDoings> ns = {};
};
} // namespace

/// A picture has so many bars at most, which all of its rows share: more are joined, and a page stays below a megabyte.
static constexpr int64_t kMostBars = 12000;

/// By the category of a bar: the kind of its command, and which part of it (docs/runtime.md).
static Doing findDoing(llvm::StringRef category) {
  auto [kind, part] = category.split(',');
  if (part == "finish" || kind == "wait")
    return Doing::Waiting;
  return program::findCollective(std::string_view(kind.data(), kind.size())) ? Doing::Sending : Doing::Computing;
}

/// Joins what follows closely: bars of one kind, or two of which neither could be seen.
static json::Array joinBars(std::vector<RunBar> bars, int64_t least) {
  llvm::sort(bars, [](const RunBar &lhs, const RunBar &rhs) {
    return std::tie(lhs.begin, lhs.end) < std::tie(rhs.begin, rhs.end);
  });
  std::vector<RunBar> joined;
  for (const RunBar &bar : bars) {
    RunBar *last = joined.empty() || bar.begin - joined.back().end > least ? nullptr : &joined.back();
    bool isSame = last && last->doing == bar.doing && last->layer == bar.layer;
    bool isUnseen = last && last->end - last->begin < least && bar.end - bar.begin < least;
    if (isSame || isUnseen)
      last->end = std::max(last->end, bar.end);
    else
      joined.push_back(bar);
  }
  json::Array made;
  for (const RunBar &bar : joined)
    made.push_back(json::Array{int64_t(bar.doing), bar.layer, bar.begin, bar.end - bar.begin});
  return made;
}

namespace {
/// What is read of a trace.
class MeasuredRun {
public:
  explicit MeasuredRun(const json::Object &layerOf) : layerOf(layerOf) {}

  void add(const json::Object &event);
  /// The trace is not of that many ranks, or of no node that the page has.
  llvm::Error check(int64_t numRanks) const;
  json::Object describe(size_t numLayers) const;

private:
  /// By node.
  const json::Object &layerOf;
  std::map<std::pair<int64_t, int64_t>, std::vector<RunBar>> rows; ///< by rank and thread
  std::map<int64_t, RunSums> sums;                                 ///< by layer, of all ranks
  std::set<int64_t> ranks;
  int64_t makespan = 0;
};
} // namespace

/// A kernel's bar is within that of its command, which counts.
void MeasuredRun::add(const json::Object &event) {
  const json::Object *args = event.getObject("args");
  std::optional<llvm::StringRef> category = event.getString("cat"),
                                 node = args ? args->getString("node") : std::nullopt;
  std::optional<double> begin = event.getNumber("ts"), length = event.getNumber("dur");
  if (event.getString("ph") != "X" || !category || category->ends_with(",kernel") || !node || !begin || !length)
    return;
  constexpr double kNsOfUs = 1000;
  RunBar bar{findDoing(*category), layerOf.getInteger(*node).value_or(-1), std::llround(*begin * kNsOfUs), 0};
  bar.end = bar.begin + std::llround(*length * kNsOfUs);
  int64_t rank = event.getInteger("pid").value_or(0);
  ranks.insert(rank);
  rows[{rank, event.getInteger("tid").value_or(0)}].push_back(bar);
  // Of a long loop later runs are a sum.
  sums[bar.layer].ns[size_t(bar.doing)] +=
      double(bar.end - bar.begin) + args->getNumber("later_us").value_or(0) * kNsOfUs;
  makespan = std::max(makespan, bar.end);
}

llvm::Error MeasuredRun::check(int64_t numRanks) const {
  if (ranks.empty())
    return makeError("no command says which node it is of: a trace of a run is expected ('cleave-run --trace')");
  if (int64_t(ranks.size()) != numRanks)
    return makeError("the trace is of {0} ranks, the plan of {1}", ranks.size(), numRanks);
  if (llvm::all_of(sums, [](const auto &sum) { return sum.first < 0; }))
    return makeError("no command is of a node of this model: the trace is of another program");
  return llvm::Error::success();
}

json::Object MeasuredRun::describe(size_t numLayers) const {
  const int64_t least = std::max<int64_t>(1, makespan * int64_t(rows.size()) / kMostBars);
  json::Array described, layers;
  for (const auto &[place, bars] : rows)
    described.push_back(json::Object{{"rank", place.first}, {"bars", joinBars(bars, least)}});
  // The mean of ranks; the last one is what no layer has.
  for (int64_t layer = 0; layer <= int64_t(numLayers); ++layer) {
    auto sum = sums.find(layer == int64_t(numLayers) ? -1 : layer);
    json::Array means;
    for (size_t doing = 0; doing < kDoings; ++doing)
      means.push_back(sum == sums.end() ? 0 : std::llround(sum->second.ns[doing] / double(ranks.size())));
    layers.push_back(std::move(means));
  }
  return json::Object{{"makespan", makespan}, {"rows", std::move(described)}, {"layers", std::move(layers)}};
}

llvm::Expected<json::Object> cleave::driver::readRun(const std::string &path, const json::Object &layerOf,
                                                     size_t numLayers, int64_t numRanks) {
  llvm::Expected<std::shared_ptr<const MappedFile>> file = MappedFile::open(path);
  if (!file)
    return file.takeError();
  llvm::Expected<json::Value> trace = parseJson((*file)->getBytes());
  if (!trace)
    return addContext(path + ": ", trace.takeError());
  const json::Object *object = trace->getAsObject();
  const json::Array *events = object ? object->getArray("traceEvents") : nullptr;
  if (!events)
    return makeError("{0}: has no 'traceEvents': a trace is expected ('cleave-run --trace')", path);
  MeasuredRun run(layerOf);
  for (const json::Value &event : *events)
    if (const json::Object *one = event.getAsObject())
      run.add(*one);
  if (llvm::Error error = run.check(numRanks))
    return addContext(path + ": ", std::move(error));
  return run.describe(numLayers);
}
