//===- Spans.h - what all ranks take together -------------------*- C++ -*-===//
#ifndef CLEAVE_LIB_SCHEDULE_SPANS_H
#define CLEAVE_LIB_SCHEDULE_SPANS_H

#include "cleave/Program/UnitTimes.h"
#include "cleave/Schedule/Simulate.h"

namespace cleave::schedule {

/// Makespan, span and bubbles of what is known of each rank, as predicted or as measured.
inline void setSpans(Simulation &of) {
  program::PipelineSpans spans = program::computeSpans(of.busy, of.start, of.end);
  of.makespan = spans.makespan;
  of.span = spans.span;
  of.bubbleMakespan = spans.bubbleMakespan;
  of.bubbleSpan = spans.bubbleSpan;
}

} // namespace cleave::schedule

#endif // CLEAVE_LIB_SCHEDULE_SPANS_H
