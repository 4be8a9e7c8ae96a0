//===- RankWriter.cpp - the program of a rank, written lane by lane -------===//
//
// Counts F and B (or I) per lane; W is due in the order of the I's. An action without its operand would be a table that
// nobody can run, so that it is left out: split schedules need no second formula.
//
//===----------------------------------------------------------------------===//
#include "Generators.h"
#include "llvm/ADT/STLExtras.h"

using namespace cleave::schedule;

RankWriter::RankWriter(Schedule &schedule, int32_t rank) : program(schedule.programs[rank]) {
  for (const Replica &replica : schedule.replicas)
    for (auto [stage, place] : llvm::enumerate(replica.placement))
      if (place == rank)
        lanes.push_back({static_cast<int32_t>(stage), replica.microbatches});
}

int32_t RankWriter::getNumForwardLeft(int32_t lane) const {
  return static_cast<int32_t>(lanes[lane].microbatches.size()) - lanes[lane].numForward;
}

static Action makeAction(ActionKind kind, int32_t stage, int32_t microbatch) {
  Action action;
  action.kind = kind;
  action.stage = stage;
  action.microbatch = microbatch;
  return action;
}

bool RankWriter::addWeightGrad(std::deque<Pending>::iterator position) {
  if (position == pending.end())
    return false;
  program.push_back(makeAction(ActionKind::W, lanes[position->lane].stage, position->microbatch));
  pending.erase(position);
  return true;
}

bool RankWriter::addOne(ActionKind kind, int32_t index) {
  if (kind == ActionKind::W)
    return addWeightGrad(llvm::find_if(pending, [&](const Pending &due) { return due.lane == index; }));
  Lane &lane = lanes[index];
  bool isForward = kind == ActionKind::F;
  if (isForward ? getNumForwardLeft(index) == 0 : lane.numBackward == lane.numForward)
    return false;
  int32_t microbatch = lane.microbatches[isForward ? lane.numForward++ : lane.numBackward++];
  program.push_back(makeAction(kind, lane.stage, microbatch));
  if (kind == ActionKind::I)
    pending.push_back({index, microbatch});
  return true;
}

int32_t RankWriter::add(ActionKind kind, int32_t lane, int32_t times) {
  int32_t count = 0;
  while (count < times && addOne(kind, lane))
    ++count;
  return count;
}

bool RankWriter::addOldestWeightGrad() { return addWeightGrad(pending.begin()); }

void RankWriter::addJoined(int32_t forwardLane, int32_t backwardLane) {
  bool isForward = addOne(ActionKind::F, forwardLane);
  if (addOne(ActionKind::B, backwardLane) && isForward)
    program[program.size() - 2].isJoined = true;
}

std::vector<int32_t> cleave::schedule::getRounds(int32_t ranks, int32_t microbatches) {
  int32_t count = std::max(1, microbatches / ranks);
  std::vector<int32_t> rounds(count, microbatches / count);
  for (int32_t round = 0; round < microbatches % count; ++round)
    ++rounds[round];
  return rounds;
}

int32_t cleave::schedule::getNumChunks(const Schedule &schedule) { return schedule.numStages / schedule.numRanks; }
