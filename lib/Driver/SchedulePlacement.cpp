//===- SchedulePlacement.cpp - stages on the ranks that a plan names ------===//
//
// A schedule says which stages share a rank; which number that rank has is nothing to it:
//
//   1f1b: stages 0 1 2 on ranks 0 1 2       rank: 2 of stage 0 and rank: 0 of stage 1 make it 2 0 1
//   zb-v: stages 0 1 2 3 on ranks 0 1 1 0   stage 3 goes where stage 0 goes, so that rank: 0 of both is legal,
//                                           and rank: 0 of stages 0 and 1 is not
//
//===----------------------------------------------------------------------===//
#include "ScheduleModel.h"

#include "cleave/Schedule/Generate.h"
#include "cleave/Support/Status.h"
#include "llvm/ADT/StringExtras.h"

using namespace cleave;
using namespace cleave::driver;

/// `0, 1, 1, 0`.
static std::string listRanks(llvm::ArrayRef<int32_t> placement) {
  constexpr size_t most = 32;
  std::string text =
      llvm::join(llvm::map_range(placement.take_front(most), [](int32_t rank) { return std::to_string(rank); }), ", ");
  return placement.size() > most ? text + ", .." : text;
}

/// Of a named schedule, others are known that stand as it is wanted.
static llvm::Error checkPlacement(schedule::Placement wanted, const schedule::Schedule &table) {
  llvm::ArrayRef<int32_t> placement = table.replicas.front().placement;
  int32_t chunks = table.numStages / table.numRanks;
  if (table.numStages % table.numRanks == 0 && schedule::mayHaveChunks(wanted, chunks) &&
      placement == llvm::ArrayRef<int32_t>(schedule::placeStages(wanted, table.numRanks, chunks)))
    return llvm::Error::success();
  std::string names;
  for (const schedule::GeneratorInfo &info : schedule::getGenerators())
    if (info.placement == wanted)
      names += (info.name + ", ").str();
  return makeError("the plan wants placement '{0}', and schedule '{1}' has its stages on ranks {2}; '{0}' have {3}and "
                   "auto can",
                   getWord(wanted), table.name, listRanks(placement), names);
}

llvm::Error cleave::driver::placeAsPlanned(const ScheduleModel &model, schedule::Schedule &table) {
  llvm::ArrayRef<int32_t> placement = table.replicas.front().placement;
  if (model.placement)
    if (llvm::Error error = checkPlacement(*model.placement, table))
      return error;
  if (!model.lines.empty() && model.lines.size() != placement.size())
    return makeError("the plan has {0} stages by hand, the schedule {1}", model.lines.size(), placement.size());
  // Rank of the schedule -> its number, and the stage that says so; and the other way round.
  std::vector<int32_t> numbers(table.numRanks, -1), stageOf(table.numRanks, -1), taken(table.numRanks, -1);
  for (auto [stage, line] : llvm::enumerate(model.lines)) {
    if (!line.rank)
      continue;
    auto wanted = static_cast<int32_t>(*line.rank);
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
  schedule::renumberRanks(table, numbers);
  return llvm::Error::success();
}
