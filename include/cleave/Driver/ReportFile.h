//===- ReportFile.h - what was decided, sent and stored ---------*- C++ -*-===//
#ifndef CLEAVE_DRIVER_REPORTFILE_H
#define CLEAVE_DRIVER_REPORTFILE_H

#include "cleave/Driver/Session.h"
#include "llvm/Support/JSON.h"

namespace cleave::driver {

/// Prints a short table of a report where `printsTable`, the seconds where --time-phases asks, and writes the JSON where --report asks
/// (docs/report.md).
ExitCode writeReport(Session &session, const Report &report, bool printsTable);

/// The file of --report, of what is no sharded program.
llvm::Error writeReport(const Options &options, llvm::json::Object report);

/// Where --time-phases asks.
void printSeconds(const Session &session);

} // namespace cleave::driver

#endif // CLEAVE_DRIVER_REPORTFILE_H
