//===- Crash.h - a bug of ours leaves a reproducer --------------*- C++ -*-===//
#ifndef CLEAVE_DRIVER_CRASH_H
#define CLEAVE_DRIVER_CRASH_H

namespace cleave::driver {

/// From now on a crash (signal, abort) writes `cleave-crash-PID.sh` into the current folder: the command line, the
/// version and the stack; names it on standard error, and ends the program with exit code 70.
void installCrashHandler(int argc, const char *const *argv);

/// For a bug that was noticed rather than crashed on: writes and names the same file, without a stack.
void reportBug();

} // namespace cleave::driver

#endif // CLEAVE_DRIVER_CRASH_H
