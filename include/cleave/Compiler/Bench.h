//===- Bench.h - how long a call of a program takes -------------*- C++ -*-===//
//
//   if (std::unique_ptr<cleave::Bench> bench = cleave::Bench::create(compilation, options))
//     if (llvm::Expected<cleave::BenchResult> result = bench->run())
//       double seconds = cleave::getMedian(result->runs);
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_COMPILER_BENCH_H
#define CLEAVE_COMPILER_BENCH_H

#include "cleave/Compiler/Compilation.h"
#include "cleave/Runtime/Profile.h"
#include <memory>

namespace cleave {

struct Assembly;
class MappedFile;

struct BenchOptions {
  /// Of inputs that nobody gives.
  uint64_t seed = 0;
  /// Calls that count, at least 1. Some come before them that do not.
  uint64_t calls = 20;
};

/// Seconds that rank 0 needs in a call for all commands of one kind (of one kernel) for one node, which may be "".
struct CommandTime {
  std::string command, node;
  double seconds = 0;
};

struct BenchResult {
  uint32_t ranks = 0;
  /// Seconds to load it, and of each call that counts.
  double load = 0;
  std::vector<double> runs;
  /// Of the rank that has most, and of each.
  uint64_t peakBytes = 0;
  std::vector<uint64_t> peakBytesOfRanks;
  /// Means of a few more calls, with a clock around every command, which costs some itself. Longest first.
  std::vector<CommandTime> commands;
  std::vector<runtime::RoleTime> roles;
};

/// What is timed: a program, with inputs.
class Bench {
public:
  /// A program file: its first variant for the sizes that options name. Floats are drawn in [-1, 1), all else is 0: an index of 0 is always
  /// there. An error says what is wrong with the file.
  static llvm::Expected<std::unique_ptr<Bench>> create(const MappedFile &file, const CompileOptions &compile,
                                                       const BenchOptions &options);
  /// A model, which is loaded where it is not loaded yet, and compiled; inputs as options name them, or drawn as `ModelRun` does. Null after
  /// an error, which is among the diagnostics.
  static std::unique_ptr<Bench> create(Compilation &compilation, const BenchOptions &options);
  ~Bench();

  llvm::Expected<BenchResult> run() const;

private:
  struct State;
  explicit Bench(std::unique_ptr<State> state);
  std::unique_ptr<State> state;
};

/// Precondition: there are values.
double getMedian(std::vector<double> values);

} // namespace cleave

#endif // CLEAVE_COMPILER_BENCH_H
