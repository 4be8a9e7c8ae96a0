//===- Main.h - `cleave` as a function --------------------------*- C++ -*-===//
#ifndef CLEAVE_DRIVER_MAIN_H
#define CLEAVE_DRIVER_MAIN_H

namespace cleave::driver {

/// Parses the command line, runs one command, and returns the exit code that `ExitCode` (Options.h) lists. Once per process: it keeps the
/// memory of the command, and crashes end the process from then on with a reproducer. For the program, and for Python's package, whose
/// `cleave` is this.
int main(int argc, const char *const *argv);

} // namespace cleave::driver

#endif // CLEAVE_DRIVER_MAIN_H
