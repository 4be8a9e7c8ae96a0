//===- PlanReasons.h - why a found plan, in words and as JSON ---*- C++ -*-===//
#ifndef CLEAVE_DRIVER_PLANREASONS_H
#define CLEAVE_DRIVER_PLANREASONS_H

#include "cleave/Compiler/ExplainPlan.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace cleave::driver {

/// What the time of a call goes into; a line for each other number of stages and each style, with its time and what that is more; then
/// the collectives that take longest.
void printReasons(llvm::raw_ostream &os, const FoundPlan &found, const PlanReasons &reasons);

/// The same, as `explain` of a report. Times are seconds.
llvm::json::Object toJson(const PlanReasons &reasons);

} // namespace cleave::driver

#endif // CLEAVE_DRIVER_PLANREASONS_H
