//===- Generate.cpp - the table of schedules by name ----------------------===//
//
// A generator says how a schedule's stages are placed, which shapes it allows, and who writes its programs. All that depends on
// the name stands here; where each was published, in docs/pipelines.md.
//
// Rules of shapes are rules of the schedules themselves: two ways through the ranks halve ranks and microbatches; DualPipe
// needs enough microbatches to have a steady state; a V has two stages per rank, waves any even number. All else is legal
// for every number of ranks and microbatches.
//
//===----------------------------------------------------------------------===//
#include "Generators.h"
#include "cleave/Support/Status.h"
#include "cleave/Support/Suggest.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/StringExtras.h"

using namespace cleave;
using namespace cleave::schedule;

namespace {
enum class ChunkRule : uint8_t { One, Two, Any, Even };
/// When weights change: at the end of a batch, when a microbatch's gradients are there, or a batch's (they are not
/// waited for).
enum class UpdateRule : uint8_t { Flush, PerMicrobatch, PerBatch };

/// What is known of one schedule.
struct Generator {
  GeneratorInfo info;
  ChunkRule chunks;
  void (*write)(Schedule &);
  UpdateRule updates = UpdateRule::Flush;
  /// A second replica goes through the ranks the other way, with half of the microbatches: both numbers even.
  bool isBidirectional = false;
  bool needsTwicePerRank = false;
};
} // namespace

static const Generator kGenerators[] = {
    {{"gpipe", false, Placement::Linear}, ChunkRule::One, writeGPipe},
    {{"1f1b", false, Placement::Linear}, ChunkRule::One, writeOneFOneB},
    {{"eager-1f1b", false, Placement::Linear}, ChunkRule::One, writeEagerOneFOneB},
    {{"interleaved", false, Placement::Loop}, ChunkRule::Any, writeInterleaved},
    {{"bfs", false, Placement::Loop}, ChunkRule::Any, writeBreadthFirst},
    {{"zb-h1", false, Placement::Linear}, ChunkRule::One, writeZeroBubbleH1},
    {{"zb-h2", false, Placement::Linear}, ChunkRule::One, writeZeroBubbleH2},
    {{"zb-v", false, Placement::V}, ChunkRule::Two, writeZeroBubbleV},
    {{"v-half", false, Placement::V}, ChunkRule::Two, writeVHalf},
    {{"v-min", false, Placement::V}, ChunkRule::Two, writeVMin},
    {{"dualpipe", false, Placement::Linear}, ChunkRule::One, writeDualPipe, UpdateRule::Flush, true, true},
    {{"dualpipe-v", false, Placement::V}, ChunkRule::Two, writeDualPipeV, UpdateRule::Flush, false, true},
    {{"chimera", false, Placement::Linear}, ChunkRule::One, writeChimera, UpdateRule::Flush, true},
    {{"hanayo", false, Placement::Wave}, ChunkRule::Even, writeHanayo},
    {{"pipedream", false, Placement::Linear}, ChunkRule::One, writeOneFOneB, UpdateRule::PerMicrobatch},
    {{"pipedream-2bw", false, Placement::Linear}, ChunkRule::One, writeOneFOneB, UpdateRule::PerBatch},
    {{"forward", true, Placement::Linear}, ChunkRule::One, writeForward},
    {{"circular", true, Placement::Loop, true}, ChunkRule::Any, writeCircular},
};

llvm::ArrayRef<GeneratorInfo> cleave::schedule::getGenerators() {
  static const auto infos =
      llvm::to_vector(llvm::map_range(kGenerators, [](const Generator &generator) { return generator.info; }));
  return infos;
}

static llvm::Expected<const Generator *> findGenerator(llvm::StringRef name) {
  for (const Generator &generator : kGenerators)
    if (generator.info.name == name)
      return &generator;
  std::string names = llvm::join(
      llvm::map_range(kGenerators, [](const Generator &generator) { return generator.info.name.str(); }), ", ");
  auto known =
      llvm::to_vector(llvm::map_range(kGenerators, [](const Generator &generator) { return generator.info.name; }));
  std::string near = suggestNames(name, known);
  return makeError("no schedule is called {0}{1} there are {2}", quote(name), near.empty() ? ":" : near, names);
}

/// The chunks asked for, or the schedule's own. Error: what is legal.
static llvm::Expected<int32_t> getChunks(const Generator &generator, int32_t chunks) {
  static constexpr int32_t own[] = {1, 2, 2, 2};
  static constexpr llvm::StringLiteral legal[] = {"1", "2", "at least 1", "even"};
  size_t rule = static_cast<size_t>(generator.chunks);
  if (chunks == 0)
    return own[rule];
  bool isLegal = generator.chunks == ChunkRule::Any    ? chunks >= 1
                 : generator.chunks == ChunkRule::Even ? chunks >= 2 && chunks % 2 == 0
                                                       : chunks == own[rule];
  if (isLegal)
    return chunks;
  return makeError("schedule \"{0}\" has {1} chunks per rank, got {2}", generator.info.name, legal[rule], chunks);
}

