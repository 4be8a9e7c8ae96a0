//===- Check.h - is a partitioned program right? ----------------*- C++ -*-===//
//
//   std::optional<cleave::CheckResult> checked = cleave::checkModel(compilation);
//   for (const cleave::OutputCheck &output : checked->outputs)
//     use(output.name, output.getVerdict(), output.difference.largest, output.tolerance);
//
// How outputs are judged stands in CheckOutputs.cpp.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_COMPILER_CHECK_H
#define CLEAVE_COMPILER_CHECK_H

#include "cleave/Compiler/Compilation.h"
#include "cleave/Compiler/Difference.h"
#include <cmath>

namespace cleave {

/// How far rounding moves an output, by a run of both programs with every float an f64.
struct Rounding {
  double apart = 0;                 ///< largest difference between ranks and one device, both in double
  double ofRanks = 0, ofDevice = 0; ///< largest difference from one device in double
};

/// How far ranks and one device, both computing in less, are from one device that computes as the model says.
struct NarrowCheck {
  Spread ofRanks, ofDevice;
  bool isClose = false; ///< the ranks are not much farther
};

/// Of the gradient of a parameter, how far all of it is from that of one device.
struct NormCheck {
  double ofDifference = 0, ofDevice = 0;
  bool isClose = true;
};

enum class Verdict {
  Ok,
  IllConditioned, ///< out of tolerance, but by no more than rounding does to the original itself
  Differs,
};

/// What is found of one output.
struct OutputCheck {
  std::string name;
  std::vector<int64_t> shape;
  Tolerance tolerance;
  Difference difference;
  /// Largest magnitude on one device.
  double scale = 0;
  /// Where `difference` is first out of tolerance, and what is there; empty: nowhere.
  std::vector<int64_t> index;
  std::string onRanks, onDevice;
  bool isIllConditioned = false;
  /// Of an output out of tolerance, where rounding could be the reason: how far it goes, or why that cannot be told.
  std::optional<Rounding> rounding;
  std::string problem;
  /// Instead of the tolerance, where one device was run in less.
  std::optional<NarrowCheck> narrow;
  /// Beside the tolerance, of gradients.
  std::optional<NormCheck> norm;
  /// Where the output is made in the model: the place in its program, and the node there.
  size_t place = 0;
  std::string node;

  bool isClose() const { return narrow ? narrow->isClose : difference.position < 0 && (!norm || norm->isClose); }
  Verdict getVerdict() const {
    return isClose() ? Verdict::Ok : isIllConditioned ? Verdict::IllConditioned : Verdict::Differs;
  }
  bool isRight() const { return getVerdict() != Verdict::Differs; }
};

/// The gradient of a parameter and the slope of the loss along a direction of it (Slopes.h).
struct SlopeCheck {
  std::string parameter;
  double byGradient = 0, slope = 0; ///< the closest one found
  double allowed = 0;               ///< how far they may be apart
  bool isRight() const { return std::abs(slope - byGradient) <= allowed; }
};

/// Who runs a model: the evaluator, or a program that it is compiled into first.
enum class ExecutorKind { Reference, Program };
inline constexpr llvm::StringLiteral kExecutorWords[] = {"reference", "program"};

/// How a model is run, and what its outputs are held against.
struct RunOptions {
  /// On anything but the host it is always a program.
  ExecutorKind executor = ExecutorKind::Reference;
  /// How far the model goes; nothing: to the program of one device, or of a pipeline to those of its ranks.
  std::optional<Phase> last = {};
  /// Of inputs, where none are given.
  uint64_t seed = 0;
  /// Outputs will be checked, or a report made: both are about ranks.
  bool checks = false, reports = false;
  /// The model that a partitioned file was made from, to be checked against; empty: the model is not partitioned yet.
  std::string against = {};
  /// For all outputs, instead of those of their types.
  std::optional<double> rtol = {}, atol = {};
  /// Bytes of inputs, row-major and of their types, by name; what is not among them is a state, and as it begins. Empty: inputs are read or
  /// drawn.
  std::map<std::string, std::string> given = {};
};

struct CheckResult {
  std::vector<OutputCheck> outputs;
  /// Of the program that was run.
  Report report;

  bool isRight() const {
    return llvm::all_of(outputs, [](const OutputCheck &output) { return output.isRight(); });
  }
};

/// Runs a model on ranks and on one device, and holds each output of the one against the other. Loads it where it is not loaded yet. Nothing
/// after an error, which is among the diagnostics; that outputs differ is none. Precondition: it has a mesh.
std::optional<CheckResult> checkModel(Compilation &compilation, RunOptions options = {});

} // namespace cleave

#endif // CLEAVE_COMPILER_CHECK_H
