//===- Place.cpp - stages where somebody wants them -----------------------===//
//
// A schedule says which stages share a rank; which number that rank has is nothing to it:
//
//   1f1b: stages 0 1 2 on ranks 0 1 2       rank: 2 of stage 0 and rank: 0 of stage 1 make it 2 0 1
//   zb-v: stages 0 1 2 3 on ranks 0 1 1 0   stage 3 goes where stage 0 goes, so that rank: 0 of both is legal,
//                                           and rank: 0 of stages 0 and 1 is not
//
// What takes any placement is written anew where no numbers would do.
//
//===----------------------------------------------------------------------===//
#include "cleave/Schedule/Place.h"

#include "Generators/Generators.h"
#include "cleave/Support/Status.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace cleave;
using namespace cleave::schedule;

bool PlacementRequest::isOfAll() const {
  return !ranks.empty() && llvm::all_of(ranks, [](int32_t rank) { return rank >= 0; });
}

/// `0, 1, 1, 0`.
static std::string listRanks(llvm::ArrayRef<int32_t> placement) {
  constexpr size_t most = 32;
  std::string text =
      llvm::join(llvm::map_range(placement.take_front(most), [](int32_t rank) { return std::to_string(rank); }), ", ");
  return placement.size() > most ? text + ", .." : text;
}

static bool isPlaced(Placement wanted, const Schedule &table) {
  int32_t chunks = getNumChunks(table);
  return table.numStages % table.numRanks == 0 && mayHaveChunks(wanted, chunks) &&
         table.replicas.front().placement == placeStages(wanted, table.numRanks, chunks);
}

/// Of a named schedule, others are known that stand as it is wanted.
static llvm::Error makeMisplaced(Placement wanted, const Schedule &table) {
  std::string names;
  for (const GeneratorInfo &info : getGenerators())
    if (info.placement == wanted || info.isAnywhere)
      names += (info.name + ", ").str();
  return makeError("the plan wants placement '{0}', and schedule '{1}' has its stages on ranks {2}; '{0}' have {3}and "
                   "auto can",
                   getWord(wanted), table.name, listRanks(table.replicas.front().placement), names);
}

/// Rank of the schedule -> its number.
static llvm::Expected<std::vector<int32_t>> findNumbers(const Schedule &table, llvm::ArrayRef<int32_t> ranks) {
  llvm::ArrayRef<int32_t> placement = table.replicas.front().placement;
  if (!ranks.empty() && ranks.size() != placement.size())
    return makeError("the plan has {0} stages by hand, schedule '{1}' {2}", ranks.size(), table.name, placement.size());
  // The stage that says which number a rank has; and the other way round, who has a number.
  std::vector<int32_t> numbers(table.numRanks, -1), stageOf(table.numRanks, -1), taken(table.numRanks, -1);
  for (auto [stage, wanted] : llvm::enumerate(ranks)) {
    if (wanted < 0)
      continue;
    if (wanted >= table.numRanks)
      return makeError("stage {0} cannot be on rank {1}: there are {2} ranks", stage, wanted, table.numRanks);
    int32_t rank = placement[stage];
    bool isOther = numbers[rank] >= 0 && numbers[rank] != wanted;
    if (isOther || (taken[wanted] >= 0 && taken[wanted] != rank))
      return makeError(
          "stage {0} cannot be on rank {1} where stage {2} is on rank {3}: schedule '{4}' has them on {5}; "
          "of its stages it has on ranks {6}, or with other numbers for these",
          stage, wanted, stageOf[isOther ? rank : taken[wanted]], isOther ? numbers[rank] : wanted, table.name,
          isOther ? "one rank" : "two", listRanks(placement));
    numbers[rank] = wanted;
    stageOf[rank] = static_cast<int32_t>(stage);
    taken[wanted] = rank;
  }
  // What nobody names keeps its number where that is free, and takes the first free one otherwise.
  for (int32_t rank = 0; rank < table.numRanks; ++rank)
    if (numbers[rank] < 0 && taken[rank] < 0)
      taken[numbers[rank] = rank] = rank;
  for (int32_t rank = 0; rank < table.numRanks; ++rank)
    if (numbers[rank] < 0)
      taken[numbers[rank] = static_cast<int32_t>(llvm::find(taken, -1) - taken.begin())] = rank;
  return numbers;
}

llvm::Error cleave::schedule::numberRanks(Schedule &table, const PlacementRequest &request) {
  if (request.placement && !isPlaced(*request.placement, table))
    return makeMisplaced(*request.placement, table);
  llvm::Expected<std::vector<int32_t>> numbers = findNumbers(table, request.ranks);
  if (!numbers)
    return numbers.takeError();
  renumberRanks(table, *numbers);
  return llvm::Error::success();
}

/// The same schedule on other ranks, in an order for these.
static Schedule placeAnew(const Schedule &table, std::vector<int32_t> placement) {
  Schedule placed = makeSchedule(table.name, std::move(placement), table.numRanks, table.numMicrobatches);
  placed.isForwardOnly = table.isForwardOnly;
  placed.weightVersions = table.weightVersions;
  writeInTime(placed);
  return placed;
}

llvm::Expected<Schedule> cleave::schedule::generatePlaced(llvm::StringRef name, Shape shape,
                                                          const PlacementRequest &request) {
  llvm::ArrayRef<GeneratorInfo> infos = getGenerators();
  const auto *info = llvm::find_if(infos, [&](const GeneratorInfo &known) { return known.name == name; });
  if (info == infos.end() || !info->isAnywhere)
    return generate(name, shape);
  auto stages = static_cast<int32_t>(request.ranks.size());
  // Where all stages have a rank their number is known; 3 of 2 ranks are no table by number.
  if (request.isOfAll() && shape.ranks > 0)
    shape.chunks = std::max(1, stages / shape.ranks);
  llvm::Expected<Schedule> table = generate(name, shape);
  if (!table)
    return table;
  int32_t chunks = getNumChunks(*table);
  if (request.placement && mayHaveChunks(*request.placement, chunks) && !isPlaced(*request.placement, *table))
    return placeAnew(*table, placeStages(*request.placement, shape.ranks, chunks));
  if (request.placement || !request.isOfAll())
    return table;
  for (int32_t rank = 0; rank < shape.ranks; ++rank)
    if (!llvm::is_contained(request.ranks, rank))
      return makeError("no stage is wanted on rank {0}: {1} stages are on ranks {2}", rank, stages,
                       listRanks(request.ranks));
  llvm::Expected<std::vector<int32_t>> numbers = findNumbers(*table, request.ranks);
  if (numbers)
    return table;
  llvm::consumeError(numbers.takeError());
  return placeAnew(*table, request.ranks);
}
