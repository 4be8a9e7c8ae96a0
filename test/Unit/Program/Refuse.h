//===- Refuse.h - a program broken on purpose -------------------*- C++ -*-===//
#ifndef CLEAVE_UNIT_PROGRAM_REFUSE_H
#define CLEAVE_UNIT_PROGRAM_REFUSE_H

#include "Samples.h"

#include "cleave/Program/File.h"
#include "gtest/gtest.h"

namespace cleave::program {

/// What is wrong with a program once it has been through a file, so that writing and reading are tested with each check;
/// empty if nothing is.
inline std::string refuse(const Program &program) {
  std::string bytes = writeProgram(program);
  Result<Program> again = readProgram(bytes);
  return again ? "" : again.getError().message;
}

/// Changes a program, and says what is wrong with it then.
template <typename Change> std::string refuse(Program program, Change change) {
  change(program);
  return refuse(program);
}

/// The command of that number of a role, in the first variant.
inline Command &at(Program &program, size_t command, size_t role = 0) {
  return program.variants[0].lists[role].commands[command];
}

/// What it does. Precondition: that is a T.
template <typename T> T &as(Program &program, size_t command, size_t role = 0) {
  return *std::get_if<T>(&at(program, command, role).action);
}

} // namespace cleave::program

#endif // CLEAVE_UNIT_PROGRAM_REFUSE_H
