//===- Run.h - a model, run step by step ------------------------*- C++ -*-===//
//
//   std::unique_ptr<cleave::ModelRun> run = cleave::ModelRun::create(compilation, options);
//   if (run && run->prepare() && run->run())
//     for (const cleave::OutputSummary &output : run->summarize()) ...
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_COMPILER_RUN_H
#define CLEAVE_COMPILER_RUN_H

#include "cleave/Compiler/Check.h"

namespace cleave {

/// `y`, `f32[8, 128]`, `least -1, mean 0.5, largest 2`.
struct OutputSummary {
  std::string name, type, text;
};

/// One call of a model, on one device or, with a mesh, on every rank. Each step says whether it went well; what is wrong is among the
/// diagnostics of the compilation, which outlives it.
class ModelRun {
public:
  /// Loads the model, where it is not loaded yet, and what it is held against.
  static std::unique_ptr<ModelRun> create(Compilation &compilation, const RunOptions &options);
  ~ModelRun();

  /// Files of weights of what it is held against.
  std::vector<std::string> getOriginalFiles() const;

  /// Takes the model as far as it goes, and reads or draws inputs: from here on failures are those of a run.
  bool prepare();
  bool run();
  /// Of the program that was run.
  std::optional<Report> makeReport();
  /// There is something to hold outputs against.
  bool hasOriginal() const;
  /// One entry per output. Precondition: it has run, and has an original.
  std::optional<std::vector<OutputCheck>> check();
  /// Of a step with gradients, on the inputs of the run.
  std::optional<std::vector<SlopeCheck>> checkSlopes();

  /// By their names, as an .npz file.
  llvm::Error writeInputs(llvm::StringRef path) const;
  llvm::Error writeOutputs(llvm::StringRef path) const;
  std::vector<OutputSummary> summarize() const;

private:
  struct State;
  explicit ModelRun(std::unique_ptr<State> state);
  std::unique_ptr<State> state;
};

} // namespace cleave

#endif // CLEAVE_COMPILER_RUN_H
