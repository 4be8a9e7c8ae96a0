//===- FoundPlanText.h - a found plan in words ------------------*- C++ -*-===//
#ifndef CLEAVE_DRIVER_FOUNDPLANTEXT_H
#define CLEAVE_DRIVER_FOUNDPLANTEXT_H

#include "cleave/Compiler/FindPlan.h"

namespace cleave::driver {

/// In one line: the mesh, what a call takes, what a rank stores and sends.
std::string summarize(const FoundPlan &found);

} // namespace cleave::driver

#endif // CLEAVE_DRIVER_FOUNDPLANTEXT_H
