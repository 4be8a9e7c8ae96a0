#include "Tables.h"

#include <algorithm>

using namespace cleave::schedule;

static Schedule makeLinear(const char *name, int32_t ranks, int32_t microbatches) {
  return makeSchedule(name, placeStages(Placement::Linear, ranks, 1), ranks, microbatches);
}

static void append(Schedule &schedule, int32_t rank, ActionKind kind, int32_t stage, int32_t microbatch) {
  schedule.programs[rank].push_back(makeAction(kind, stage, microbatch));
}

Schedule cleave::schedule::makeGpipe(int32_t ranks, int32_t microbatches) {
  Schedule schedule = makeBreadthFirst(ranks, microbatches, 1);
  schedule.name = "gpipe";
  return schedule;
}

Schedule cleave::schedule::makeOneFOneB(int32_t ranks, int32_t microbatches, bool isEager) {
  Schedule schedule = makeLinear("1f1b", ranks, microbatches);
  for (int32_t rank = 0; rank < ranks; ++rank) {
    int32_t warmup = std::min(microbatches, (isEager ? 2 : 1) * (ranks - 1 - rank));
    for (int32_t i = 0; i < warmup; ++i)
      append(schedule, rank, ActionKind::F, rank, i);
    for (int32_t i = 0; i < microbatches; ++i) {
      if (warmup + i < microbatches)
        append(schedule, rank, ActionKind::F, rank, warmup + i);
      append(schedule, rank, ActionKind::B, rank, i);
    }
  }
  return schedule;
}

Schedule cleave::schedule::makeZeroBubbleH1(int32_t ranks, int32_t microbatches) {
  Schedule schedule = makeOneFOneB(ranks, microbatches);
  schedule.name = "zb-h1";
  for (int32_t rank = 0; rank < ranks; ++rank) {
    std::vector<Action> program;
    int32_t weights = 0;
    for (Action action : schedule.programs[rank]) {
      bool isBackward = action.kind == ActionKind::B;
      action.kind = isBackward ? ActionKind::I : action.kind;
      program.push_back(action);
      if (isBackward && action.microbatch >= rank)
        program.push_back(makeAction(ActionKind::W, rank, weights++));
    }
    while (weights < microbatches)
      program.push_back(makeAction(ActionKind::W, rank, weights++));
    schedule.programs[rank] = program;
  }
  return schedule;
}

Schedule cleave::schedule::makeBreadthFirst(int32_t ranks, int32_t microbatches, int32_t chunks) {
  Schedule schedule = makeSchedule("bfs", placeStages(Placement::Loop, ranks, chunks), ranks, microbatches);
  for (int32_t rank = 0; rank < ranks; ++rank) {
    for (int32_t chunk = 0; chunk < chunks; ++chunk)
      for (int32_t i = 0; i < microbatches; ++i)
        append(schedule, rank, ActionKind::F, chunk * ranks + rank, i);
    for (int32_t chunk = chunks; chunk-- > 0;)
      for (int32_t i = 0; i < microbatches; ++i)
        append(schedule, rank, ActionKind::B, chunk * ranks + rank, i);
  }
  return schedule;
}

Schedule cleave::schedule::makeForward(int32_t ranks, int32_t microbatches) {
  Schedule schedule = makeLinear("forward", ranks, microbatches);
  schedule.isForwardOnly = true;
  for (int32_t rank = 0; rank < ranks; ++rank)
    for (int32_t i = 0; i < microbatches; ++i)
      append(schedule, rank, ActionKind::F, rank, i);
  return schedule;
}
