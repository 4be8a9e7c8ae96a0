//===- Schedule.cpp - words and places of schedules -----------------------===//
//
// The words are those of torch.distributed.pipelining's tables, which other tools read, and UPDATE, which it has no word for; places follow from the number of
// a stage alone.
//
//===----------------------------------------------------------------------===//
#include "cleave/Schedule/Schedule.h"

#include "llvm/ADT/STLExtras.h"
#include <cassert>

using namespace cleave::schedule;

static constexpr llvm::StringLiteral kActionWords[] = {
    "F", "B", "I", "W", "SEND_F", "RECV_F", "SEND_B", "RECV_B", "UNSHARD", "RESHARD", "REDUCE_GRAD", "UPDATE"};
static constexpr llvm::StringLiteral kPlacements[] = {"linear", "loop", "v", "wave"};

/// The enumerator whose word stands at its position.
template <typename Enum, size_t N>
static std::optional<Enum> find(const llvm::StringLiteral (&words)[N], llvm::StringRef word) {
  const auto *found = llvm::find(words, word);
  if (found == std::end(words))
    return std::nullopt;
  return static_cast<Enum>(found - std::begin(words));
}

llvm::StringRef cleave::schedule::getWord(ActionKind kind) { return kActionWords[static_cast<size_t>(kind)]; }
llvm::StringRef cleave::schedule::getWord(Placement placement) { return kPlacements[static_cast<size_t>(placement)]; }

std::optional<ActionKind> cleave::schedule::parseActionKind(llvm::StringRef word) {
  return find<ActionKind>(kActionWords, word);
}
std::optional<Placement> cleave::schedule::parsePlacement(llvm::StringRef word) {
  return find<Placement>(kPlacements, word);
}

std::string cleave::schedule::getText(const Action &action) {
  std::string text = std::to_string(action.stage) + getWord(action.kind).str();
  return action.microbatch < 0 ? text : text + std::to_string(action.microbatch);
}

// Asked for each action of a simulation, so that it is looked up.
void Schedule::indexReplicas() {
  replicaOf.assign(numMicrobatches, 0);
  for (auto [index, replica] : llvm::enumerate(replicas))
    for (int32_t microbatch : replica.microbatches)
      replicaOf[microbatch] = static_cast<int32_t>(index);
}

bool Schedule::isComputeOnly() const {
  return llvm::none_of(programs, [](const std::vector<Action> &program) {
    return llvm::any_of(program, [](const Action &action) { return isMessage(action.kind); });
  });
}

bool cleave::schedule::mayHaveChunks(Placement placement, int32_t chunks) {
  switch (placement) {
  case Placement::Linear:
    return chunks == 1;
  case Placement::Loop:
    return chunks >= 1;
  case Placement::V:
    return chunks == 2;
  case Placement::Wave:
    return chunks >= 2 && chunks % 2 == 0;
  }
  return false;
}

// Every second run through the ranks goes backwards where a placement turns.
std::vector<int32_t> cleave::schedule::placeStages(Placement placement, int32_t ranks, int32_t chunks) {
  assert(mayHaveChunks(placement, chunks) && "the placement has no such number of stages a rank");
  std::vector<int32_t> places;
  bool turns = placement == Placement::V || placement == Placement::Wave;
  for (int32_t chunk = 0; chunk < chunks; ++chunk)
    for (int32_t rank = 0; rank < ranks; ++rank)
      places.push_back(turns && chunk % 2 ? ranks - 1 - rank : rank);
  return places;
}

[[maybe_unused]] static bool isPermutation(llvm::ArrayRef<int32_t> numbers) {
  std::vector<int32_t> sorted(numbers);
  llvm::sort(sorted);
  return llvm::all_of(llvm::enumerate(sorted), [](auto entry) { return size_t(entry.value()) == entry.index(); });
}

void cleave::schedule::renumberRanks(Schedule &schedule, llvm::ArrayRef<int32_t> numbers) {
  assert(isPermutation(numbers) && numbers.size() == size_t(schedule.numRanks) && "one other number per rank");
  for (Replica &replica : schedule.replicas)
    for (int32_t &rank : replica.placement)
      rank = numbers[rank];
  for (Reduction &reduction : schedule.reductions)
    for (int32_t &rank : reduction.ranks)
      rank = numbers[rank];
  auto permute = [&](auto &list) {
    std::remove_reference_t<decltype(list)> permuted(list.size());
    for (auto [rank, entry] : llvm::enumerate(list))
      permuted[numbers[rank]] = std::move(entry);
    list = std::move(permuted);
  };
  permute(schedule.programs);
  permute(schedule.weightVersions);
}

Schedule cleave::schedule::makeSchedule(llvm::StringRef name, std::vector<int32_t> placement, int32_t ranks,
                                        int32_t microbatches) {
  Schedule schedule;
  schedule.name = name.str();
  schedule.numRanks = ranks;
  schedule.numStages = static_cast<int32_t>(placement.size());
  schedule.numMicrobatches = microbatches;
  schedule.programs.resize(ranks);
  for (int32_t stage = 1; stage < schedule.numStages; ++stage) {
    Channel channel;
    channel.from = stage - 1;
    channel.to = stage;
    schedule.channels.push_back(std::move(channel));
  }
  Replica &replica = schedule.replicas.emplace_back();
  replica.placement = std::move(placement);
  for (int32_t microbatch = 0; microbatch < microbatches; ++microbatch)
    replica.microbatches.push_back(microbatch);
  schedule.indexReplicas();
  return schedule;
}
