//===- Mutator.h - files that are almost programs ---------------*- C++ -*-===//
//
// Bytes changed, cut off, copied elsewhere, and programs with a number or a command changed before they are written.
// Deterministic.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_UNIT_PROGRAM_MUTATOR_H
#define CLEAVE_UNIT_PROGRAM_MUTATOR_H

#include "Numbers.h"
#include "cleave/Program/File.h"
#include <random>

namespace cleave::program {

class Mutator {
public:
  explicit Mutator(uint32_t seed) : random(seed) {}

  /// A file that is almost `program`.
  std::string mutate(const Program &program);

private:
  std::mt19937 random;

  size_t below(size_t bound) { return bound ? random() % bound : 0; }
  void changeNumber(Program &program);
  void changeCommands(Program &program);
  void changeBytes(std::string &bytes);
};

/// One number becomes one that is likely to hurt.
inline void Mutator::changeNumber(Program &program) {
  size_t count = 0;
  forEachNumber(program, [&](auto &) { ++count; });
  size_t chosen = below(count), index = 0;
  constexpr int64_t numbers[] = {0,   1,   2,   3,  4,  7,         8,         16,        64,
                                 127, 128, 255, -1, -4, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};
  int64_t number = numbers[below(std::size(numbers))];
  bool isStep = below(2);
  forEachNumber(program, [&](auto &value) {
    using T = std::decay_t<decltype(value)>;
    if (index++ != chosen)
      return;
    if constexpr (std::is_enum_v<T>)
      value = static_cast<T>(number & 7);
    else if constexpr (std::is_same_v<T, bool>)
      value = !value;
    else
      value = static_cast<T>(isStep ? static_cast<int64_t>(value) + (number & 1 ? 1 : -1) : number);
  });
}

/// Commands go, come twice, or change places.
inline void Mutator::changeCommands(Program &program) {
  Variant &variant = program.variants[below(program.variants.size())];
  std::vector<Command> &commands = variant.lists[below(variant.lists.size())].commands;
  size_t a = below(commands.size()), b = below(commands.size());
  switch (below(3)) {
  case 0:
    commands.erase(commands.begin() + a);
    break;
  case 1:
    commands.insert(commands.begin() + b, Command(commands[a]));
    break;
  default:
    std::swap(commands[a], commands[b]);
  }
}

/// Bytes change, go, or come from elsewhere in the file.
inline void Mutator::changeBytes(std::string &bytes) {
  for (size_t i = 0, changes = 1 + below(4); i < changes; ++i)
    bytes[below(bytes.size())] = static_cast<char>(below(2) ? random() : below(8));
  if (below(4) == 0)
    bytes.resize(below(bytes.size()) + 1);
  if (below(4) == 0) {
    size_t length = below(std::min<size_t>(bytes.size(), 64));
    size_t from = below(bytes.size() - length), to = below(bytes.size() - length);
    bytes.replace(to, length, std::string(bytes, from, length));
  }
}

inline std::string Mutator::mutate(const Program &program) {
  Program changed = program;
  size_t way = below(4);
  if (way == 0)
    changeNumber(changed);
  if (way == 1)
    changeCommands(changed);
  std::string bytes = writeProgram(changed);
  if (way > 1)
    changeBytes(bytes);
  return bytes;
}

} // namespace cleave::program

#endif // CLEAVE_UNIT_PROGRAM_MUTATOR_H
