//===- Measured.h - what a run of a schedule took ---------------*- C++ -*-===//
#ifndef CLEAVE_LIB_DRIVER_MEASURED_H
#define CLEAVE_LIB_DRIVER_MEASURED_H

#include "cleave/Compiler/Schedule.h"

namespace cleave::driver {

/// The times of the trace at `path`, in the unit of `made`; nothing where no path is given. Errors name the file.
llvm::Expected<std::optional<schedule::Simulation>> readMeasured(const std::string &path, const ScheduleResult &made);

} // namespace cleave::driver

#endif // CLEAVE_LIB_DRIVER_MEASURED_H
