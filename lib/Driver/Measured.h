//===- Measured.h - what a run of a schedule took ---------------*- C++ -*-===//
#ifndef CLEAVE_LIB_DRIVER_MEASURED_H
#define CLEAVE_LIB_DRIVER_MEASURED_H

#include "cleave/Compiler/Schedule.h"
#include "llvm/Support/JSON.h"

namespace cleave::driver {

/// The times of the trace at `path`, in the unit of `made`; nothing where no path is given. Errors name the file.
llvm::Expected<std::optional<schedule::Simulation>> readMeasured(const std::string &path, const ScheduleResult &made);

/// What the run of the trace at `path` took, as `run` of a page (docs/page.md); nanoseconds. `layerOf`: by node the number of the page's layer.
llvm::Expected<llvm::json::Object> readRun(const std::string &path, const llvm::json::Object &layerOf, size_t numLayers,
                                           int64_t numRanks);

} // namespace cleave::driver

#endif // CLEAVE_LIB_DRIVER_MEASURED_H
