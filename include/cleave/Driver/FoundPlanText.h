//===- FoundPlanText.h - a found plan in words ------------------*- C++ -*-===//
#ifndef CLEAVE_DRIVER_FOUNDPLANTEXT_H
#define CLEAVE_DRIVER_FOUNDPLANTEXT_H

#include "cleave/Compiler/FindPlan.h"

namespace cleave::driver {

/// Two lines: the mesh and what a call takes; what a rank stores and sends.
std::vector<std::string> summarize(const FoundPlan &found);

} // namespace cleave::driver

#endif // CLEAVE_DRIVER_FOUNDPLANTEXT_H
