//===- Exhaustion.h - when the system has no more to give -------*- C++ -*-===//
#ifndef CLEAVE_PROGRAM_EXHAUSTION_H
#define CLEAVE_PROGRAM_EXHAUSTION_H

namespace cleave::program {

/// From now on memory or threads that are not to be had end this process with one line, `TOOL: error: out of memory`, and `code`:
/// wherever they were asked for, the standard library included, whose exceptions nobody catches here. For programs; a library must
/// leave this to its user. `tool` must stay.
void endWhenExhausted(const char *tool, int code);

/// What `endWhenExhausted` makes of it, for who notices by other ways. Precondition: it has been called.
[[noreturn]] void endWithoutMemory();
[[noreturn]] void endWithoutThreads();

} // namespace cleave::program

#endif // CLEAVE_PROGRAM_EXHAUSTION_H