static llvm::Error checkShape(const Generator &generator, const Shape &shape) {
  llvm::StringRef name = generator.info.name;
  if (shape.ranks < 1 || shape.microbatches < 1 || shape.steps < 1)
    return makeError("a schedule has at least 1 rank, microbatch and step, got {0}, {1} and {2}", shape.ranks,
                     shape.microbatches, shape.steps);
  if (generator.isBidirectional && shape.ranks % 2)
    return makeError("schedule \"{0}\" goes through the ranks both ways: their number is even, got {1}", name,
                     shape.ranks);
  if (generator.isBidirectional && shape.microbatches % 2)
    return makeError("schedule \"{0}\" sends half of the microbatches each way: their number is even, got {1}", name,
                     shape.microbatches);
  if (generator.needsTwicePerRank && int64_t(shape.microbatches) < 2 * int64_t(shape.ranks))
    return makeError("schedule \"{0}\" has at least 2 microbatches per rank: {1} for {2} ranks, got {3}", name,
                     2 * int64_t(shape.ranks), shape.ranks, shape.microbatches);
  return llvm::Error::success();
}

/// A schedule without programs, its replicas as the generator says.
static Schedule prepare(const Generator &generator, int32_t ranks, int32_t chunks, int32_t microbatches) {
  Schedule schedule =
      makeSchedule(generator.info.name, placeStages(generator.info.placement, ranks, chunks), ranks, microbatches);
  schedule.isForwardOnly = generator.info.isForwardOnly;
  if (!generator.isBidirectional)
    return schedule;
  Replica &down = schedule.replicas.front(), up;
  up.placement.assign(down.placement.rbegin(), down.placement.rend());
  up.microbatches.assign(down.microbatches.begin() + microbatches / 2, down.microbatches.end());
  down.microbatches.resize(microbatches / 2);
  schedule.replicas.push_back(std::move(up));
  schedule.indexReplicas();
  return schedule;
}

/// Appends the same table for the microbatches of further batches. Ranks that are done early may begin the next one: a
/// table has no barrier.
static void repeat(Schedule &schedule, int32_t steps) {
  int32_t microbatches = schedule.numMicrobatches;
  auto extend = [&](auto &list, auto shift) {
    size_t size = list.size();
    list.reserve(size * steps);
    for (int32_t step = 1; step < steps; ++step)
      for (size_t index = 0; index < size; ++index)
        list.push_back(shift(list[index], step * microbatches));
  };
  for (std::vector<Action> &program : schedule.programs)
    extend(program, [](Action action, int32_t offset) {
      action.microbatch += offset;
      return action;
    });
  for (Replica &replica : schedule.replicas)
    extend(replica.microbatches, [](int32_t microbatch, int32_t offset) { return microbatch + offset; });
  schedule.numMicrobatches *= steps;
  schedule.indexReplicas();
}

/// How many versions of its weights a rank keeps at the worst moment: the newest, and what microbatches under way have
/// seen in their F and need again in their B. A version ends when the gradients of `perUpdate` microbatches are there.
static int32_t countVersions(llvm::ArrayRef<Action> program, int32_t perUpdate) {
  std::vector<int32_t> seen;
  size_t worst = 1;
  int32_t numGradients = 0;
  std::vector<int32_t> underWay;
  for (const Action &action : program) {
    int32_t newest = numGradients / perUpdate;
    if (action.kind == ActionKind::F) {
      seen.resize(std::max<size_t>(seen.size(), action.microbatch + 1));
      seen[action.microbatch] = newest;
      underWay.push_back(action.microbatch);
    } else if (action.kind == ActionKind::B) {
      underWay.erase(llvm::find(underWay, action.microbatch));
      newest = ++numGradients / perUpdate;
    }
    llvm::SmallSet<int32_t, 16> versions;
    versions.insert(newest);
    for (int32_t microbatch : underWay)
      versions.insert(seen[microbatch]);
    worst = std::max<size_t>(worst, versions.size());
  }
  return static_cast<int32_t>(worst);
}

static UpdateRule getUpdateRule(llvm::StringRef name) {
  const auto *found = llvm::find_if(kGenerators, [&](const Generator &known) { return known.info.name == name; });
  return found == std::end(kGenerators) ? UpdateRule::Flush : found->updates;
}

bool cleave::schedule::hasFlush(llvm::StringRef name) { return getUpdateRule(name) == UpdateRule::Flush; }
bool cleave::schedule::isStepBehind(llvm::StringRef name) { return getUpdateRule(name) == UpdateRule::PerBatch; }

llvm::Expected<Schedule> cleave::schedule::generate(llvm::StringRef name, Shape shape) {
  llvm::Expected<const Generator *> generator = findGenerator(name);
  if (!generator)
    return generator.takeError();
  llvm::Expected<int32_t> chunks = getChunks(**generator, shape.chunks);
  if (!chunks)
    return chunks.takeError();
  if (llvm::Error error = checkShape(**generator, shape))
    return std::move(error);
  // Without a flush, a step's first F stand before the last B of the step before: one table of all microbatches. With
  // it, each step is the same table.
  bool flushes = (*generator)->updates == UpdateRule::Flush;
  Schedule schedule =
      prepare(**generator, shape.ranks, *chunks, flushes ? shape.microbatches : shape.microbatches * shape.steps);
  (*generator)->write(schedule);
  if (flushes)
    repeat(schedule, shape.steps);
  for (const std::vector<Action> &program : schedule.programs)
    schedule.weightVersions.push_back(
        flushes ? 1 : countVersions(program, (*generator)->updates == UpdateRule::PerBatch ? shape.microbatches : 1));
  return schedule;
}
