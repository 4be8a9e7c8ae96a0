//===- Exhaustion.h - when the system has no more to give -------*- C++ -*-===//
#ifndef CLEAVE_PROGRAM_EXHAUSTION_H
#define CLEAVE_PROGRAM_EXHAUSTION_H

#include <functional>

namespace cleave::program {

/// From now on memory or threads that are not to be had end this process with one line, `TOOL: error: out of memory`, and `code`:
/// wherever they were asked for, the standard library included, whose exceptions nobody catches here. For programs; a library must
/// leave this to its user. `tool` must stay.
void endWhenExhausted(const char *tool, int code);

/// Calls `call`, and says whether it came to its end: not so where memory ran out in it, which a library may tell its user. What it was
/// doing then is left where it was.
bool completes(const std::function<void()> &call);

/// What `endWhenExhausted` makes of it, for who notices by other ways. Precondition: it has been called.
[[noreturn]] void endWithoutMemory();
[[noreturn]] void endWithoutThreads();

} // namespace cleave::program

#endif // CLEAVE_PROGRAM_EXHAUSTION_H
