//===- Draw.h - pictures of schedules ---------------------------*- C++ -*-===//
//
// Bars are the times of a simulation, no more and no less: what a picture shows is what the report says.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SCHEDULE_DRAW_H
#define CLEAVE_SCHEDULE_DRAW_H

#include "cleave/Schedule/Simulate.h"

namespace cleave::schedule {

/// A row per rank, in at most `width` columns: `F0` is F of microbatch 0, dots are idle. Ranks beyond the first 64 are
/// counted only.
void drawText(llvm::raw_ostream &os, const Schedule &schedule, const Simulation &simulation, size_t width,
              bool useColor);

/// Bars and the memory of each rank; below them, where there is such, what a run took (Measured.h), each by a scale of its own. Error: more
/// actions than a picture can show.
llvm::Error drawSvg(llvm::raw_ostream &os, const Schedule &schedule, const Costs &costs, const Simulation &simulation,
                    const Simulation *measured = nullptr);

/// The same as a page that needs nothing else; the pointer shows an action and its times.
llvm::Error drawHtml(llvm::raw_ostream &os, const Schedule &schedule, const Costs &costs, const Simulation &simulation,
                     const Simulation *measured = nullptr);

/// A trace for Perfetto and chrome://tracing: a track per rank, arrows for messages, memory as counters; a unit of time is
/// a millisecond.
void drawTrace(llvm::raw_ostream &os, const Schedule &schedule, const Costs &costs, const Simulation &simulation);

} // namespace cleave::schedule

#endif // CLEAVE_SCHEDULE_DRAW_H
