//===- Diagnostic.h - what went wrong, where, and by whose fault -*- C++ -*-===//
#ifndef CLEAVE_COMPILER_DIAGNOSTIC_H
#define CLEAVE_COMPILER_DIAGNOSTIC_H

#include <functional>
#include <string>
#include <vector>

namespace cleave {

/// Whose failure an error is, from the least to the worst.
enum class Blame {
  Input,       ///< the model, the plan or the data is wrong
  Options,     ///< what is asked for does not go together, or not with this model
  Expectation, ///< the program is not what the plan expects
  Run,         ///< a fault while running
  Bug,         ///< ours: what passed all checks failed later
};

struct Diagnostic {
  enum class Severity { Error, Warning, Remark, Note };

  Severity severity = Severity::Error;
  /// Of an error.
  Blame blame = Blame::Input;
  /// The file that it is about, and where in it; line and column count from 1, 0 is none. `cleave` where it is about no
  /// file.
  std::string file;
  unsigned line = 0, column = 0;
  /// The ONNX node that it is about; may be empty.
  std::string node;
  std::string message;
  /// Other places that belong to it.
  std::vector<Diagnostic> notes;

  /// `plan.yaml:4:5`.
  std::string formatPlace() const;
  /// `error`, `warning`, `remark`, `note`.
  const char *formatSeverity() const;
  /// The message, after the node if it does not name it.
  std::string formatText() const;
  /// `plan.yaml:4:5: error: ...`, one line, then one for each note.
  std::string format() const;
};

using DiagnosticHandler = std::function<void(const Diagnostic &)>;

} // namespace cleave

#endif // CLEAVE_COMPILER_DIAGNOSTIC_H
