//===- ReportFile.h - what was decided, sent and stored ---------*- C++ -*-===//
#ifndef CLEAVE_DRIVER_REPORTFILE_H
#define CLEAVE_DRIVER_REPORTFILE_H

#include "cleave/Driver/Session.h"

namespace cleave::driver {

/// Prints a short table of a report where `printsTable`, the seconds where --time-phases asks, and writes the JSON where --report asks
/// (docs/report.md).
ExitCode writeReport(Session &session, const Report &report, bool printsTable);

/// Where --time-phases asks.
void printSeconds(const Session &session);

} // namespace cleave::driver

#endif // CLEAVE_DRIVER_REPORTFILE_H
